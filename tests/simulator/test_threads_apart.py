"""Threads that wait for what others do behind the `if` in which they do not take part: no deadlock, as on a device."""

from __future__ import annotations

import numpy as np
import pytest
from simulator.nodes import *
from simulator.running import clean, found

import tilelang_nb

X, Y = buffer("X", (256,), "float32"), buffer("Y", (256,), "float32")
TILE = shared("tile", (2, 128), "float32")
BARS = shared("bars", 4, "uint64")
K = var("k")


def arguments():
    return {"X": np.arange(256, dtype=np.float32) + 1, "Y": np.zeros(256, np.float32)}


def init(t, *counts):
    made = [
        evaluate(ptx["mbarrier.init.shared.b64"](address(BARS, i32(i)), u32(count))) for i, count in enumerate(counts)
    ]
    return [when(t.equal(0), seq(*made)), barrier()]


def arrive(index):
    return evaluate(ptx["mbarrier.arrive.shared::cta.b64"](address(BARS, index)))


def wait(index, parity, line=None):
    return evaluate(cuda.mbarrier_wait(address(BARS, index), parity), line)


def use(t, slot=0, line=None):
    return store(Y, load(Y, t) + load(TILE, slot, 127 - t), t, line=line)


def fill(t, slot=0, line=None):
    return store(TILE, load(X, t - 128), slot, t - 128, line=line)


def test_what_others_wait_for_stands_behind_their_wait():
    def body(t, b):
        return [
            *init(t, 128),
            when(t < 128, seq(wait(i32(0), 0), use(t))),
            when(t >= 128, seq(fill(t), arrive(i32(0)))),
        ]

    got = clean(launch([X, Y], body, threads=256, allocate=[TILE, BARS]), arguments())["Y"]
    assert (got[:128] == arguments()["X"][:128][::-1]).all()


def ring(drop=""):
    def body(t, b):
        slot, phase = tir.floormod(K, 2), tir.floormod(tir.floordiv(K, 2), 2)
        taking = [wait(slot, phase, 20), use(t, slot, 21), arrive(slot + 2)]
        filling = [wait(slot + 2, 1 - phase, 10), fill(t, slot, 11), arrive(slot)]
        if drop:
            del (taking if drop == "full" else filling)[0]
        turn = [when(t < 128, seq(*taking)), when(t >= 128, seq(*filling))]
        return [*init(t, 128, 128, 128, 128), loop(K, 6, *turn)]

    return launch([X, Y], body, threads=256, blocks=1, allocate=[TILE, BARS])


def test_a_ring_in_one_loop_of_all_threads():
    got = clean(ring(), arguments())["Y"]
    assert (got[:128] == 6 * arguments()["X"][:128][::-1]).all()


@pytest.mark.parametrize("drop", ["full", "empty"])
def test_a_missing_wait_of_such_a_ring_is_found(drop):
    assert {code for code, _, _ in found(ring(drop), arguments())} <= {"TL401", "TL403", "TL405"}
    assert found(ring(drop), arguments())


def test_turns_of_a_loop_may_run_ahead():
    """The wait of a turn is for what the next turn of the others does."""

    def body(t, b):
        ahead = when(K.equal(3), arrive(i32(0)))
        turn = [when(t < 128, seq(wait(tir.floormod(K + 1, 4), 0), use(t))), when(t >= 128, seq(arrive(K), ahead))]
        start = when(t < 128, store(TILE, f32(2), 0, t))
        return [*init(t, 128, 128, 128, 128), start, barrier(), loop(K, 3, *turn), when(t >= 128, arrive(i32(3)))]

    got = clean(launch([X, Y], body, threads=256, allocate=[TILE, BARS]), arguments())["Y"]
    assert (got[:128] == 6).all()


def test_a_warp_stays_together_where_it_does_something_as_a_whole():
    out = buffer("OUT", (64,), "int32")

    def body(t, b):
        vote = store(out, shuffle("_xor", "int32", t, i32(1)), t)
        return [*init(t, 1), when(t.equal(3), wait(i32(0), 0)), vote, when(t.equal(40), arrive(i32(0)))]

    got = clean(launch([out], body, threads=64, allocate=[BARS]), {"OUT": np.zeros(64, np.int32)})["OUT"]
    assert (got == (np.arange(64) ^ 1)).all()


def test_a_barrier_of_the_block_ends_what_runs_apart():
    def body(t, b):
        apart = [when(t < 128, wait(i32(0), 0)), when(t >= 128, seq(fill(t), arrive(i32(0))))]
        return [*init(t, 128), *apart, barrier(), when(t < 128, use(t))]

    got = clean(launch([X, Y], body, threads=256, allocate=[TILE, BARS]), arguments())["Y"]
    assert (got[:128] == arguments()["X"][:128][::-1]).all()


def test_a_wait_for_what_the_same_threads_do_later_is_a_deadlock():
    def body(t, b):
        return [*init(t, 128), when(t < 128, wait(i32(0), 0, 7)), when(t < 128, arrive(i32(0)))]

    assert found(launch([X, Y], body, threads=256, allocate=[BARS]), arguments()) == [("TL405", 7, ())]


def test_registers_and_values_made_between_are_there_behind():
    reg = local("reg", 1, "float32")

    def body(t, b):
        twice = var("twice", "float32")
        return [
            *init(t, 128),
            store(reg, f32(1), 0),
            when(t < 128, seq(wait(i32(0), 0), store(reg, load(TILE, 0, t), 0))),
            tir.Bind(twice, load(reg, 0) * f32(2)),
            when(t >= 128, seq(fill(t), arrive(i32(0)))),
            store(Y, twice + load(reg, 0), t),
        ]

    got = clean(launch([X, Y], body, threads=256, allocate=[TILE, BARS, reg]), arguments())["Y"]
    assert (got == 3 * np.where(np.arange(256) < 128, arguments()["X"], 1)).all()


TEXT = """
@T.prim_func
def k(A: T.Tensor((384,), "int32"), C: T.Tensor((384,), "int32")):
    with T.Kernel({blocks}, threads=384):
        t = T.get_thread_binding()
        s = T.alloc_shared((128,), "int32")
        full = T.alloc_barrier(128)
        with T.ws(0, 1):
            if t < 128:
                T.barrier_wait(full, 0)
                C[t] = s[127 - t]
        with T.ws(1, 2):
            C[t] = 5
        with T.ws({last}):
            s[t - {last} * 128] = A[t]
            T.barrier_arrive(full)
"""


@pytest.mark.parametrize("blocks", [1, 3])
def test_a_later_part_of_other_threads_ends_the_wait_of_an_earlier_one(blocks):
    cell = tilelang_nb.compile_cell(TEXT.format(blocks=blocks, last=2), {}, target="sim", arch="sm_90a")
    assert cell.ok, cell.to_text()
    a, c = np.arange(384, dtype=np.int32), np.zeros(384, np.int32)
    cell.namespace["k"](a, c)
    assert not cell.namespace["k"].findings
    assert (c[:128] == a[256:][::-1]).all() and (c[128:] == 5).all()


def test_a_later_part_of_the_same_threads_does_not():
    cell = tilelang_nb.compile_cell(TEXT.format(blocks=1, last=0), {}, target="sim", arch="sm_90a")
    assert cell.ok, cell.to_text()
    with pytest.warns():
        cell.namespace["k"](np.arange(384, dtype=np.int32), np.zeros(384, np.int32))
    (finding,) = cell.namespace["k"].findings
    assert finding.code == "TL405" and finding.span.line == 10 and "threads 0 to 127" in finding.message
