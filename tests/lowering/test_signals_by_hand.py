"""Signals between the parts of a block: named barriers that one side only arrives at, and copies that arrive when they
have landed.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from lowering.hopper import lowered

import tilelang_nb
from tilelang_nb.device import generate
from tilelang_nb.simulator import Program

NAMED = """
@T.prim_func
def k(A: T.Tensor((4, 128), "float32"), B: T.Tensor((4, 128), "float32")):
    with T.Kernel(1, threads=256):
        s = T.alloc_shared((128,), "float32")
        with T.ws(0):
            for n in range(4):
                if n > 0:
                    T.sync_threads(9, 256)
                for i in T.Parallel(128):
                    s[i] = A[n, i] * 2
                {arrive}
        with T.ws(1):
            for n in range(4):
                T.sync_threads(8, 256)
                for i in T.Parallel(128):
                    B[n, i] = s[127 - i]
                if n < 3:
                    {free}
"""
ARRIVE, FREE = "T.named_barrier_arrive(8, 256)", "T.named_barrier_arrive(9, 256)"
LANDED = """
@T.prim_func
def k(A: T.Tensor((6, 512), "float32"), B: T.Tensor((6, 512), "float32")):
    with T.Kernel(1, threads=256):
        s = T.alloc_shared((2, 512), "float32")
        full = T.alloc_barrier([128] * 2)
        empty = T.alloc_barrier([128] * 2)
        with T.ws(0):
            for n in range(6):
                T.barrier_wait(empty[n % 2], (n // 2 % 2) ^ 1)
                T.async_copy(A[n, 0:512], s[n % 2, 0:512])
                T.cp_async_barrier_noinc(full[n % 2])
        with T.ws(1):
            for n in range(6):
                {wait}
                for i in T.Parallel(512):
                    B[n, i] = s[n % 2, 511 - i]
                T.barrier_arrive(empty[n % 2])
"""
WAIT = "T.barrier_wait(full[n % 2], n // 2 % 2)"
RESTARTED = """
@T.prim_func
def k(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=64):
        s = T.alloc_shared((64,), "float32")
        bar = T.alloc_barrier(7)
        T.ptx_init_barrier_thread_count(bar, 64)
        T.ptx_fence_barrier_init()
        T.pdl_sync()
        i = T.get_thread_binding()
        s[i] = A[i]
        T.barrier_arrive(bar)
        T.barrier_wait(bar, 0)
        B[i] = s[63 - i]
        T.pdl_trigger()
"""


def run(text: str, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray, tuple[Any, ...]]:
    """(A, B, findings)."""
    a = np.random.default_rng(3).integers(-9, 9, shape).astype(np.float32)
    b = np.full(shape, np.nan, np.float32)
    findings = Program(lowered(text, {}).launches[0]).run({"A": a, "B": b}).findings
    return a, b, findings


def line_of(text: str, part: str) -> int:
    return 1 + next(number for number, line in enumerate(text.splitlines()) if part in line)


def test_one_side_arrives_and_the_other_one_waits() -> None:
    a, b, findings = run(NAMED.format(arrive=ARRIVE, free=FREE), (4, 128))
    np.testing.assert_array_equal(b, a[:, ::-1] * 2)
    assert findings == (), [str(one) for one in findings]


def test_named_barriers_of_the_text_and_of_its_parts_are_apart() -> None:
    """Exchanges within the parts of T.ws have barriers of the compiler's: numbers 1 and 2."""
    text = NAMED.replace(
        "s[i] = A[n, i] * 2",
        "u[i] = A[n, i]\n                for i in T.Parallel(128):\n                    s[i] = u[127 - i] * 2",
    )
    text = text.replace("        with T.ws(0):", '        u = T.alloc_shared((128,), "float32")\n        with T.ws(0):')
    text = text.format(arrive="T.named_barrier_arrive(2, 256)", free="T.named_barrier_arrive(1, 256)")
    text = text.replace("T.sync_threads(9, 256)", "T.sync_threads(1, 256)").replace(
        "T.sync_threads(8, 256)", "T.sync_threads(2, 256)"
    )
    a, b, findings = run(text, (4, 128))
    np.testing.assert_array_equal(b, a * 2)
    assert findings == (), [str(one) for one in findings]
    numbers = re.findall(
        r"T\.ptx\.bar\((?:T\.uint32\()?(\d+)\)?, (?:T\.uint32\()?(\d+)", str(lowered(text, {}).launches[0])
    )
    assert {"128", "256"} == {count for _, count in numbers}
    assert {number for number, count in numbers if count == "128"} == {"1"}
    assert {number for number, count in numbers if count == "256"} == {"15", "14"}


def test_more_named_barriers_than_there_are_is_said() -> None:
    every = "\n            ".join(f"T.named_barrier_arrive({number}, 256)" for number in range(16))
    text = NAMED.format(arrive=ARRIVE, free=FREE).replace(
        "        with T.ws(0):\n", f"        with T.ws(0):\n            {every}\n"
    )
    cell = tilelang_nb.compile_cell(text, {}, target="sim", arch="sm_90a")
    (found,) = [one for one in cell.diagnostics if one.severity == "error"]
    assert found.code == "TL302" and "16 named barriers beside those of 2 parts" in found.message


def test_a_missing_arrival_at_a_named_barrier_is_found() -> None:
    text = NAMED.format(arrive=ARRIVE, free="pass")
    _, _, findings = run(text, (4, 128))
    assert [one.code for one in findings] == ["TL405"] and "barrier 9: 128 of 256 threads" in findings[0].message


def test_arrivals_that_nobody_waits_for_leave_a_race() -> None:
    text = NAMED.format(arrive=ARRIVE, free=FREE).replace("                T.sync_threads(8, 256)\n", "")
    text = text.replace("                if n > 0:\n                    T.sync_threads(9, 256)\n", "")
    _, _, findings = run(text, (4, 128))
    assert {one.code for one in findings} >= {"TL401"}


def test_copies_arrive_when_they_have_landed() -> None:
    a, b, findings = run(LANDED.format(wait=WAIT), (6, 512))
    np.testing.assert_array_equal(b, a[:, ::-1])
    assert findings == (), [str(one) for one in findings]


def test_reading_before_the_copies_have_landed_is_found() -> None:
    text = LANDED.format(wait="pass")
    _, _, findings = run(text, (6, 512))
    assert ("TL401", line_of(text, "B[n, i] =")) in [(one.code, one.span.line) for one in findings]
    assert any("while an asynchronous copy is writing it" in one.message for one in findings)


SOURCE = """
@T.prim_func
def k(A: T.Tensor((8, 64), "float32"), B: T.Tensor((8, 64), "float32")):
    with T.Kernel(1, threads=64):
        s = T.alloc_shared((8, 64), "float32")
        here = T.alloc_barrier(64)
        {copy}
        {early}
        {wait}
        {late}
        T.copy(s, B)
"""
CHANGED = "for i, j in T.Parallel(8, 64):\n            A[i, j] = 5"
STARTS = {
    "by the threads": ("T.async_copy(A, s)", "T.ptx_wait_group(0)", "while an asynchronous copy is reading it"),
    "in bulk": (
        "T.tma_copy(A, s, barrier=here); T.barrier_arrive(here)",
        "T.barrier_wait(here, 0)",
        "while a bulk copy is reading it",
    ),
}


@pytest.mark.parametrize("name", STARTS)
def test_a_source_that_is_written_while_a_copy_reads_it_is_found(name: str) -> None:
    copy, wait, words = STARTS[name]
    text = SOURCE.format(copy=copy, early=CHANGED, wait=wait, late="pass")
    _, _, findings = run(text, (8, 64))
    assert [(one.code, one.span.line) for one in findings] == [("TL401", line_of(text, "A[i, j] = 5"))]
    assert words in findings[0].message
    before = np.random.default_rng(3).integers(-9, 9, (8, 64)).astype(np.float32)
    after, b, findings = run(SOURCE.format(copy=copy, early="pass", wait=wait, late=CHANGED), (8, 64))
    np.testing.assert_array_equal(b, before)
    assert (after == 5).all() and findings == (), [str(one) for one in findings]


def test_a_barrier_is_started_anew() -> None:
    a, b, findings = run(RESTARTED, (64,))
    np.testing.assert_array_equal(b, a[::-1])
    assert findings == (), [str(one) for one in findings]


@pytest.mark.parametrize("text", [NAMED.format(arrive=ARRIVE, free=FREE), LANDED.format(wait=WAIT), RESTARTED])
def test_the_device_compiler_takes_them(text: str) -> None:
    program = generate(lowered(text, {}), arch="sm_90a", options={})
    assert not program.diagnostics and program.cubin
