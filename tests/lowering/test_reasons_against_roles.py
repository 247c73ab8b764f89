"""Why a launch is not divided into roles is a decision, at the line that it speaks of."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from lowering.hopper import ROLES, lowered, run
from lowering.hopper import matmul as product

from tilelang_nb.lowering.hopper import plan
from tilelang_nb.source import catalogue as say

HEAD = """
@T.prim_func
def k(A: T.Tensor((128, 256), "float16"), B: T.Tensor((256, 128), "float16"), C: T.Tensor((128, 128), "float32"), n: T.int32):
    with T.Kernel(1, threads=256):
        A_s = T.alloc_shared((128, 64), "float16")
        B_s = T.alloc_shared((64, 128), "float16")
        C_l = T.alloc_fragment((128, 128), "float32")
        T.clear(C_l)
"""
LOOP = "for ko in T.Pipelined(4, num_stages=2):"
COPIES = ["    T.copy(A[0, ko * 64], A_s)", "    T.copy(B[ko * 64, 0], B_s)"]
GEMM = "    T.gemm(A_s, B_s, C_l)"
# Statements from line 9 on -> (words of the reason, the line that it is told at).
REFUSED = {
    "control flow": (
        ["while n > 0:", *(f"    {line}" for line in (LOOP, *COPIES, GEMM))],
        "a `while` stands around",
        10,
    ),
    "another use": ([LOOP, *COPIES, GEMM, "    A_s[0, 0] = 0"], "cannot run ahead", 10),
    "no bulk copy": ([LOOP, COPIES[0][:-1] + ", disable_tma=True)", COPIES[1], GEMM], "is not to be a bulk copy", 10),
    "threads": ([LOOP, *COPIES, "    T.sync_threads()", GEMM], "speaks of the threads of the block", 9),
    "a written source": ([LOOP, *COPIES, GEMM, "A[0, 0] = 0"], "`A` is written", 10),
}


def text_of(lines: list[str]) -> str:
    return HEAD + "".join(f"        {line}\n" for line in lines)


def told(result: Any) -> list[Any]:
    return [one for one in result.decisions if one.subject == "roles"]


@pytest.mark.parametrize("name", REFUSED)
def test_a_refusal_is_told_at_the_line_that_it_speaks_of(name: str) -> None:
    lines, reason, line = REFUSED[name]
    (decision,) = told(lowered(text_of(lines)))
    assert decision.value == "all warp groups do the same"
    assert reason in decision.reason and decision.line == line


@pytest.mark.parametrize("option", ["tl.disable_warp_specialized", "tl.disable_tma_lower", "tl.disable_wgmma"])
def test_an_option_against_roles_is_the_reason(option: str) -> None:
    (decision,) = told(lowered(text_of([LOOP, *COPIES, GEMM]), {**ROLES, option: True}))
    assert decision.reason == f"the option `{option}` says so" and decision.line == 9


def test_nothing_is_told_where_nobody_asks_or_nothing_multiplies() -> None:
    assert told(lowered(text_of([LOOP, *COPIES, GEMM]), {})) == []
    assert told(lowered(text_of([LOOP, *COPIES, "    T.copy(A_s, C[0, 0])"]))) == []


@pytest.fixture(params=["a fault", "a mistake"])
def failing(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The division of a launch into roles fails."""
    divide = plan.specialised

    def fail(function: Any, found: Any, launch: Any) -> Any:
        if request.param == "a fault":
            raise LookupError("no such ring")
        call = found.plans[0].groups[0][0].call
        launch.report(say.SharedMemoryExceeded("300,000", "sm_90a", "232,448", "`A_s`"), call.span)
        return divide(function, found, launch)

    monkeypatch.setattr(plan, "specialised", fail)
    return request.param


def test_a_division_that_fails_is_told_and_the_launch_is_lowered_without(failing: str) -> None:
    case = product(128, 128, 256, bn=128)
    (decision,) = told(case.lowered)
    assert decision.value == "all warp groups do the same"
    if failing == "a fault":
        assert "a fault of tilelang_nb" in decision.reason and "LookupError: no such ring" in decision.reason
        assert decision.line == 9, "the loop"
    else:
        assert decision.reason.startswith("divided, it could not be compiled: ") and decision.line == 10
    result, report = run(case)
    np.testing.assert_array_equal(result.astype(np.float64), case.expected)
    assert report.findings == ()
