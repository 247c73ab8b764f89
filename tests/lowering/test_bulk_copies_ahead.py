"""T.tma_copy in T.Pipelined: the copies run ahead, in versions of tiles and barriers, and the results stay."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from lowering.hopper import lowered

from tilelang_nb.device import generate
from tilelang_nb.simulator import Program

M, N, K = 200, 328, 320
TEXT = """
@T.prim_func
def k(A: T.Tensor((200, 320), "float16"), B: T.Tensor((320, 328), "float16"), C: T.Tensor((200, 328), "float32"), n: T.int32):
    with T.Kernel(T.ceildiv(328, 128), T.ceildiv(200, 128), threads={threads}) as (bx, by):
        A_s = T.alloc_shared((128, 32), "float16")
        B_s = T.alloc_shared((32, 128), "float16")
        C_l = T.alloc_fragment((128, 128), "float32")
        a_here = T.alloc_barrier({threads})
        b_here = T.alloc_barrier([{threads}, 5])
        T.clear(C_l)
        for ko in T.Pipelined({turns}, num_stages={stages}):
            {first}
            T.tma_copy(A[by * 128, {column}], A_s, barrier=a_here)
            T.barrier_arrive(a_here)
            T.tma_copy(B[{column}, bx * 128], B_s, barrier=b_here[0])
            T.mbarrier_arrive(b_here[0])
            T.barrier_wait(a_here, {parity})
            T.mbarrier_wait_parity(b_here[0], {parity})
            {multiply}
        T.copy(C_l, C[by * 128, bx * 128])
"""
BY_ELEMENTS = """for i, j in T.Parallel(128, 128):
                for q in range(32):
                    C_l[i, j] += A_s[i, q] * B_s[q, j]"""
GEMM = "T.gemm(A_s, B_s, C_l)"


def text_of(**parts: Any) -> str:
    known = {
        "threads": 128, "turns": 10, "stages": 3, "column": "ko * 32", "parity": "ko % 2", "multiply": GEMM, "first": "pass"
    }  # fmt: skip
    return TEXT.format(**{**known, **parts})


def run(text: str, turns: int = 10) -> tuple[Any, np.ndarray, np.ndarray, tuple[Any, ...]]:
    """(lowered, result, expected, findings)."""
    result = lowered(text, {})
    rng = np.random.default_rng(7)
    a, b = (rng.integers(-4, 5, shape).astype(np.float16) for shape in ((M, K), (K, N)))
    c = np.full((M, N), np.nan, np.float32)
    report = Program(result.launches[0]).run({"A": a, "B": b, "C": c, "n": turns})
    deep = 32 * turns
    return result, c, a[:, :deep].astype(np.float32) @ b[:deep].astype(np.float32), report.findings


def versions(result: Any) -> int:
    """Of the tile of A."""
    text = str(result.launches[0])
    shape = text[text.index("A_s = T.decl_buffer((") :].split("(")[2].split(")")[0].split(",")
    return int(shape[0]) if len(shape) == 3 else 1


TURNS = {
    "two stages": ({"stages": 2}, 10, 2),
    "four stages": ({"stages": 4}, 10, 4),
    "more stages than turns": ({"stages": 4, "turns": 2}, 2, 4),
    "one turn": ({"turns": 1}, 1, 3),
    "two warp groups": ({"threads": 256}, 10, 3),
    "turns of the arguments": ({"turns": "n"}, 7, 3),
    "no turns": ({"turns": "n"}, 0, 3),
    "the parity by bits": ({"parity": "ko & 1"}, 10, 3),
    "the parity by a sum": ({"parity": "(ko + 4) % 2"}, 10, 3),
    "used by elements": ({"multiply": BY_ELEMENTS, "stages": 2}, 10, 2),
    "a place with a name": ({"first": "at = ko * 16", "column": "at * 2"}, 10, 3),
    "a running product": ({"multiply": "T.wgmma_gemm(A_s, B_s, C_l); T.wait_wgmma(0)"}, 10, 3),
}


@pytest.mark.parametrize("name", TURNS)
def test_copies_run_ahead(name: str) -> None:
    parts, turns, stages = TURNS[name]
    result, c, expected, findings = run(text_of(**parts), turns)
    np.testing.assert_array_equal(c, expected)
    assert findings == (), [str(one) for one in findings]
    assert versions(result) == stages


AS_THEY_ARE = {
    "products that run on": {"multiply": "T.wgmma_gemm(A_s, B_s, C_l); T.wait_wgmma(1)", "first": "T.wait_wgmma(0)"},
    "a place that memory decides": {"first": "at = T.Cast('int32', A[0, 0] * 0) + ko * 32", "column": "at"},
    "a use before the waits": {"first": "T.clear(A_s)"},
    "another parity": {"turns": 2, "parity": "ko // 2"},
}


@pytest.mark.parametrize("name", AS_THEY_ARE)
def test_what_is_not_sure_stays_as_it_is(name: str) -> None:
    result = lowered(text_of(**AS_THEY_ARE[name]), {})
    assert versions(result) == 1


def test_a_text_that_names_its_versions_is_left_to_it() -> None:
    text = text_of(parity="(ko // 3) % 2").replace("(128, 32)", "(3, 128, 32)").replace("(32, 128)", "(3, 32, 128)")
    text = text.replace("T.alloc_barrier(128)", "T.alloc_barrier([128] * 3)").replace("[128, 5]", "[128] * 3")
    text = text.replace("A_s,", "A_s[ko % 3, :, :],").replace("B_s,", "B_s[ko % 3, :, :],")
    text = text.replace("a_here)\n", "a_here[ko % 3])\n").replace("(a_here,", "(a_here[ko % 3],")
    text = text.replace("b_here[0]", "b_here[ko % 3]")
    result, c, expected, findings = run(text)
    np.testing.assert_array_equal(c, expected)
    assert findings == (), [str(one) for one in findings]
    assert versions(result) == 3


def test_too_many_stages_for_the_memory_are_fewer() -> None:
    result, c, expected, findings = run(text_of(stages=20))
    np.testing.assert_array_equal(c, expected)
    assert findings == () and versions(result) == 14


@pytest.mark.parametrize("parity", ["(ko + 1) % 2", "(ko + ko // 8) % 2"])
def test_a_wait_for_the_wrong_lap_is_found(parity: str) -> None:
    """Also where it is the wrong one in late turns only."""
    text = text_of(parity=parity)
    _, _, _, findings = run(text)
    assert findings and findings[0].code in ("TL401", "TL405")
    line = text.splitlines()[findings[0].span.line - 1]
    assert "A_s" in line or "a_here" in line


@pytest.mark.parametrize("name", ["two stages", "turns of the arguments", "two warp groups"])
def test_the_device_compiler_takes_them(name: str) -> None:
    program = generate(lowered(text_of(**TURNS[name][0]), {}), arch="sm_90a", options={})
    assert not program.diagnostics and program.cubin
