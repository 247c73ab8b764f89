"""Neighbours under an equal condition become one `if`, where the condition is the same for both."""

from __future__ import annotations

import numpy as np
from lowering import cells, hopper
from lowering import thread_programs as tp
from tvm import tirx as tir

from tilelang_nb.lowering.equal_conditions import joined
from tilelang_nb.lowering.rewrite import each_statement, statements


def ifs(node) -> list:
    return [one for one in each_statement(node) if isinstance(one, tir.IfThenElse)]


def suites(launch, *conditions, other=()):
    """A sequence of `if condition: B[i] = i`; at the numbers in `other` also `else: B[i] = -i`."""
    target = tp.buffer("B", (64,))
    parts = [
        tir.IfThenElse(
            condition, tp.store(target, i, i), tp.store(target, -i, i) if i in other else None
        )
        for i, condition in enumerate(conditions)
    ]  # fmt: skip
    return tir.SeqStmt(parts)


def test_neighbours_under_one_condition_are_one_if():
    launch = tp.Launch(32)
    after = joined(suites(launch, launch.tx < 3, launch.tx < 3, launch.tx < 4, launch.tx < 3))
    assert [len(statements(one.then_case)) for one in statements(after)] == [2, 1, 1]


def test_both_sides_of_neighbours_stay_in_order():
    launch = tp.Launch(32)
    after = joined(suites(launch, *[launch.tx < 3] * 3, other=(0, 2)))
    (one,) = ifs(after)
    assert [int(store.indices[0]) for store in statements(one.then_case)] == [0, 1, 2]
    assert [int(store.indices[0]) for store in statements(one.else_case)] == [0, 2]


def test_what_become_neighbours_inside_is_joined_too():
    launch = tp.Launch(32)
    outer, inner = launch.tx < 8, launch.tx % 2 == 0
    nested = [tir.IfThenElse(outer, one, None) for one in statements(suites(launch, inner, inner))]
    assert len(ifs(joined(tir.SeqStmt(nested)))) == 2


def test_a_condition_that_reads_memory_is_asked_again():
    launch = tp.Launch(32)
    target = tp.buffer("B", (64,))
    before = suites(launch, *[tp.load(target, 0) > 0] * 2)
    assert joined(before).same_as(before)


def test_a_name_is_defined_once_in_a_suite():
    launch = tp.Launch(32)
    target, name = tp.buffer("B", (64,)), tir.Var("v", "int32")
    suite = tir.SeqStmt([tir.Bind(name, launch.tx), tp.store(target, name, name)])
    before = tir.SeqStmt([tir.IfThenElse(launch.tx < 3, suite, None)] * 2)
    assert joined(before).same_as(before)


def test_conditions_that_the_statements_between_change_keep_python_order():
    text = """
@T.prim_func
def k(A: T.Tensor((64,), "int32"), B: T.Tensor((64,), "int32")):
    with T.Kernel(1, threads=64) as bx:
        for i in T.Parallel(64):
            if A[i] > 0:
                A[i] = A[i] - 2
            if A[i] > 0:
                B[i] = 1
            if i < 7:
                B[i] = B[i] + 10
            if i < 7:
                B[i] = B[i] * 2
"""
    a = np.arange(64, dtype=np.int32) % 5
    b = np.zeros(64, np.int32)
    expected = np.where(a - 2 * (a > 0) > 0, 1, 0)
    expected = np.where(np.arange(64) < 7, (expected + 10) * 2, expected)
    cells.run(text, A=a, B=b)
    assert np.array_equal(b, expected)


def test_the_barriers_of_roles_are_started_by_one_thread_in_one_if():
    body = hopper.matmul().launch.body
    starting = [one for one in ifs(body) if "mbarrier_init" in str(one.then_case) and not ifs(one.then_case)]
    assert len(starting) == 1
