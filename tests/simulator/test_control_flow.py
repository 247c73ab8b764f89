"""Loops, conditions and jumps that differ from thread to thread: against plain Python, thread by thread."""

from __future__ import annotations

import numpy as np
from simulator.nodes import *
from simulator.running import clean

N = 128
X, Y = buffer("X", (N,), "int32"), buffer("Y", (N,), "int32")
ACC, STEPS = local("acc", 1, "int32"), local("steps", 1, "int32")


def put(register, value):
    return store(register, value, 0)


def check(body, scalar, x=None):
    """body(t, b, g): statements that leave the result in ACC; scalar(t, b, x[g], x): the result of one thread."""
    values = np.random.default_rng(1).integers(1, 1000, N).astype(np.int32) if x is None else x
    func = launch(
        [X, Y],
        lambda t, b: [
            put(ACC, i32(0)),
            put(STEPS, i32(0)),
            *body(t, b, b * 64 + t),
            store(Y, load(ACC, 0), b * 64 + t),
        ],
        threads=64,
        blocks=2,
        allocate=[ACC, STEPS],
    )
    got = clean(func, {"X": values, "Y": np.zeros(N, np.int32)})["Y"]
    wanted = [scalar(g % 64, g // 64, int(values[g]), values) for g in range(N)]
    assert got.tolist() == wanted


def test_while_with_a_different_number_of_turns_per_thread():
    v, c = load(ACC, 0), load(STEPS, 0)

    def body(t, b, g):
        odd = put(ACC, v * 3 + 1)
        turn = seq(put(STEPS, c + 1), when(tir.floormod(v, 2).equal(0), put(ACC, tir.floordiv(v, 2)), odd))
        return [put(ACC, load(X, g)), tir.While(v > 1, turn), put(ACC, c)]

    def scalar(t, b, value, _):
        count = 0
        while value > 1:
            count, value = count + 1, value // 2 if value % 2 == 0 else value * 3 + 1
        return count

    check(body, scalar)


def test_for_with_a_trip_count_per_thread_and_jumps():
    j = var("j")

    def body(t, b, g):
        inside = [
            when(tir.floormod(j, 3).equal(tir.floormod(t, 3)), tir.Continue()),
            when(j > 10 + tir.floordiv(t, 8), tir.Break()),
            put(ACC, load(ACC, 0) + j),
        ]
        return [loop(j, t, *inside)]

    def scalar(t, b, value, _):
        total = 0
        for k in range(t):
            if k % 3 == t % 3:
                continue
            if k > 10 + t // 8:
                break
            total += k
        return total

    check(body, scalar)


def test_nested_loops_break_out_of_the_inner_one_only():
    i, j = var("i"), var("j")

    def body(t, b, g):
        inner = loop(j, 8, when(j * 8 > t, tir.Break()), put(ACC, load(ACC, 0) + j + i * 100))
        return [loop(i, 5, when(tir.And(i.equal(3), t > 30), tir.Break()), inner, put(ACC, load(ACC, 0) + 1))]

    def scalar(t, b, value, _):
        total = 0
        for a in range(5):
            if a == 3 and t > 30:
                break
            for k in range(8):
                if k * 8 > t:
                    break
                total += k + a * 100
            total += 1
        return total

    check(body, scalar)


def test_a_jump_inside_nested_conditions():
    j = var("j")

    def body(t, b, g):
        jump = when(t < 40, when(j > 2, seq(put(ACC, load(ACC, 0) + 1000), tir.Break()), put(ACC, load(ACC, 0) + 10)),
                    when(tir.floormod(j, 2).equal(1), tir.Continue()))  # fmt: skip
        return [loop(j, 6, jump, put(ACC, load(ACC, 0) + 1))]

    def scalar(t, b, value, _):
        total = 0
        for k in range(6):
            if t < 40:
                if k > 2:
                    total += 1000
                    break
                total += 10
            elif k % 2 == 1:
                continue
            total += 1
        return total

    check(body, scalar)


def test_break_as_a_call_is_the_same():
    j = var("j")

    def body(t, b, g):
        return [loop(j, 9, when(j > t, evaluate(tir.break_loop())), put(ACC, load(ACC, 0) + 1))]

    check(body, lambda t, b, value, _: min(t + 1, 9))


def test_an_unconditional_break_ends_the_loop():
    j = var("j")
    check(lambda t, b, g: [loop(j, 9, put(ACC, load(ACC, 0) + 1), tir.Break())], lambda *_: 1)


def test_uniform_conditions_on_loop_variables():
    j = var("j")

    def body(t, b, g):
        return [loop(j, 9, when(j < 4, put(ACC, load(ACC, 0) + t), put(ACC, load(ACC, 0) - b)))]

    check(body, lambda t, b, value, _: 4 * t - 5 * b)


def test_conditions_that_differ_by_block():
    check(
        lambda t, b, g: [when(b < 1, put(ACC, t), put(ACC, t * 2))],
        lambda t, b, value, _: t if b < 1 else 2 * t,
    )


def test_else_without_a_lane_and_then_without_a_lane():
    check(
        lambda t, b, g: [when(t < 100, put(ACC, i32(1)), put(ACC, i32(2))), when(t > 100, put(ACC, i32(3)))],
        lambda *_: 1,
    )


def test_loops_that_start_at_a_value_of_the_thread():
    j = var("j")

    def body(t, b, g):
        return [loop(j, 3, put(ACC, load(ACC, 0) * 10 + j), start=tir.floormod(t, 5), kind=SERIAL)]

    def scalar(t, b, value, _):
        total = 0
        for k in range(t % 5, t % 5 + 3):
            total = total * 10 + k
        return total

    check(body, scalar)


def test_loops_with_a_trip_count_from_memory():
    j = var("j")

    def body(t, b, g):
        return [loop(j, tir.floormod(load(X, g), 7), put(ACC, load(ACC, 0) + j + 1))]

    check(body, lambda t, b, value, _: sum(range(value % 7 + 1)))


def test_loops_with_a_uniform_trip_count_from_memory():
    j = var("j")
    check(
        lambda t, b, g: [loop(j, tir.floormod(load(X, 0), 7), put(ACC, load(ACC, 0) + j + 1))],
        lambda t, b, value, x: sum(range(int(x[0]) % 7 + 1)),
    )


def test_empty_and_negative_trip_counts_run_nothing():
    j = var("j")
    check(lambda t, b, g: [loop(j, t - 70, put(ACC, i32(1)))], lambda *_: 0)
    check(lambda t, b, g: [loop(j, b - 5, put(ACC, i32(1)))], lambda *_: 0)


def test_while_on_a_condition_that_all_threads_share():
    def body(t, b, g):
        return [tir.While(load(STEPS, 0) < 5, seq(put(STEPS, load(STEPS, 0) + 1), put(ACC, load(ACC, 0) + t)))]

    check(body, lambda t, b, value, _: 5 * t)


def test_or_evaluates_its_right_side_only_where_needed():
    def body(t, b, g):
        condition = tir.Or(g + 9 >= N, load(X, g + 9) > 500)
        return [when(condition, put(ACC, i32(1)))]

    check(body, lambda t, b, value, x: int(b * 64 + t + 9 >= N or x[b * 64 + t + 9] > 500))


def test_nested_conditional_expressions_are_lazy():
    def body(t, b, g):
        inner = tir.if_then_else(load(X, g + 3) > 500, load(X, g + 4), i32(-1))
        return [put(ACC, tir.if_then_else(g + 4 < N, inner, i32(-2)))]

    def scalar(t, b, value, x):
        g = b * 64 + t
        if g + 4 < N:
            return int(x[g + 4]) if x[g + 3] > 500 else -1
        return -2

    check(body, scalar)


def test_a_select_with_an_access_outside_on_the_other_side():
    check(
        lambda t, b, g: [put(ACC, tir.Select(g < N - 1, load(X, g + 1), i32(0)))],
        lambda t, b, value, x: int(x[b * 64 + t + 1]) if b * 64 + t < N - 1 else 0,
    )


def test_numbers_as_conditions_mean_not_zero():
    check(lambda t, b, g: [when(tir.Cast("bool", tir.floormod(t, 3)), put(ACC, i32(1)))], lambda t, *_: int(t % 3 != 0))


def test_bound_names_keep_the_value_they_were_bound_to():
    name = var("name")
    check(
        lambda t, b, g: [put(ACC, t), tir.Bind(name, load(ACC, 0)), put(ACC, i32(99)), put(ACC, load(ACC, 0) + name)],
        lambda t, *_: 99 + t,
    )
