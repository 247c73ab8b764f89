"""Named barriers that are used by threads that do not belong together, or count others than those who come."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pytest

import tilelang_nb

TEXT = """
@T.prim_func
def k(X: T.Tensor((256,), "int32"), Y: T.Tensor((256,), "int32")):
    with T.Kernel(2, threads=256) as b:
        t = T.get_thread_binding()
        s = T.alloc_shared((256,), "int32")
{body}
"""


def run(body: str, right: bool):
    """(findings, Y)"""
    lines = "\n".join("        " + line for line in body.strip("\n").splitlines())
    cell = tilelang_nb.compile_cell(TEXT.format(body=lines), {}, target="sim", arch="sm_90a")
    assert cell.ok, cell.to_text()
    x, y = np.arange(256, dtype=np.int32), np.full(256, -1, np.int32)
    with nullcontext() if right else pytest.warns():
        cell.namespace["k"](x, y)
    return cell.namespace["k"].findings, y


HALVES = "if t < 128:\n    {}\nelse:\n    {}"
TURNS = """
if t < 128:
    for i in range(4):
        {there}
        T.sync_threads(2, 256)
else:
    for i in range(4):
        T.sync_threads(1, 256)
        {back}
"""
WRONG = {  # text, line, line of the note, a part of the message
    "two halves meet at one barrier": (HALVES.format(*["T.sync_threads(1, 128)"] * 2), 10, 8, "nothing orders the two"),
    "two roles meet at one barrier": (
        "with T.ws(0):\n    T.sync_threads(1, 128)\nwith T.ws(1):\n    T.sync_threads(1, 128)", 10, 8, "threads 0 to 127",
    ),
    "two groups of a role, counted as one": (
        "with T.ws(0, 1):\n    T.sync_threads(1, 128)\n    Y[t] = 1", 8, None, "come to this barrier",
    ),
    "more come than it counts": ("if t < 128:\n    T.sync_threads(1, 64)", 8, None, "128 threads of block (0, 0, 0)"),
    "all threads come to a barrier of a half": ("T.sync_threads(1, 128)", 7, None, "opens for every 128"),
    "the sides count other numbers": (
        HALVES.format("T.named_barrier_arrive(1, 128)", "T.sync_threads(1, 256)"), 10, 8, "128 to 255 of block (0, 0, 0)",
    ),
    "an arrival before the last one is taken": (
        HALVES.format("T.named_barrier_arrive(1, 256)\n    T.named_barrier_arrive(1, 256)", "T.sync_threads(1, 256)\n    T.sync_threads(1, 256)"),
        9, 8, "again before it has opened",
    ),
    "a part of a warp": ("if t < 48:\n    T.sync_threads(1, 64)", 8, None, "thread (48, 0, 0) of block (0, 0, 0) does not"),
    "every other thread": ("if t % 2 == 0:\n    T.sync_threads(1, 128)", 8, None, "only some threads of a warp"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_barrier_of_others_is_found_with_both_lines(name: str) -> None:
    body, line, other, text = WRONG[name]
    findings, _ = run(body, False)
    first = next(one for one in findings if "no thread can go on" not in one.message)
    lines = {first.span.line, *(note.span.line for note in first.notes if note.span)}
    assert first.code == "TL405" and text in first.message and first.help
    assert line in lines and (other is None or other in lines)


RIGHT = {
    "two halves with barriers of their own": HALVES.format("T.sync_threads(1, 128)", "T.sync_threads(2, 128)"),
    "one barrier again, behind one of the block": (
        "if t < 128:\n    T.sync_threads(1, 128)\nT.sync_threads()\nif t >= 128:\n    T.sync_threads(1, 128)"
    ),
    "two sides take turns": TURNS.format(there="T.named_barrier_arrive(1, 256)", back="T.named_barrier_arrive(2, 256)"),
    "one side waits at both": TURNS.format(there="T.sync_threads(1, 256)", back="T.sync_threads(2, 256)"),
    "a role again and again": "with T.ws(0, 1):\n    for i in range(3):\n        T.sync_threads(1, 256)",
    "warps of their own": "if t < 32:\n    T.sync_threads(1, 32)\nelse:\n    T.sync_threads(2, 224)",
    "one after the other by an mbarrier": """
full = T.alloc_barrier(128)
if t < 128:
    T.sync_threads(1, 128)
    T.barrier_arrive(full)
else:
    T.barrier_wait(full, 0)
    T.sync_threads(1, 128)
""",
}


@pytest.mark.parametrize("name", RIGHT)
def test_barriers_that_belong_together_have_no_finding(name: str) -> None:
    findings, _ = run(RIGHT[name], True)
    assert findings == ()


def test_what_a_barrier_orders_is_computed_as_if_all_waited() -> None:
    halves = "s[t] = X[t]\n    T.sync_threads({}, 128)\n    Y[t] = s[{} - t]"
    findings, y = run(HALVES.format(halves.format(1, 127), halves.format(2, 383)), True)
    assert findings == () and (y.reshape(2, 128) == np.arange(256).reshape(2, 128)[:, ::-1]).all()
