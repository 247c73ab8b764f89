"""Barriers: none missing, none without need in programs whose needs are known, all where every thread passes."""

from __future__ import annotations

import numpy as np
import pytest
import tvm_ffi
from lowering import thread_programs as tp
from lowering.random_programs import RandomProgram
from lowering.thread_machine import Deadlock, run
from tvm import tirx as tir

from tilelang_nb.lowering.barriers import insert_barriers
from tilelang_nb.lowering.rewrite import map_children, nothing
from tilelang_nb.simulator import Program


def barriers(function):
    found = []

    def visit(node):
        if getattr(getattr(node.value, "op", None), "name", "") in ("tirx.tvm_storage_sync", "tirx.ptx.bar_sync_count"):
            found.append(node)

    tvm_ffi.structural_walk(function.body, (tir.Evaluate, visit))
    return found


def without(function, number):
    """The function with one of its barriers left out."""
    count = [-1]

    def visit(node):
        if (
            isinstance(node, tir.Evaluate)
            and getattr(getattr(node.value, "op", None), "name", "") == "tirx.tvm_storage_sync"
        ):
            count[0] += 1
            return nothing() if count[0] == number else node
        return map_children(node, visit)

    return function.with_body(visit(function.body))


def inserted(launch, parameters, *body):
    function = insert_barriers(launch.function(parameters, *body), launch.context)
    assert not [d for d in launch.context.diagnostics if d.severity == "error"]
    return function


def exchange_under_a_condition():
    launch = tp.Launch(64)
    out, s, tx = tp.buffer("out", (64,)), tp.shared("s", (64,)), launch.tx
    inside = tir.SeqStmt([tp.store(s, tx, tx), tp.store(out, tp.load(s, 47 - tx), tx)])
    body = [tir.AllocBuffer(s), tp.store(out, tp.integer(-1), tx), tir.IfThenElse(tx < 48, inside, None)]
    return launch, [out], body, 1


def first_warp_produces():
    launch = tp.Launch(64)
    out, s, tx = tp.buffer("out", (64,)), tp.shared("s", (32,)), launch.tx
    body = [tir.AllocBuffer(s), tir.IfThenElse(tx < 32, tp.store(s, 2 * tx, tx), None)]
    body += [tp.store(out, tp.load(s, tx % 32), tx)]
    return launch, [out], body, 1


def tiles_in_a_loop():
    """Two copies, one use: one barrier before the use, one before the next turn overwrites."""
    launch = tp.Launch(32)
    out, a, b, tx = tp.buffer("out", (32,)), tp.shared("a", (32,)), tp.shared("b", (32,)), launch.tx
    total = tp.buffer("total", (1,), "int32", "local")

    def turn(k):
        use = tp.store(total, tp.load(total, 0) + tp.load(a, 31 - tx) * tp.load(b, tx // 2), 0)
        return tir.SeqStmt([tp.store(a, tx + k, tx), tp.store(b, tx * k, tx), use])

    body = [tir.AllocBuffer(one) for one in (a, b, total)] + [tp.store(total, tp.integer(0), 0)]
    return launch, [out], [*body, tp.loop("k", 3, turn), tp.store(out, tp.load(total, 0), tx)], 2


def global_memory_read_back():
    launch = tp.Launch(32)
    out, copy, tx = tp.buffer("out", (32,)), tp.buffer("copy", (32,)), launch.tx
    return launch, [out, copy], [tp.store(out, tx * 3, tx), tp.store(copy, tp.load(out, 31 - tx), tx)], 1


def exchange_in_one_statement():
    launch = tp.Launch(32)
    out, s, tx = tp.buffer("out", (32,)), tp.shared("s", (32,)), launch.tx
    body = [
        tir.AllocBuffer(s),
        tp.store(s, tx, tx),
        tp.store(s, tp.load(s, 31 - tx), tx),
        tp.store(out, tp.load(s, tx), tx),
    ]
    return launch, [out], body, 2


def loop_under_a_condition():
    """All threads run the loop, its parts under the condition: the barriers are those of one turn."""
    launch = tp.Launch(32)
    out, s, tx = tp.buffer("out", (32,)), tp.shared("s", (32,)), launch.tx

    def turn(k):
        return tir.SeqStmt([tp.store(s, tx + k, tx), tp.store(out, tp.load(out, tx) + tp.load(s, 15 - tx), tx)])

    body = [tir.AllocBuffer(s), tp.store(out, tp.integer(0), tx), tir.IfThenElse(tx < 16, tp.loop("k", 3, turn), None)]
    return launch, [out], body, 2


NEEDED = [
    exchange_under_a_condition,
    first_warp_produces,
    tiles_in_a_loop,
    global_memory_read_back,
    exchange_in_one_statement,
    loop_under_a_condition,
]


def arguments(parameters):
    return {p.name: np.zeros([int(n) for n in p.ty.shape], np.int32) for p in parameters}


@pytest.mark.parametrize("make", NEEDED)
def test_as_many_barriers_as_needed_and_none_can_be_left_out(make):
    launch, parameters, body, count = make()
    function = inserted(launch, parameters, *body)
    assert len(barriers(function)) == count
    assert tp.run_twice(function, **arguments(parameters)) == []
    for number in range(count):
        assert run(without(function, number), **arguments(parameters)) != []
        findings = Program(without(function, number)).run(arguments(parameters)).findings
        assert {finding.code for finding in findings} == {"TL401"}


def test_the_exchange_under_a_condition_gives_what_the_text_says():
    launch, parameters, body, _ = exchange_under_a_condition()
    out = np.zeros(64, np.int32)
    run(inserted(launch, parameters, *body), out=out)
    t = np.arange(64)
    np.testing.assert_array_equal(out, np.where(t < 48, 47 - t, -1))


def no_barrier_programs():
    launch = tp.Launch(64)
    out, s, tx = tp.buffer("out", (64,)), tp.shared("s", (4, 256)), launch.tx
    own = [tp.store(out, tp.load(out, tx) + 1, tx), tp.store(out, tp.load(out, tx) * 2, tx)]
    yield "own element, again and again", launch, [out], own
    launch = tp.Launch(64)
    out, s, tx = tp.buffer("out", (256,)), tp.shared("s", (4, 256)), launch.tx

    def write(k):
        return tp.loop("v", 4, lambda v: tp.store(s, k * v, k, tx * 4 + v))

    def read(k):
        return tp.loop("w", 4, lambda w: tp.store(out, tp.load(s, k, tx * 4 + w), tx * 4 + w))

    yield (
        "own elements through loops",
        launch,
        [out],
        [tir.AllocBuffer(s), tp.loop("k", 4, write), tp.loop("j", 4, read)],
    )
    launch = tp.Launch(64)
    out, s, tx = tp.buffer("out", (64,)), tp.shared("s", (64,)), launch.tx
    one = tir.SeqStmt([tp.store(s, tp.integer(3), 5), tp.store(out, tp.load(s, 5), 0)])
    yield "one thread does both", launch, [out], [tir.AllocBuffer(s), tir.IfThenElse(tx == 0, one, None)]
    launch = tp.Launch(64)
    out, s, tx = tp.buffer("out", (64,)), tp.shared("s", (128,)), launch.tx
    halves = [tp.store(s, tx, tx), tp.store(s, tx, tx + 64), tp.store(out, tp.load(s, tx) + tp.load(s, tx + 64), tx)]
    yield "disjoint halves", launch, [out], [tir.AllocBuffer(s), *halves]
    launch = tp.Launch(64)
    out, s, tx = tp.buffer("out", (64,)), tp.shared("s", (8, 8)), launch.tx
    rows = [tp.store(s, tx, tx // 8, tx % 8), tp.store(out, tp.load(s, tx // 8, tx % 8), tx)]
    yield "digits of the thread", launch, [out], [tir.AllocBuffer(s), *rows]
    launch = tp.Launch(64)
    out = tp.buffer("out", (8, 8))
    turns = tp.loop("i", 8, lambda i: tp.loop("j", 8, lambda j: tp.store(out, i * j, i, j)))
    yield "another element in every turn", launch, [out], [turns]
    launch = tp.Launch(1)
    out, s = tp.buffer("out", (64,)), tp.shared("s", (64,))
    lone = [tp.store(s, tp.integer(1), 3), tp.store(out, tp.load(s, 3), 0)]
    yield "a block of one thread", launch, [out], [tir.AllocBuffer(s), *lone]


@pytest.mark.parametrize(
    ("launch", "parameters", "body"), [pytest.param(*rest, id=name) for name, *rest in no_barrier_programs()]
)
def test_no_barrier_where_program_order_is_enough(launch, parameters, body):
    function = inserted(launch, parameters, *body)
    assert barriers(function) == []
    assert run(function, **arguments(parameters)) == []


def test_what_all_threads_count_together_is_counted_once():
    launch = tp.Launch(64)
    out = tp.buffer("out", (1,))
    count = tp.loop("i", 5, lambda i: tp.store(out, tp.load(out, 0) + i, 0))
    function = inserted(launch, [out], count)
    got = np.zeros(1, np.int32)
    assert tp.run_twice(function, out=got) == []
    assert got[0] == 10


def test_a_store_that_moves_on_by_less_than_its_width_needs_a_barrier():
    launch = tp.Launch(32)
    out = tp.buffer("out", (64,))
    function = inserted(launch, [out], tp.loop("i", 4, lambda i: tp.store(out, i * 100 + launch.tx, i + launch.tx)))
    assert len(barriers(function)) == 1
    got = np.zeros(64, np.int32)
    assert tp.run_twice(function, out=got) == []
    np.testing.assert_array_equal(got[:35], [100 * min(t, 3) + t - min(t, 3) if t > 2 else 100 * t for t in range(35)])


def test_a_barrier_of_the_user_counts():
    launch = tp.Launch(32)
    out, s, tx = tp.buffer("out", (32,)), tp.shared("s", (32,)), launch.tx
    body = [
        tir.AllocBuffer(s),
        tp.store(s, tx, tx),
        launch.lower("sync_threads"),
        tp.store(out, tp.load(s, 31 - tx), tx),
    ]
    assert len(barriers(inserted(launch, [out], *body))) == 1


def test_iterations_of_a_parallel_loop_have_no_barrier_between_them():
    launch = tp.Launch(32)
    out, s, tx = tp.buffer("out", (64,)), tp.shared("s", (64,)), launch.tx
    idx = tp.buffer("idx", (64,))
    scatter = tp.loop("i", 2, lambda i: tp.store(s, tp.integer(1), tp.load(idx, i * 32 + tx)), **{"tl.parallel": 1})
    clear = tp.loop("i", 2, lambda i: tp.store(s, tp.integer(0), i * 32 + tx), **{"tl.parallel": 1})
    show = tp.loop("i", 2, lambda i: tp.store(out, tp.load(s, i * 32 + tx), i * 32 + tx), **{"tl.parallel": 1})
    function = inserted(launch, [out, idx], tir.AllocBuffer(s), clear, scatter, show)
    assert len(barriers(function)) == 2
    places = np.arange(64, dtype=np.int32)[::-1] // 2 * 2
    got = np.zeros(64, np.int32)
    assert run(function, out=got, idx=places) == []
    np.testing.assert_array_equal(got, np.isin(np.arange(64), places))


@pytest.mark.parametrize("kind", ["bound", "jump", "while"])
def test_an_exchange_in_a_loop_of_different_lengths_is_refused(kind):
    launch = tp.Launch(32)
    out, s, tx = tp.buffer("out", (32,)), tp.shared("s", (32,)), launch.tx
    exchange = [tp.store(s, tx, tx), tp.store(out, tp.load(s, 31 - tx), tx)]
    if kind == "bound":
        body = tp.loop("k", tx, lambda k: tir.SeqStmt(exchange))
    elif kind == "jump":
        body = tp.loop("k", 9, lambda k: tir.SeqStmt([tir.IfThenElse(tx > k, tir.Break(), None), *exchange]))
    else:
        body = tir.While(tp.load(out, tx) < 5, tir.SeqStmt(exchange))
    insert_barriers(launch.function([out], tir.AllocBuffer(s), body), launch.context)
    assert [d.code for d in launch.context.diagnostics] == ["TL210"]
    assert "`s`" in launch.context.diagnostics[0].message


def test_a_uniform_jump_past_a_barrier_is_fine():
    launch = tp.Launch(32)
    out, s, tx = tp.buffer("out", (32,)), tp.shared("s", (32,)), launch.tx

    def turn(k):
        leave = tir.IfThenElse(k == 2, tir.Break(), None)
        skip = tir.IfThenElse(k == 1, tir.Continue(), None)
        add = tp.store(out, tp.load(out, tx) + tp.load(s, 31 - tx), tx)
        return tir.SeqStmt([tp.store(s, tx + k, tx), leave, skip, add])

    function = inserted(launch, [out], tir.AllocBuffer(s), tp.loop("k", 5, turn), tp.store(s, tx, 31 - tx))
    got = np.zeros(32, np.int32)
    assert run(function, out=got) == []
    np.testing.assert_array_equal(got, 31 - np.arange(32))


def test_a_condition_read_from_shared_memory_is_read_before_it_changes():
    launch = tp.Launch(32)
    out, s, tx = tp.buffer("out", (32,)), tp.shared("s", (1,)), launch.tx
    first = tir.IfThenElse(tx == 0, tp.store(s, tp.integer(0), 0), None)
    step = tir.IfThenElse(tx == 0, tp.store(s, tp.load(s, 0) + 1, 0), None)
    count = tp.store(out, tp.load(out, tx) + 1, tx)
    body = [tir.AllocBuffer(s), first, tir.While(tp.load(s, 0) < 4, tir.SeqStmt([step, count]))]
    function = inserted(launch, [out], *body)
    got = np.zeros(32, np.int32)
    assert run(function, out=got) == []
    np.testing.assert_array_equal(got, 4)


def warp_groups(launch, group, body):
    inside = tir.And(launch.tx >= group * 128, launch.tx < group * 128 + 128)
    text = tir.StringImm(str(group)) if hasattr(tir, "StringImm") else __import__("tvm").ir.StringImm(str(group))
    return tir.AttrStmt(tp.integer(0), "tl.warp_groups", text, tir.IfThenElse(inside, body, None))


def test_warp_groups_wait_for_their_own_threads():
    launch = tp.Launch(256)
    out, s, tx = tp.buffer("out", (256,)), tp.shared("s", (2, 128)), launch.tx
    body = [tir.AllocBuffer(s)]
    for group in range(2):
        own = tx - 128 * group
        exchange = [tp.store(s, tx, group, own), tp.store(out, tp.load(s, group, 127 - own), tx)]
        body.append(warp_groups(launch, group, tir.SeqStmt(exchange)))
    function = inserted(launch, [out], *body)
    assert [b.value.op.name for b in barriers(function)] == ["tirx.ptx.bar_sync_count"] * 2
    assert [(int(b.value.args[0]), int(b.value.args[1])) for b in barriers(function)] == [(1, 128), (2, 128)]
    assert "warp_groups" not in function.script()
    got = np.zeros(256, np.int32)
    assert run(function, out=got) == []
    np.testing.assert_array_equal(got, np.concatenate([np.arange(128)[::-1], np.arange(128, 256)[::-1]]))


def test_groups_that_share_data_without_mbarriers_are_ordered_by_the_block():
    launch = tp.Launch(256)
    out, s, tx = tp.buffer("out", (256,)), tp.shared("s", (128,)), launch.tx
    body = [tir.AllocBuffer(s), warp_groups(launch, 0, tp.store(s, tx, tx))]
    body.append(warp_groups(launch, 1, tp.store(out, tp.load(s, 255 - tx), tx)))
    function = inserted(launch, [out], *body)
    assert [b.value.op.name for b in barriers(function)] == ["tirx.tvm_storage_sync"]
    assert run(function, out=np.zeros(256, np.int32)) == []


@pytest.mark.parametrize("seed", range(150))
def test_random_programs_have_no_race_and_mean_what_they_say(seed):
    program = RandomProgram(seed)
    function = program.launch.with_barriers(program.function())
    assert not program.launch.context.diagnostics
    start = np.arange(16, dtype=np.int32) * 5
    expected = program.expected(start)
    for order in range(2):
        got = start.copy()
        try:
            races = run(function, seed=order, out=got) if order else tp.run_twice(function, out=got)
        except Deadlock as stuck:
            pytest.fail(f"deadlock {stuck}\n{function.script()}")
        assert races == [], function.script()
        np.testing.assert_array_equal(got, expected, err_msg=function.script())
