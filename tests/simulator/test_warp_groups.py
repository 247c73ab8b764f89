"""Faults in programs of bulk copies, mbarriers and wgmma: each is planted by one change, and found with its line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tvm_ffi
from lowering.hopper import MATMUL, changed, dropped, matmul, run
from tvm import tirx as tir

LINES = MATMUL.splitlines()
COPY_A = next(number for number, line in enumerate(LINES, 1) if "A_s)" in line and "copy" in line)
COPY_B, GEMM, STORE = COPY_A + 1, COPY_A + 2, COPY_A + 3


def with_operand(name: str, position: int, number: int, old: int | None = None) -> Callable[[str, Any], Any]:
    def change(found: str, call: Any) -> Any:
        if name not in found or (old is not None and int(call.args[position]) != old):
            return call
        operands = list(call.args)
        operands[position] = tir.const(number, str(operands[position].ty.dtype))
        return tir.call_intrin("void", call.op.name, *operands)

    return change


def faults(change: Callable[[str, Any], Any]) -> list[tuple[str, int | None, str]]:
    case = matmul(k=384)
    _, report = run(case, changed(case.launch, change))
    return [(one.code, one.span and one.span.line, one.message) for one in report.findings]


def test_the_program_without_a_fault_has_no_finding() -> None:
    case = matmul(k=384)
    result, report = run(case)
    np.testing.assert_array_equal(result, case.expected)
    assert report.findings == ()


EXPECTED: dict[str, tuple[Callable[[str, Any], Any], str, int, str]] = {
    "a product that does not wait for its tiles": (
        dropped("mbarrier_wait", "full"), "TL401", GEMM, "while an asynchronous copy is writing it",
    ),
    "a copy that does not wait until a tile is free": (
        dropped("mbarrier_wait", "empty"), "TL401", COPY_A, "while an asynchronous copy is writing it",
    ),
    "tiles that are never given free": (
        dropped("mbarrier_arrive", "empty"), "TL405", GEMM, "thread 256 waits for 8 of 8 arrivals at the barrier `empty`",
    ),
    "accumulators that are read while the product runs": (
        dropped("wgmma_wait_group"), "TL401", STORE, "while a matrix product is still adding to it",
    ),
    "a product that belongs to no group": (
        dropped("wgmma_commit_group"), "TL401", STORE, "while a matrix product is still adding to it",
    ),
    "bytes that nobody announced": (
        dropped("expect_tx"), "TL405", GEMM, "bytes more have reached than were announced to it",
    ),
    "fewer bytes announced than come": (
        with_operand("expect_tx", 1, 49152 - 128), "TL405", GEMM, "128 bytes more have reached",
    ),
    "more bytes announced than come": (
        with_operand("expect_tx", 1, 49152 + 128), "TL405", GEMM, "128 bytes at the barrier `full` that no copy brings",
    ),
    "more registers than there are": (
        with_operand("setmaxnreg", 0, 248, 232), "TL405", GEMM, "wait for 248 registers for each thread",
    ),
    "registers taken that are there": (
        with_operand("setmaxnreg", 0, 96, 232), "TL405", COPY_A - 1, "they hold 168",
    ),
}  # fmt: skip


THROUGH_SHARED: dict[str, tuple[str, str]] = {
    "stores that no fence makes visible to the copy": ("fence_proxy", "no fence makes ordinary stores visible"),
    "a copy that does not wait for the stores": ("bar_sync", "nothing orders the two"),
    "a box that is stored to while it is read": ("bulk_wait_group", "while a tensor store is reading it"),
    "copies that belong to no group": ("bulk_commit_group", "while a tensor store is reading it"),
}


@pytest.mark.parametrize("name", THROUGH_SHARED)
def test_a_fault_of_results_on_their_way_through_shared_memory_is_found(name: str) -> None:
    call, words = THROUGH_SHARED[name]
    case = matmul(stages=4, out="float16")
    _, report = run(case, changed(case.launch, dropped(call)))
    assert {one.code for one in report.findings} == {"TL401"}
    assert any(words in one.message for one in report.findings)


@pytest.mark.parametrize("name", EXPECTED)
def test_a_planted_fault_is_found_at_its_line(name: str) -> None:
    change, code, line, words = EXPECTED[name]
    found = faults(change)
    assert any(one == (code, line) and words in message for *one, message in found for one in [tuple(one)]), found


def test_a_tile_given_free_before_the_product_is_over_is_found() -> None:
    """The wait for the product moves behind the arrival that gives its tiles free."""
    case = matmul(k=384)

    def late(node: Any) -> Any:
        names = [getattr(getattr(getattr(one, "value", None), "op", None), "name", "") for one in node.seq]
        if "tirx.ptx.wgmma_wait_group" not in names:
            return node
        every = list(node.seq)
        wait = every.pop(names.index("tirx.ptx.wgmma_wait_group"))
        return tir.SeqStmt([*every, wait], node.span)

    launch = case.launch.with_body(tvm_ffi.structural_map(case.launch.body, (tir.SeqStmt, late)))
    _, report = run(case, launch)
    assert {(one.code, one.span and one.span.line) for one in report.findings} == {
        ("TL401", COPY_A),
        ("TL401", COPY_B),
    }
