"""Which values and loops all threads agree on."""

from __future__ import annotations

import pytest
from lowering import thread_programs as tp
from tvm import tirx as tir
from tvm.script.tirx import ptx

from tilelang_nb.lowering.uniformity import Uniformity


def analysed(launch, *body):
    return Uniformity(tir.SeqStmt(list(body)) if len(body) > 1 else body[0], [launch.tx])


def test_the_thread_index_and_what_is_computed_from_it_diverges():
    launch = tp.Launch(32)
    n, x, y = tir.Var("n", "int32"), tir.Var("x", "int32"), tir.Var("y", "int32")
    known = analysed(launch, tir.Bind(x, launch.tx + n), tir.Bind(y, n * 2))
    assert not known.is_uniform(launch.tx) and not known.is_uniform(x + 1)
    assert known.is_uniform(y + n) and known.is_uniform(tp.integer(3))


@pytest.mark.parametrize("scope", ["local", "local.var"])
def test_private_memory_diverges_with_what_is_stored_or_where(scope):
    launch = tp.Launch(32)
    a, b, c = (tp.buffer(name, (1,), "int32", scope) for name in "abc")
    stores = [tp.store(a, launch.tx, 0), tp.store(b, tp.integer(1), 0), tp.store(c, tp.integer(1), 0)]
    known = analysed(launch, *stores[:2], tir.IfThenElse(launch.tx < 3, stores[2], None))
    assert [known.is_uniform(tp.load(one, 0)) for one in (a, b, c)] == [False, True, False]


def test_memory_of_the_block_is_uniform_where_its_index_is():
    launch = tp.Launch(32)
    s, g = tp.shared("s", (32,)), tp.buffer("g", (32,))
    known = analysed(launch, tp.store(s, launch.tx, launch.tx))
    assert known.is_uniform(tp.load(s, 3)) and known.is_uniform(tp.load(g, tp.load(s, 0)))
    assert not known.is_uniform(tp.load(s, launch.tx))


@pytest.mark.parametrize("name", ["__shfl_xor_sync", "__any_sync", "tl_atomic_add", "__activemask"])
def test_results_of_lanes_and_atomics_diverge_and_votes_of_the_block_do_not(name):
    launch = tp.Launch(32)
    known = analysed(launch, tp.store(tp.shared("s", (1,)), 1, 0))
    assert not known.is_uniform(tir.call_extern("int32", name, tp.integer(1)))
    assert known.is_uniform(tir.call_extern("int32", "__syncthreads_or", launch.tx))


def test_divergence_carried_around_a_loop_is_found():
    launch = tp.Launch(32)
    a, b = (tp.buffer(name, (1,), "int32", "local") for name in "ab")
    body = tir.SeqStmt([tp.store(b, tp.load(a, 0), 0), tp.store(a, launch.tx, 0)])
    known = analysed(launch, tp.store(a, tp.integer(0), 0), tp.loop("k", 3, lambda k: body))
    assert not known.is_uniform(tp.load(b, 0))


def test_loops_with_bounds_or_jumps_of_threads_diverge():
    launch = tp.Launch(32)
    a = tp.buffer("a", (1,), "int32", "local")
    count = tp.store(a, tp.load(a, 0) + 1, 0)
    fixed = tp.loop("i", 4, lambda i: count)
    own = tp.loop("j", launch.tx, lambda j: tir.Evaluate(j))
    leaves = tp.loop("k", 4, lambda k: tir.SeqStmt([tir.IfThenElse(launch.tx > k, tir.Break(), None), tir.Evaluate(k)]))
    together = tp.loop("m", 4, lambda m: tir.SeqStmt([tir.IfThenElse(m > 2, tir.Continue(), None), tir.Evaluate(m)]))
    known = analysed(launch, tp.store(a, 0, 0), fixed, own, leaves, together)
    assert [known.divergent_loop(loop) for loop in (fixed, own, leaves, together)] == [False, True, True, False]
    assert known.is_uniform(tp.load(a, 0))


def test_what_is_counted_in_a_loop_of_different_lengths_diverges():
    launch = tp.Launch(32)
    a = tp.buffer("a", (1,), "int32", "local")
    known = analysed(launch, tp.store(a, 0, 0), tp.loop("j", launch.tx, lambda j: tp.store(a, tp.load(a, 0) + 1, 0)))
    assert not known.is_uniform(tp.load(a, 0))


def test_iterations_of_a_tile_loop_diverge_and_elements_of_fragments_do_not():
    launch = tp.Launch(32)
    f = tp.fragment("f", (32,), "int32")
    loop = tp.loop("i", 32, lambda i: tp.store(f, i, i), tir.ForKind.PARALLEL)
    known = analysed(launch, loop)
    assert not known.is_uniform(loop.loop_var) and known.is_uniform(tp.load(f, 0))


def test_memory_of_a_thread_that_a_copy_only_reads_as_an_index_stays_uniform():
    launch = tp.Launch(32)
    a, g, s = tp.buffer("a", (1,), "int32", "local"), tp.buffer("g", (64,)), tp.shared("s", (64,))
    place = [tir.address_of(tp.load(s, 0)), tir.address_of(tp.load(g, tp.load(a, 0))), 16]
    size = tir.Select(tp.load(a, 0) < 3, tir.const(16, "uint32"), tir.const(0, "uint32"))
    copies = [ptx["cp.async.cg.shared.global"](*place), ptx["cp.async.cg.shared.global"](*place, size)]
    known = analysed(launch, tp.store(a, tp.integer(0), 0), *map(tir.Evaluate, copies))
    assert known.is_uniform(tp.load(a, 0))


def test_registers_that_an_instruction_writes_diverge():
    launch = tp.Launch(32)
    a, b, s = tp.buffer("a", (1,), "int32", "local"), tp.buffer("b", (1,), "int32", "local"), tp.shared("s", (64,))
    call = ptx["ldmatrix.sync.aligned.m8n8.x1.shared.b16"](tp.load(a, 0), tir.address_of(tp.load(s, tp.load(b, 0))))
    known = analysed(launch, tp.store(b, tp.integer(0), 0), tir.Evaluate(call))
    assert not known.is_uniform(tp.load(a, 0)) and known.is_uniform(tp.load(b, 0))


def test_the_only_thread_of_a_block_agrees_with_itself():
    launch = tp.Launch(1)
    a = tp.buffer("a", (1,), "int32", "local")
    loop = tp.loop("i", 8, lambda i: tp.store(a, i, 0), tir.ForKind.PARALLEL)
    leaves = tp.loop("k", 4, lambda k: tir.IfThenElse(tp.load(a, 0) > k, tir.Break(), None))
    function = launch.function([], tir.AllocBuffer(a), loop, leaves)
    for alone in (False, True):
        known = Uniformity(function.body, [launch.tx], alone)
        assert known.is_uniform(tp.load(a, 0)) == known.is_uniform(loop.loop_var) == alone
        assert known.divergent_loop(leaves) == (not alone)
