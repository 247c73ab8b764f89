"""Asynchronous copies belong to the thread that starts them: so do their groups and waits, in branches too."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pytest

import tilelang_nb

TEXT = """
@T.prim_func
def k(P: T.Tensor((512,), "int32"), Y: T.Tensor((512,), "int32")):
    with T.Kernel(2, threads=128) as b:
        t = T.get_thread_binding()
        s = T.alloc_shared((512,), "int32")
{body}
"""
COPY = 'T.ptx_cp_async(T.access_ptr(s[{to}], "w"), T.access_ptr(P[t * 4], "r"), 4)'
START = COPY.format(to="t * 4") + "\nT.ptx_commit_group()"
READ = "T.sync_threads()\nfor i in range(4):\n    Y[i * 128 + t] = s[i * 128 + t]"


def run(body: str, right: bool):
    """(findings, Y)"""
    lines = "\n".join("        " + line for line in body.strip("\n").splitlines())
    cell = tilelang_nb.compile_cell(TEXT.format(body=lines), {}, target="sim")
    assert cell.ok, cell.to_text()
    p, y = np.arange(512, dtype=np.int32) + 1, np.full(512, -1, np.int32)
    with nullcontext() if right else pytest.warns():
        cell.namespace["k"](p, y)
    return cell.namespace["k"].findings, y


BRANCHES = "if t < 64:\n    {}\n    T.sync_threads(1, 64)\nelse:\n    {}\n    T.sync_threads(2, 64)"
WAIT = "T.ptx_wait_group(0)"
RIGHT = {
    "branches wait for what was started before them": f"{START}\n{BRANCHES.format(WAIT, WAIT)}\n{READ}",
    "what a branch has started is waited for behind it": f"{BRANCHES.format(*[START.replace(chr(10), chr(10) + '    ')] * 2)}\n{WAIT}\n{READ}",
    "a branch commits what was started before it": (
        f"{COPY.format(to='t * 4')}\n{BRANCHES.format('T.ptx_commit_group()', 'T.ptx_commit_group()')}\n{WAIT}\n{READ}"
    ),
    "halves wait one after the other": f"{START}\nif t < 64:\n    {WAIT}\nif t >= 64:\n    {WAIT}\n{READ}",
    "a group of some threads is none of the others": (
        f"{START}\nif t < 64:\n    T.ptx_commit_group()\nT.ptx_wait_group(1)\nif t >= 64:\n    {WAIT}\n{READ}"
    ),
    "a barrier counts the copies of all": (
        f"full = T.alloc_barrier(128)\n{COPY.format(to='t * 4')}\nT.cp_async_barrier_noinc(full)\nT.barrier_wait(full, 0)\n{READ}"
    ),
    "a barrier counts the copies of halves": (
        f"full = T.alloc_barrier(128)\n{START}\nif t < 64:\n    T.cp_async_barrier_noinc(full)\nif t >= 64:\n    T.cp_async_barrier_noinc(full)\nT.barrier_wait(full, 0)\n{READ}"
    ),
}  # fmt: skip
WRONG = {
    "only half of the threads wait": f"{START}\nif t < 64:\n    {WAIT}\n{READ}",
    "only one branch waits": f"{START}\n{BRANCHES.format(WAIT, 'pass')}\n{READ}",
    "a wait under a condition on data": f"{START}\nif P[t] < 100:\n    {WAIT}\n{READ}",
    "only half of the threads commit": f"{START.replace('T.ptx_commit', 'if t < 64: T.ptx_commit')}\n{WAIT}\n{READ}".replace(WAIT, "T.ptx_wait_group(0)"),
    "a wait that leaves one group of half of the threads": (
        f"{START}\nif t < 64:\n    T.ptx_commit_group()\nT.ptx_wait_group(1)\n{READ}"
    ),
    "a barrier that counts the copies of half of the threads": (
        f"full = T.alloc_barrier(64)\n{COPY.format(to='t * 4')}\nif t < 64:\n    T.cp_async_barrier_noinc(full)\nT.barrier_wait(full, 0)\n{READ}"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", RIGHT)
def test_copies_that_are_waited_for_have_landed(name: str) -> None:
    findings, y = run(RIGHT[name], True)
    assert findings == () and (y == np.arange(512) + 1).all()


@pytest.mark.parametrize("name", WRONG)
def test_copies_of_threads_that_did_not_wait_are_found_with_both_lines(name: str) -> None:
    findings, _ = run(WRONG[name], False)
    lines = TEXT.format(body=WRONG[name]).splitlines()
    copy, read = (next(i + 1 for i, line in enumerate(lines) if word in line) for word in ("cp_async(", "= s[i"))
    assert findings and all(one.code == "TL401" and one.span.line == read for one in findings)
    assert {note.span.line for one in findings for note in one.notes if note.span} == {copy}
