"""Blocks that hand over data by atomic operations with an order, and threads that ask for what others store."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pytest

import tilelang_nb
from tilelang_nb.simulator.machine import block_order

HEAD = """
@T.prim_func
def k(P: T.Tensor((64,), "int32"), F: T.Tensor((4,), "int32"), Y: T.Tensor((64,), "int32")):
    with T.Kernel({blocks}, threads={threads}) as b:
        t = T.get_thread_binding()
{body}
"""


def run(body: str, blocks: int, threads: int, right: bool = True):
    """(findings as text, P, F, Y) of a launch on zeros."""
    lines = "\n".join("        " + line for line in body.strip("\n").splitlines())
    cell = tilelang_nb.compile_cell(HEAD.format(blocks=blocks, threads=threads, body=lines), {}, target="sim")
    assert cell.ok, cell.to_text()
    arrays = [np.zeros(size, np.int32) for size in (64, 4, 64)]
    with nullcontext() if right else pytest.warns():
        cell.namespace["k"](*arrays)
    return [str(one) for one in cell.namespace["k"].findings], *arrays


LAST_BLOCK = """
last = T.alloc_shared((1,), "int32")
{store}
if t == 0:
    last[0] = T.atomic_add(F[0], 1, memory_order={order}, return_prev=True)
T.sync_threads()
if last[0] == 3 and t == 5:
    total = T.alloc_var("int32", init=0)
    for i in range(4):
        total += P[i]
    Y[0] = total
"""
TOGETHER = "if t == 3:\n    P[b] = b + 1\nT.sync_threads()"


@pytest.mark.parametrize("most", [0, 1024])
def test_the_last_block_adds_up_what_all_have_stored(most, monkeypatch):
    monkeypatch.setattr(block_order, "MOST_MEETINGS", most)
    findings, _, _, y = run(LAST_BLOCK.format(store=TOGETHER, order='"acq_rel"'), 4, 64)
    assert findings == [] and y[0] == 10


@pytest.mark.parametrize(
    ("store", "order", "line"),
    [
        (TOGETHER, '"relaxed"', 16),
        (TOGETHER, "None", 16),
        (TOGETHER, '"release"', 16),
        (TOGETHER, '"acquire"', 16),
        ("if t == 3:\n    P[b] = b + 1", '"acq_rel"', 15),  # another thread releases than the one that stored
    ],
)
def test_what_orders_nothing_is_found_with_both_lines(store, order, line):
    findings, *_ = run(LAST_BLOCK.format(store=store, order=order), 4, 64, right=False)
    assert len(findings) == 1 and f"line {line}:" in findings[0] and "nothing orders the two" in findings[0]
    assert 'memory_order="release"' in findings[0]


FENCE = 'T.call_extern("void", "__threadfence{}")'
FENCED = """
last = T.alloc_shared((1,), "int32")
if t == 3:
    P[b] = b + 1
T.sync_threads()
if t == 0:
    {before}
    last[0] = T.atomic_add(F[0], 1, return_prev=True)
    {after}
T.sync_threads()
if last[0] == 3 and t == 5:
    total = T.alloc_var("int32", init=0)
    for i in range(4):
        total += P[i]
    Y[0] = total
"""


def test_fences_around_a_relaxed_counter_order_blocks():
    for kind in ("", "_system"):
        findings, _, _, y = run(FENCED.format(before=FENCE.format(kind), after=FENCE.format(kind)), 4, 64)
        assert findings == [] and y[0] == 10


@pytest.mark.parametrize(
    ("before", "after"), [("", None), (None, ""), (None, None), ("_block", "_block"), ("", "_block")]
)
def test_a_fence_on_one_side_or_for_the_block_orders_nothing(before, after):
    text = FENCED.format(
        **{
            name: "pass" if kind is None else FENCE.format(kind)
            for name, kind in (("before", before), ("after", after))
        }
    )
    findings, *_ = run(text, 4, 64, right=False)
    assert len(findings) == 1 and "reads an element of `P`" in findings[0]


def test_what_one_thread_acquired_the_others_know_after_a_barrier_of_the_block():
    text = """
if b == 0:
    if t == 0:
        P[0] = 7
        T.atomic_store(F[0], 1, memory_order="release")
else:
    if t == 0:
        while T.atomic_load(F[0], memory_order="acquire") == 0:
            pass
    {barrier}
    Y[t] = P[0]
"""
    findings, _, _, y = run(text.format(barrier="T.sync_threads()"), 2, 64)
    assert findings == [] and (y == 7).all()
    findings, *_ = run(text.format(barrier="pass"), 2, 64, right=False)
    assert len(findings) == 1 and "reads an element of `P`" in findings[0]


HANDED_OVER = """
if b == 0:
    {first}
    if t == {writer}:
        P[0] = 5
    {between}
    if {releasing}:
        T.atomic_add(F[0], 1, memory_order="release")
else:
    if t < 32:
        {before}
        if t == 0:
            while T.atomic_load(F[0], memory_order="acquire") == 0:
                pass
        {after}
        if t == {reader}:
            Y[0] = P[0]
"""
ALONE = {
    "first": "pass", "writer": 0, "between": "pass", "releasing": "t == 0", "before": "pass", "after": "pass", "reader": 0,
}  # fmt: skip


@pytest.mark.parametrize(
    ("parts", "right"),
    [
        ({}, True),
        ({"after": "T.sync_warp()", "reader": 9}, True),
        ({"before": "T.sync_warp()", "reader": 9}, False),
        ({"writer": 9, "between": "T.sync_warp()"}, True),
        ({"writer": 9, "first": "T.sync_warp()"}, False),
        ({"writer": 40, "between": "T.sync_warp()"}, False),
        ({"writer": 40, "between": "T.sync_threads()"}, True),
        ({"writer": 3, "releasing": "t == 0 or t == 7"}, False),
        ({"writer": 7, "releasing": "t == 0 or t == 7"}, True),
    ],
)
def test_other_threads_know_after_a_barrier_of_their_warp_or_block(parts, right):
    findings, *_ = run(HANDED_OVER.format(**ALONE | parts), 2, 64, right)
    assert right == (findings == []) and (right or "nothing orders the two" in findings[0])


def test_an_earlier_release_of_another_thread_stays_one():
    text = """
if b == 0:
    if t == 0:
        P[0] = 5
        T.atomic_store(F[0], 1, memory_order="release")
    if t == 40:
        P[1] = 6
        T.atomic_store(F[1], 1, memory_order="release")
else:
    if t == 0:
        while T.atomic_load(F[1], memory_order="acquire") == 0:
            pass
        while T.atomic_load(F[0], memory_order="acquire") == 0:
            pass
        Y[0] = P[0] + P[1]
"""
    findings, _, _, y = run(text, 2, 64)
    assert findings == [] and y[0] == 11


def test_blocks_take_turns():
    """Whichever comes first in the text: those that ask let the others run."""
    text = """
while T.atomic_load(F[0], memory_order="acquire") != {turn}:
    pass
Y[b] = Y[b] + P[0]
P[0] = P[0] + 1
T.atomic_store(F[0], F_next, memory_order="release")
"""
    for turn, following in (("b", "b + 1"), ("63 - b", "64 - b")):
        findings, p, f, y = run(text.replace("F_next", following).format(turn=turn), 64, 1)
        assert findings == [] and p[0] == 64 and f[0] == 64
        np.testing.assert_array_equal(y, np.arange(64) if turn == "b" else np.arange(64)[::-1])


LOCK = """
held = T.alloc_var("int32", init=1)
while held == 1:
    held = T.atomic_max(F[0], 1, memory_order={order}, return_prev=True)
P[0] = P[0] + b + 1
T.atomic_store(F[0], 0, memory_order="release")
"""


def test_a_lock_keeps_blocks_apart():
    findings, p, f, _ = run(LOCK.format(order='"acquire"'), 64, 1)
    assert findings == [] and p[0] == 64 * 65 // 2 and f[0] == 0
    findings, *_ = run(LOCK.format(order="None"), 4, 1, right=False)
    assert len(findings) == 1 and "`P`" in findings[0]


def test_threads_of_a_block_ask_for_what_others_of_it_store():
    text = """
S = T.alloc_shared((1,), "int32")
if t == 0:
    S[0] = 0
T.sync_threads()
if t < 32:
    while T.atomic_load(S[0]) == 0:
        pass
    Y[t] = T.atomic_load(S[0])
else:
    if t == 40:
        T.atomic_store(S[0], 9)
"""
    findings, _, _, y = run(text, 1, 64)
    assert findings == [] and (y[:32] == 9).all()


def test_a_loop_that_counts_its_turns_ends_by_itself():
    text = """
n = T.alloc_var("int32", init=0)
while T.atomic_load(F[0]) == 0:
    if n >= 200:
        break
    n += 1
Y[b] = n
"""
    findings, _, _, y = run(text, 2, 1)
    assert findings == [] and (y[:2] == 200).all()


@pytest.mark.parametrize("blocks", [2, 32])
def test_a_value_that_nobody_stores_is_a_deadlock_with_the_loop(blocks):
    findings, *_ = run("while T.atomic_load(F[1]) == 0:\n    pass\nF[1] = 1", blocks, 1, right=False)
    assert len(findings) == 1 and "TL405" in findings[0] and "line 6:" in findings[0]
    assert "block (0, 0, 0): all wait for another value in memory than this loop reads" in findings[0]
    assert ("28 more wait" in findings[0]) == (blocks == 32)
    findings, *_ = run("while T.atomic_max(F[1], 1, return_prev=True) == 1:\n    pass", blocks, 1, right=False)
    assert len(findings) == 1 and "TL405" in findings[0]


@pytest.mark.parametrize("turn", ["n += 1", "T.atomic_add(F[2], 1)"])
def test_a_loop_that_asks_for_ever_ends_though_its_turns_change_something(turn):
    text = f'n = T.alloc_var("int32", init=0)\nwhile T.atomic_load(F[1]) == 0:\n    {turn}\nY[0] = n'
    findings, *_ = run(text, 2, 1, right=False)
    assert len(findings) == 1 and "TL405" in findings[0] and "line 7:" in findings[0]
    assert "no other thread stores what would end it" in findings[0]


@pytest.mark.parametrize("order", ["acq_rel", "relaxed"])
def test_very_many_threads_at_many_places_in_one_operation(order):
    """They are not told apart then."""
    fence = 'T.call_extern("void", "__threadfence")'
    text = f'{fence}\nT.atomic_add(F[(b * 7 + t) % 4], 1, memory_order="{order}")\n{fence}'
    findings, _, f, _ = run(text, 400, 64)
    assert findings == [] and f.tolist() == [400 * 16] * 4
