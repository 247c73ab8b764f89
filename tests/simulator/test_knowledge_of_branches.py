"""Barriers and waits that are missing around branches: what some threads know, the others of their strand do not."""

from __future__ import annotations

import numpy as np
import pytest
from simulator.nodes import *
from simulator.running import clean, found

X, Y = buffer("X", (256,), "float32"), buffer("Y", (256,), "float32")
TILE = shared("tile", 256, "float32")
BARS = shared("bars", 4, "uint64")
K = var("k")


def arguments():
    return {"X": np.arange(256, dtype=np.float32) + 1, "Y": np.zeros(256, np.float32)}


def init(t, *counts):
    made = [
        evaluate(ptx["mbarrier.init.shared.b64"](address(BARS, i32(i)), u32(count))) for i, count in enumerate(counts)
    ]
    return [when(t.equal(0), seq(*made)), barrier()]


def arrive(index=0):
    return evaluate(ptx["mbarrier.arrive.shared::cta.b64"](address(BARS, i32(index))))


def wait(parity, index=0):
    return evaluate(cuda.mbarrier_wait(address(BARS, i32(index)), parity), 9)


def named(number, count):
    return evaluate(ptx["bar.sync"](u32(number), u32(count)), 8)


def write(t, line=3):
    return store(TILE, load(X, t), t, line=line)


def read(t, at, line=5):
    return store(Y, load(TILE, at), t, line=line)


NOTHING = evaluate(i32(0))


def before_a_branch(synchronised):
    def body(t, b):
        middle = barrier() if synchronised else NOTHING
        return [write(t), middle, when(t < 128, seq(named(1, 128), read(t, 255 - t)))]

    return launch([X, Y], body, threads=256, allocate=[TILE])


def behind_a_branch(synchronised):
    def body(t, b):
        middle = barrier() if synchronised else NOTHING
        return [when(t < 128, seq(named(1, 128), write(t))), middle, when(t >= 128, read(t, t - 128))]

    return launch([X, Y], body, threads=256, allocate=[TILE])


def two_branches(synchronised):
    def body(t, b):
        middle = barrier() if synchronised else NOTHING
        first = when(t < 128, seq(named(1, 128), write(t)), seq(named(2, 128), NOTHING))
        second = when(t < 128, seq(named(1, 128), NOTHING), seq(named(2, 128), read(t, t - 128)))
        return [first, middle, second]

    return launch([X, Y], body, threads=256, allocate=[TILE])


def one_waits_for_all(synchronised):
    """128 threads fill the tile; of the others one waits for it."""

    def body(t, b):
        middle = barrier() if synchronised else NOTHING
        return [*init(t, 128), when(t < 128, seq(write(t), arrive())), when(t.equal(200), wait(0)), middle,
                when(t >= 128, read(t, t - 128))]  # fmt: skip

    return launch([X, Y], body, threads=256, allocate=[TILE, BARS])


def some_wait_by_what_they_read(synchronised):
    """The condition of the wait is on data."""

    def body(t, b):
        middle = when(load(X, 0) > 0, barrier()) if synchronised else NOTHING
        odd = tir.floormod(tir.Cast("int32", load(X, t)), 2).equal(1)
        return [*init(t, 128), when(t < 128, seq(write(t), arrive())), when(odd, wait(0)), middle,
                when(t >= 128, read(t, t - 128))]  # fmt: skip

    return launch([X, Y], body, threads=256, allocate=[TILE, BARS])


def a_barrier_of_one_block(synchronised):
    def body(t, b):
        middle = barrier() if synchronised else when(b.equal(0), barrier())
        return [store(TILE, load(X, b * 64 + t), t, line=3), middle,
                store(Y, load(TILE, 63 - t), b * 64 + t, line=5)]  # fmt: skip

    return launch([X, Y], body, threads=64, blocks=3, allocate=[TILE])


def a_barrier_of_one_warp(synchronised):
    def body(t, b):
        sync = barrier(scope="warp")
        return [write(t), sync if synchronised else when(t < 32, sync), read(t, tir.bitwise_xor(t, i32(1)))]

    return launch([X, Y], body, threads=64, allocate=[TILE])


def a_barrier_of_some_lanes(synchronised):
    """Even lanes meet; lanes read from their neighbours, or from other even ones."""

    def body(t, b):
        even = tir.floormod(t, 2).equal(0)
        return [write(t), when(even, barrier(scope="warp")),
                when(even, read(t, tir.bitwise_xor(t, i32(2 if synchronised else 3))))]  # fmt: skip

    return launch([X, Y], body, threads=64, allocate=[TILE])


CASES = [
    before_a_branch, behind_a_branch, two_branches, one_waits_for_all, some_wait_by_what_they_read,
    a_barrier_of_one_block, a_barrier_of_one_warp, a_barrier_of_some_lanes,
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_a_barrier_between_is_enough_and_a_missing_one_is_found_with_both_lines(case):
    clean(case(True), arguments())
    assert ("TL401", 5, (3,)) in found(case(False), arguments())


def test_blocks_with_fewer_turns_have_their_own_barriers():
    def program(missing):
        def body(t, b):
            turn = [
                write(t),
                when(tir.Or(b > K, tir.const(not missing, "bool")), barrier()),
                read(t, 63 - t),
                barrier(),
            ]
            return [loop(K, b + 1, *turn)]

        return launch([X, Y], body, threads=64, blocks=3, allocate=[TILE])

    got, report = found(program(False), arguments()), found(program(True), arguments())
    assert not [one for one in got if "3" in str(one[2]) and one[0] == "TL401" and one[1] == 5]
    assert ("TL401", 5, (3,)) in report


def test_a_branch_again_and_again_knows_what_its_threads_did_before():
    """One thread waits, and all meet: many turns, and no end of what is known."""

    def body(t, b):
        turn = [
            when(t < 128, seq(write(t), arrive())),
            when(t.equal(200), wait(tir.floormod(K, 2))),
            barrier(),
            when(t >= 128, store(Y, load(Y, t) + load(TILE, t - 128), t, line=5)),
            barrier(),
        ]
        return [*init(t, 128), loop(K, 40, *turn)]

    got = clean(launch([X, Y], body, threads=256, allocate=[TILE, BARS]), arguments())["Y"]
    assert (got[128:] == 40 * arguments()["X"][:128]).all()
