"""TL215: asynchronous copies by hand that nothing waits for, at their lines and with what to write."""

from __future__ import annotations

import textwrap

import pytest
from lowering import cells

HEAD = """
@T.prim_func
def k(A: T.Tensor((8, 64), "float32"), C: T.Tensor((8, 64), "float32")):
    with T.Kernel(1, threads=32) as bx:
        s = T.alloc_shared((64,), "float32")
        t = T.alloc_shared((64,), "float32")
        ring = T.alloc_shared((3, 64), "float32")
        tx = T.get_thread_binding()
"""
TAKES_S = "for x in T.Parallel(64):\n    C[0, x] = s[63 - x]"
TAKES_RING = "for x in T.Parallel(64):\n        C[i, x] = ring[i % 3, 63 - x]"


def found(*parts: str) -> list[tuple[str, str]]:
    """(statement, help) of each TL215."""
    text = (HEAD + textwrap.indent("\n".join(parts), " " * 8)).strip("\n") + "\n"
    kernel = cells.build(text)
    assert not kernel.errors, kernel.found
    lines = text.splitlines()
    said = [one for one in kernel.found if one.code == "TL215"]
    return [(lines[one.span.line - 1].strip(), one.help) for one in said]


END = "put `T.ptx_wait_group(0)` before the end of the kernel, and before its data is used"


def test_a_copy_without_any_wait():
    assert found("T.async_copy(A[0, :], s)") == [("T.async_copy(A[0, :], s)", END)]


def test_a_copy_by_each_thread_without_any_wait():
    copy = "T.ptx_cp_async(s[tx * 2], A[0, tx * 2], 2)"
    assert found(copy, "T.ptx_commit_group()") == [(copy, END)]


def test_a_group_that_never_ends_is_never_waited_for():
    copy = "T.ptx_cp_async(s[tx * 2], A[0, tx * 2], 2)"
    ((statement, advice),) = found(copy, "T.ptx_wait_group(0)")
    assert statement == copy and "`T.ptx_commit_group()`" in advice


def test_the_last_group_of_a_wait_that_lets_one_be_under_way():
    ((statement, advice),) = found(
        "T.async_copy(A[0, :], s)", "T.async_copy(A[1, :], t)", "T.ptx_wait_group(1)", TAKES_S
    )
    assert statement == "T.async_copy(A[1, :], t)"
    assert advice == "put `T.ptx_wait_group(0)` behind `T.ptx_wait_group(1)`, which lets one group be under way"


def test_copies_in_a_loop_without_a_wait():
    loop = "for i in T.serial(3):\n    T.async_copy(A[i, :], ring[i, :])"
    assert found(loop) == [("T.async_copy(A[i, :], ring[i, :])", END)]


def test_a_copy_behind_the_last_wait():
    copies = ["T.async_copy(A[0, :], s)", "T.ptx_wait_group(0)", TAKES_S, "T.async_copy(A[1, :], t)"]
    assert found(*copies) == [("T.async_copy(A[1, :], t)", END)]


def test_the_copy_of_the_last_turn_whose_wait_stands_in_front_of_it():
    copy = "T.async_copy(A[i, :], ring[i % 3, :])"
    ((statement, advice),) = found(f"for i in T.serial(8):\n    T.ptx_wait_group(0)\n    T.sync_threads()\n    {copy}")
    assert statement == copy and "behind the loop" in advice


WAITED = {
    "a wait": ("T.async_copy(A[0, :], s)", "T.ptx_wait_group(0)"),
    "groups in order": (
        "T.async_copy(A[0, :], s)", "T.async_copy(A[1, :], t)", "T.ptx_wait_group(1)", TAKES_S, "T.ptx_wait_group(0)",
    ),
    "an empty group behind it": ("T.async_copy(A[0, :], s)", "T.ptx_commit_group()", "T.ptx_wait_group(1)"),
    "a group of several copies": (
        "T.ptx_cp_async(s[tx * 2], A[0, tx * 2], 2)", "T.ptx_cp_async(t[tx * 2], A[1, tx * 2], 2)",
        "T.ptx_commit_group()", "T.ptx_wait_group(0)",
    ),
    "a ring": (
        "for i in T.unroll(2):\n    T.async_copy(A[i, :], ring[i, :])",
        "for i in T.serial(8):\n    T.ptx_wait_group(1)\n    if i + 2 < 8:\n        T.async_copy(A[i + 2, :], ring[(i + 2)"
        f" % 3, :])\n    else:\n        T.ptx_commit_group()\n    {TAKES_RING}",
    ),
    "a condition that leaves out the last turn": (
        "for i in T.serial(8):\n    T.ptx_wait_group(0)\n    if i < 7:\n        T.async_copy(A[i, :], ring[i % 3, :])",
    ),
    "an arrival that counts the copies": (
        "full = T.alloc_barrier(32)", "T.async_copy(A[0, :], s)", "T.cp_async_barrier_noinc(full)",
        "T.barrier_wait(full, 0)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WAITED)
def test_nothing_is_said_of(name):
    assert found(*WAITED[name]) == []


def test_copies_that_the_compiler_runs_ahead_are_waited_for():
    body = (
        f"for i in T.Pipelined(8, num_stages=2):\n    T.copy(A[i, :], s)\n    {TAKES_RING.replace('ring[i % 3,', 's[')}"
    )
    assert found(body) == []
