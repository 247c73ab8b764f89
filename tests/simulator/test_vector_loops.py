"""Loops that run as array axes compute what they would turn by turn."""

from __future__ import annotations

import numpy as np
import pytest
from simulator.nodes import *
from simulator.running import clean

from tilelang_nb.simulator import Program

T = 32


def rows(results, count):
    return results.reshape(T, count)


def per_thread(count, statements, allocate, inputs=(), arrays=None, out_type="float32", result=None):
    """Run `statements(t)` and then write `result(k)` to out[t, k] for k < count, with loops that are not vectorised."""
    out = buffer("out", (T, count), out_type)
    func = launch(
        [*inputs, out],
        lambda t, b: [*statements(t), *[store(out, result(k), t, i32(k)) for k in range(count)]],
        threads=T,
        allocate=allocate,
    )
    return clean(func, (arrays or {}) | {"out": np.zeros((T, count), out_type)})["out"], func


def python_loops(func) -> int:
    return Program(func).source.count("\n  for ")


@pytest.mark.parametrize("kind", [SERIAL, UNROLLED, VECTORIZED])
def test_outer_product(kind):
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((T, 4)).astype(np.float32), rng.standard_normal((T, 3)).astype(np.float32)
    A, B = buffer("A", (T, 4), "float32"), buffer("B", (T, 3), "float32")
    ra, rb, c = local("ra", 4, "float32"), local("rb", 3, "float32"), local("c", 12, "float32")
    r, q = var("r"), var("q")

    def statements(t):
        product = load(c, r * 3 + q) + load(ra, r) * load(rb, q)
        return [
            loop(r, 4, store(ra, load(A, t, r), r), kind=kind),
            loop(q, 3, store(rb, load(B, t, q), q), kind=kind),
            loop(r, 12, store(c, f32(1), r), kind=kind),
            loop(r, 4, loop(q, 3, store(c, product, r * 3 + q), kind=kind), kind=kind),
        ]

    got, func = per_thread(12, statements, [ra, rb, c], [A, B], {"A": a, "B": b}, result=lambda k: load(c, i32(k)))
    wanted = 1 + a[:, :, None] * b[:, None, :]
    assert (got == wanted.reshape(T, 12)).all()
    assert python_loops(func) == 0


def test_registers_with_several_dimensions():
    grid = local("grid", (3, 4), "float32")
    r, q = var("r"), var("q")

    def statements(t):
        value = tir.Cast("float32", t * 100 + r * 10 + q)
        return [unroll(r, 3, unroll(q, 4, store(grid, value, r, q)))]

    got, func = per_thread(12, statements, [grid], result=lambda k: load(grid, i32(k // 4), i32(k % 4)))
    wanted = np.arange(T)[:, None] * 100 + (np.arange(3)[:, None] * 10 + np.arange(4)).reshape(-1)
    assert (got == wanted).all() and python_loops(func) == 0


def test_a_running_sum_stays_in_order():
    s = local("s", 5, "float32")
    k = var("k")

    def statements(t):
        return [store(s, tir.Cast("float32", t), 0), unroll(k, 4, store(s, load(s, k) * f32(2) + f32(1), k + 1))]

    got, func = per_thread(5, statements, [s], result=lambda k: load(s, i32(k)))
    wanted = [np.arange(T, dtype=np.float32)]
    for _ in range(4):
        wanted.append(wanted[-1] * 2 + 1)
    assert (got == np.stack(wanted, 1)).all() and python_loops(func) == 1


def test_a_loop_that_reads_what_a_later_turn_writes_stays_in_order():
    s = local("s", 5, "int32")
    k = var("k")

    def statements(t):
        fill = unroll(k, 5, store(s, t * 10 + k, k))
        return [fill, unroll(k, 4, seq(store(s, load(s, k + 1), k), store(s, load(s, k) + 100, k + 1)))]

    got, _ = per_thread(5, statements, [s], out_type="int32", result=lambda k: load(s, i32(k)))
    wanted = np.zeros((T, 5), np.int32)
    for t in range(T):
        row = [t * 10 + i for i in range(5)]
        for i in range(4):
            row[i] = row[i + 1]
            row[i + 1] = row[i] + 100
        wanted[t] = row
    assert (got == wanted).all()


def test_several_statements_on_the_same_register_run_side_by_side():
    a, b = local("a", 4, "int32"), local("b", 4, "int32")
    k = var("k")

    def statements(t):
        return [
            unroll(k, 4, seq(store(a, t + k, k), store(b, load(a, k) * 2, k), store(a, load(a, k) + load(b, k), k)))
        ]

    got, func = per_thread(4, statements, [a, b], out_type="int32", result=lambda k: load(a, i32(k)))
    assert (got == 3 * (np.arange(T)[:, None] + np.arange(4))).all() and python_loops(func) == 0


def test_overlapping_register_windows_stay_in_order():
    a = local("a", 6, "int32")
    r, q = var("r"), var("q")

    def statements(t):
        start = unroll(r, 6, store(a, i32(0), r))
        return [start, unroll(r, 3, unroll(q, 4, store(a, load(a, r + q) * 3 + r * 4 + q, r + q)))]

    got, _ = per_thread(6, statements, [a], out_type="int32", result=lambda k: load(a, i32(k)))
    row = [0] * 6
    for i in range(3):
        for j in range(4):
            row[i + j] = row[i + j] * 3 + i * 4 + j
    assert (got == row).all()


def test_a_reversed_and_a_strided_register_index():
    a, b = local("a", 8, "int32"), local("b", 4, "int32")
    k = var("k")

    def statements(t):
        return [
            unroll(k, 8, store(a, t * 10 + k, 7 - k)),
            unroll(k, 4, store(b, load(a, k * 2 + 1), 3 - k)),
        ]

    got, func = per_thread(4, statements, [a, b], out_type="int32", result=lambda k: load(b, i32(k)))
    backwards = [7 - i for i in range(8)]
    wanted = [[t * 10 + backwards[(3 - i) * 2 + 1] for i in range(4)] for t in range(T)]
    assert (got == wanted).all() and python_loops(func) == 0


def test_loops_that_do_not_start_at_zero():
    a = local("a", 8, "int32")
    k = var("k")

    def statements(t):
        return [unroll(k, 8, store(a, i32(0), k)), loop(k, 3, store(a, t + k, k + 1), start=4, kind=UNROLLED)]

    got, func = per_thread(8, statements, [a], out_type="int32", result=lambda k: load(a, i32(k)))
    wanted = np.zeros((T, 8), np.int32)
    wanted[:, 5:8] = np.arange(T)[:, None] + [4, 5, 6]
    assert (got == wanted).all() and python_loops(func) == 0


def test_conditions_inside_a_vector_loop():
    a = local("a", 6, "int32")
    k = var("k")

    def statements(t):
        return [
            unroll(k, 6, store(a, i32(-1), k)),
            unroll(k, 6, when(t > k * 5, store(a, t + k, k), when(k > 3, store(a, i32(7), k)))),
        ]

    got, func = per_thread(6, statements, [a], out_type="int32", result=lambda k: load(a, i32(k)))
    wanted = [[t + i if t > i * 5 else 7 if i > 3 else -1 for i in range(6)] for t in range(T)]
    assert (got == wanted).all() and python_loops(func) == 0


def test_a_serial_loop_inside_a_vector_loop():
    x = np.random.default_rng(3).integers(0, 9, (T, 8)).astype(np.int32)
    X = buffer("X", (T, 8), "int32")
    a = local("a", 4, "int32")
    k, j = var("k"), var("j")

    def statements(t):
        body = seq(store(a, i32(0), k), loop(j, 8, store(a, load(a, k) * 2 + load(X, t, j) * k, k)))
        return [unroll(k, 4, body)]

    got, _ = per_thread(4, statements, [a], [X], {"X": x}, "int32", lambda k: load(a, i32(k)))
    wanted = np.zeros((T, 4), np.int32)
    for i in range(8):
        wanted = wanted * 2 + x[:, i : i + 1] * np.arange(4)
    assert (got == wanted).all()


def test_a_guarded_copy_with_a_ragged_edge():
    src, dst = buffer("src", (100,), "float32"), buffer("dst", (100,), "float32")
    r, v = var("r"), var("v")

    def body(t, b):
        g = r * 64 + t * 4 + v
        value = tir.if_then_else(g < 100, load(src, g), f32(0))
        return [unroll(r, 2, vector(v, 4, when(g < 100, store(dst, value * f32(2), g))))]

    x = np.arange(100, dtype=np.float32)
    result = clean(launch([src, dst], body, threads=16), {"src": x, "dst": np.zeros(100, np.float32)})
    assert (result["dst"] == 2 * x).all()


def test_turns_that_store_to_one_place_leave_the_last_value():
    out = buffer("out", (T,), "int32")
    k = var("k")
    func = launch([out], lambda t, b: [unroll(k, 5, store(out, t * 10 + k, t))], threads=T)
    assert (clean(func, {"out": np.zeros(T, np.int32)})["out"] == np.arange(T) * 10 + 4).all()


def test_accumulating_into_memory_turn_by_turn():
    out = buffer("out", (T,), "int32")
    k = var("k")
    func = launch([out], lambda t, b: [unroll(k, 5, store(out, load(out, t) * 2 + k, t))], threads=T)
    value = 0
    for i in range(5):
        value = value * 2 + i
    assert (clean(func, {"out": np.zeros(T, np.int32)})["out"] == value).all()


def test_shuffles_inside_a_vector_loop():
    a = local("a", 4, "int32")
    k = var("k")

    def statements(t):
        return [
            unroll(k, 4, store(a, t * 10 + k, k)),
            unroll(k, 4, store(a, load(a, k) + shuffle("_xor", "int32", load(a, k), i32(1)), k)),
        ]

    got, func = per_thread(4, statements, [a], out_type="int32", result=lambda k: load(a, i32(k)))
    lane = np.arange(T)[:, None]
    assert (got == lane * 10 + (lane ^ 1) * 10 + 2 * np.arange(4)).all() and python_loops(func) == 0


def test_register_indices_that_differ_by_thread():
    a = local("a", 4, "int32")
    k = var("k")

    def statements(t):
        return [
            unroll(k, 4, store(a, t * 10 + k, k)),
            store(a, i32(-5), tir.floormod(t, 4)),
            store(a, load(a, tir.floormod(t, 4)) + load(a, tir.floormod(t + 1, 4)), 0),
        ]

    got, _ = per_thread(4, statements, [a], out_type="int32", result=lambda k: load(a, i32(k)))
    wanted = []
    for t in range(T):
        row = [t * 10 + i for i in range(4)]
        row[t % 4] = -5
        row[0] = row[t % 4] + row[(t + 1) % 4]
        wanted.append(row)
    assert got.tolist() == wanted


def test_a_register_window_at_a_run_time_base():
    a = local("a", 16, "int32")
    j, k = var("j"), var("k")

    def statements(t):
        return [loop(j, 4, barrier(), unroll(k, 4, store(a, t + j * 100 + k, j * 4 + k)))]

    got, _ = per_thread(16, statements, [a], out_type="int32", result=lambda k: load(a, i32(k)))
    wanted = np.arange(T)[:, None] + np.array([j * 100 + k for j in range(4) for k in range(4)])
    assert (got == wanted).all()


def test_overlapping_arguments_keep_the_order_of_the_turns():
    a, b = buffer("a", (40,), "int32"), buffer("b", (40,), "int32")
    k = var("k")
    func = launch([a, b], lambda t, _: [unroll(k, 8, store(a, load(b, k) + 1, k + 1))], threads=1)
    memory = np.zeros(40, np.int32)
    Program(func, checks=False).run({"a": memory, "b": memory})
    assert memory[:10].tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 8, 0]
    apart = clean(func, {"a": np.zeros(40, np.int32), "b": np.zeros(40, np.int32)})["a"]
    assert apart[:10].tolist() == [0] + [1] * 8 + [0]
