"""Shuffles, votes and atomic operations: against loops over lanes in plain Python."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from simulator.nodes import *
from simulator.running import clean

LANES = np.arange(64)


def per_lane(expression, dtype="int32", x=None, threads=64):
    """expression(load of the lane's value, lane) for two warps."""
    values = (np.arange(threads) * 7 % 50).astype(np.int32) if x is None else x
    source, out = buffer("X", (threads,), str(values.dtype)), buffer("Y", (threads,), dtype)
    func = launch([source, out], lambda t, b: [store(out, expression(load(source, t), t), t)], threads=threads)
    return values, clean(func, {"X": values, "Y": np.zeros(threads, dtype)})["Y"]


@pytest.mark.parametrize("width", [32, 16, 8, 4])
@pytest.mark.parametrize("kind", ["_xor", "_down", "_up", ""])
@pytest.mark.parametrize("amount", [0, 1, 3, 8])
def test_shuffles_with_a_width(kind, width, amount):
    x, got = per_lane(lambda v, t: shuffle(kind, "int32", v, i32(amount), i32(width)))

    def source(lane):
        first = lane - lane % width
        at = {"_xor": lane ^ amount, "_down": lane + amount, "_up": lane - amount, "": first + amount % width}[kind]
        if kind == "_up":
            return at if at >= first else lane
        return at if at < first + width else lane

    assert got.tolist() == [x[source(lane)] for lane in LANES]


def test_a_shuffle_with_a_different_source_per_lane():
    x, got = per_lane(lambda v, t: shuffle("", "int32", v, tir.floormod(t * 5, 32)))
    assert got.tolist() == [x[lane - lane % 32 + lane * 5 % 32] for lane in LANES]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "bfloat16", "int64", "uint8"])
def test_shuffles_of_every_type(dtype):
    values = np.arange(64).astype(getattr(ml_dtypes, dtype, None) or dtype)
    source, out = buffer("X", (64,), dtype), buffer("Y", (64,), dtype)
    func = launch(
        [source, out], lambda t, b: [store(out, shuffle("_xor", dtype, load(source, t), i32(5)), t)], threads=64
    )
    assert (clean(func, {"X": values, "Y": np.zeros_like(values)})["Y"] == values[LANES ^ 5]).all()


def test_votes():
    mask = u32(0xFFFFFFFF)
    x, ballot = per_lane(lambda v, t: extern("uint32", "__ballot_sync", mask, tir.Cast("int32", v > 20)), "uint32")
    bits = [sum(1 << i for i in range(32) if x[w * 32 + i] > 20) for w in range(2)]
    assert ballot.tolist() == [bits[lane // 32] for lane in LANES]
    x, some = per_lane(lambda v, t: extern("int32", "__any_sync", mask, tir.Cast("int32", tir.And(v > 40, t < 32))))
    assert some.tolist() == [int(any(x[i] > 40 for i in range(32)))] * 32 + [0] * 32
    x, every = per_lane(lambda v, t: extern("int32", "__all_sync", mask, tir.Cast("int32", tir.Or(v > 0, t >= 32))))
    assert every.tolist() == [int(all(x[i] > 0 for i in range(32)))] * 32 + [1] * 32


def test_votes_count_the_lanes_that_take_part():
    out = buffer("Y", (64,), "uint32")
    func = launch(
        [out],
        lambda t, b: [when(tir.floormod(t, 3).equal(0), store(out, extern("uint32", "__activemask"), t))],
        threads=64,
    )
    got = clean(func, {"Y": np.zeros(64, np.uint32)})["Y"]
    bits = [sum(1 << i for i in range(32) if (w * 32 + i) % 3 == 0) for w in range(2)]
    assert got.tolist() == [bits[lane // 32] if lane % 3 == 0 else 0 for lane in LANES]


@pytest.mark.parametrize("threads", [6, 33, 50])
def test_blocks_that_do_not_fill_their_warps(threads):
    x, got = per_lane(lambda v, t: shuffle("_up", "int32", v, i32(1)), threads=threads)
    assert got.tolist() == [x[t - 1] if t % 32 else x[t] for t in range(threads)]
    mask = u32(0xFFFFFFFF)
    _, ballot = per_lane(lambda v, t: extern("uint32", "__ballot_sync", mask, i32(1)), "uint32", threads=threads)
    assert ballot.tolist() == [(1 << min(32, threads - t // 32 * 32)) - 1 for t in range(threads)]


def test_votes_over_the_block():
    x, count = per_lane(lambda v, t: extern("int32", "__syncthreads_count", tir.Cast("int32", v > 20)))
    assert (count == (x > 20).sum()).all()
    x, some = per_lane(lambda v, t: extern("int32", "__syncthreads_or", tir.Cast("int32", v > 48)))
    assert (some == int((x > 48).any())).all()
    x, every = per_lane(lambda v, t: extern("int32", "__syncthreads_and", tir.Cast("int32", v >= 0)))
    assert (every == 1).all()


OPERATIONS = {
    "add": lambda a, b: a + b,
    "max": max,
    "min": min,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "exchange": lambda a, b: b,
}


@pytest.mark.parametrize("scope", ["global", "shared"])
@pytest.mark.parametrize("cells", [1, 3, 40])
@pytest.mark.parametrize("name", OPERATIONS)
def test_integer_atomics_return_the_old_values_in_lane_order(name, cells, scope):
    rng = np.random.default_rng(7)
    x = rng.integers(-100, 100, 64).astype(np.int32)
    where = rng.integers(0, cells, 64).astype(np.int32)
    X, W, H, OLD = (buffer(n, (s,), "int32") for n, s in (("X", 64), ("W", 64), ("H", cells), ("OLD", 64)))
    s = shared("s", cells, "int32")
    target = s if scope == "shared" else H

    def body(t, b):
        call = extern("int32", f"tl_atomic_{name}", address(target, load(W, t)), load(X, t))
        statement = store(OLD, call, t)
        if scope == "global":
            return [statement]
        fill = when(t < cells, store(s, load(H, t), t))
        return [fill, barrier(), statement, barrier(), when(t < cells, store(H, load(s, t), t))]

    start = rng.integers(-50, 50, cells).astype(np.int32)
    func = launch([X, W, H, OLD], body, threads=64, allocate=[s] if scope == "shared" else [])
    got = clean(func, {"X": x, "W": where, "H": start, "OLD": np.zeros(64, np.int32)})
    memory, old = start.tolist(), []
    for lane in range(64):
        old.append(memory[where[lane]])
        memory[where[lane]] = OPERATIONS[name](memory[where[lane]], int(x[lane]))
    assert got["H"].tolist() == memory and got["OLD"].tolist() == old


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("cells", [1, 40])
def test_float_atomics_round_after_each_lane(dtype, cells):
    kind = np.dtype(getattr(ml_dtypes, dtype, None) or dtype)
    rng = np.random.default_rng(8)
    x = rng.standard_normal(64).astype(kind)
    where = rng.integers(0, cells, 64).astype(np.int32)
    X, W, H = buffer("X", (64,), dtype), buffer("W", (64,), "int32"), buffer("H", (cells,), dtype)
    func = launch(
        [X, W, H],
        lambda t, b: [evaluate(extern(dtype, "tl_atomic_add", address(H, load(W, t)), load(X, t)))],
        threads=64,
    )
    got = clean(func, {"X": x, "W": where, "H": np.ones(cells, kind)})["H"]
    memory = np.ones(cells, kind)
    for lane in range(64):
        memory[where[lane]] = memory[where[lane]] + x[lane]
    assert got.tobytes() == memory.tobytes()


def test_atomics_of_lanes_that_take_part_only():
    H, OLD = buffer("H", (1,), "int32"), buffer("OLD", (64,), "int32")
    call = extern("int32", "tl_atomic_add", address(H, 0), i32(2))
    func = launch([H, OLD], lambda t, b: [when(tir.floormod(t, 2).equal(1), store(OLD, call, t))], threads=64)
    got = clean(func, {"H": np.array([5], np.int32), "OLD": np.full(64, -1, np.int32)})
    assert (
        got["H"][0] == 5 + 64
        and got["OLD"][1::2].tolist() == list(range(5, 5 + 64, 2))
        and (got["OLD"][::2] == -1).all()
    )


def test_atomics_of_many_blocks():
    H = buffer("H", (2,), "int32")
    func = launch(
        [H],
        lambda t, b: [evaluate(extern("int32", "tl_atomic_add", address(H, tir.floormod(b, 2)), t))],
        threads=32,
        blocks=10,
    )
    assert clean(func, {"H": np.zeros(2, np.int32)})["H"].tolist() == [5 * 496] * 2


def test_atomic_load_and_store_do_not_race():
    H, Y = buffer("H", (1,), "int32"), buffer("Y", (64,), "int32")

    def body(t, b):
        write = when(t.equal(0), evaluate(extern("void", "tl_atomic_store", address(H, 0), i32(3))))
        return [write, store(Y, extern("int32", "tl_atomic_load", address(H, 0)), t)]

    assert (
        clean(launch([H, Y], body, threads=64), {"H": np.zeros(1, np.int32), "Y": np.zeros(64, np.int32)})["Y"] == 3
    ).all()


def test_atomics_inside_a_vector_loop():
    H = buffer("H", (8,), "int32")
    k = var("k")
    func = launch(
        [H],
        lambda t, b: [unroll(k, 4, evaluate(extern("int32", "tl_atomic_add", address(H, k * 2), t + k)))],
        threads=32,
    )
    assert clean(func, {"H": np.zeros(8, np.int32)})["H"].tolist() == [496, 0, 528, 0, 560, 0, 592, 0]


@pytest.mark.parametrize("form", ["same place", "same amount of the thread", "under a condition of the turn", "nested"])
def test_every_turn_of_a_loop_counts_though_nothing_of_the_atomic_moves_with_it(form):
    H, k, r = buffer("H", (2,), "int32"), var("k"), var("r")

    def body(t, b):
        add = evaluate(extern("int32", "tl_atomic_add", address(H, 0), t if "amount" in form else i32(1)))
        if "condition" in form:
            add = when(k < 3, add)
        return [unroll(k, 4, unroll(r, 2, add) if form == "nested" else add)]

    wanted = {"same amount of the thread": 4 * 496, "under a condition of the turn": 96, "nested": 256}.get(form, 128)
    got = clean(launch([H], body, threads=32), {"H": np.zeros(2, np.int32)})["H"]
    assert got.tolist() == [wanted, 0]


def test_the_old_values_of_an_atomic_are_those_of_its_turn():
    H, OLD, k = buffer("H", (1,), "int32"), buffer("OLD", (4,), "int32"), var("k")
    call = extern("int32", "tl_atomic_add", address(H, 0), i32(1))
    func = launch([H, OLD], lambda t, b: [unroll(k, 4, store(OLD, call, k))], threads=1)
    got = clean(func, {"H": np.zeros(1, np.int32), "OLD": np.zeros(4, np.int32)})
    assert got["H"].tolist() == [4] and got["OLD"].tolist() == [0, 1, 2, 3]


def test_an_atomic_operation_outside_is_found_and_skipped():
    from simulator.running import run

    H = buffer("H", (4,), "int32")
    call = lambda t: extern("int32", "tl_atomic_add", address(H, t), i32(1))
    result, report = run(launch([H], lambda t, b: [evaluate(call(t), line=3)], threads=8), {"H": np.zeros(4, np.int32)})
    assert [(f.code, f.span.line) for f in report.findings] == [("TL402", 3)] and result["H"].tolist() == [1] * 4
