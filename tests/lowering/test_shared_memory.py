"""The plan of shared memory: what lives at the same time never overlaps, what does not may share."""

from __future__ import annotations

import itertools
import random

import pytest
import tvm
from lowering import thread_programs as tp
from lowering.thread_machine import run
from tvm import tirx as tir

import tilelang_nb
from tilelang_nb.lowering.barriers import insert_barriers
from tilelang_nb.lowering.shared_memory import plan_shared_memory, shared_memory_limit


def planned(launch, *body, parameters=()):
    function = plan_shared_memory(launch.function(parameters, *body), launch.context)
    return function, {one.name: one for one in launch.context.facts.get("shared_memory", ())}


def tile(name, kilobytes):
    return tp.shared(name, (kilobytes * 256,), "float32")


def touch(one):
    return tp.store(one, tir.const(1.0, "float32"), 0)


def overlap(one, other):
    return one.offset < other.offset + other.bytes and other.offset < one.offset + one.bytes


def test_tiles_used_one_after_another_share_their_place():
    launch = tp.Launch(32)
    a, b = tile("a", 8), tile("b", 8)
    _, plan = planned(launch, tir.AllocBuffer(a), tir.AllocBuffer(b), touch(a), touch(b))
    assert plan["a"].offset == plan["b"].offset == 0


def test_tiles_in_use_at_the_same_time_do_not_overlap():
    launch = tp.Launch(32)
    a, b = tile("a", 8), tile("b", 4)
    _, plan = planned(launch, tir.AllocBuffer(a), tir.AllocBuffer(b), touch(a), touch(b), touch(a))
    assert not overlap(plan["a"], plan["b"])


def test_a_loop_keeps_its_tiles_alive():
    launch = tp.Launch(32)
    a, b = tile("a", 8), tile("b", 8)
    body = tp.loop("k", 4, lambda k: tir.SeqStmt([touch(a), touch(b)]))
    _, plan = planned(launch, tir.AllocBuffer(a), tir.AllocBuffer(b), body)
    assert not overlap(plan["a"], plan["b"])


def test_tiles_allocated_inside_a_loop_may_share():
    launch = tp.Launch(32)
    a, b = tile("a", 8), tile("b", 8)
    parts = [tir.AllocBuffer(a), touch(a), tir.AllocBuffer(b), touch(b)]
    _, plan = planned(launch, tp.loop("k", 4, lambda k: tir.SeqStmt(parts)))
    assert plan["a"].offset == plan["b"].offset


def test_small_tiles_share_only_where_space_is_short():
    launch = tp.Launch(32)
    small = [tp.shared(f"s{n}", (16,), "float32") for n in range(2)]
    body = [*map(tir.AllocBuffer, small), *map(touch, small)]
    _, plan = planned(launch, *body)
    assert not overlap(plan["s0"], plan["s1"])
    launch = tp.Launch(32)
    big = tp.shared("big", ((shared_memory_limit("sm_90a") - 64) // 4,), "float32")
    _, plan = planned(launch, tir.AllocBuffer(big), *body, touch(big))
    assert not launch.context.diagnostics
    assert overlap(plan["s0"], plan["s1"])


def test_an_mbarrier_shares_with_nothing():
    launch = tp.Launch(32)
    bars = tp.buffer("bars", (2,), "uint64", "shared.barrier")
    a = tile("a", 8)
    arrive = launch.lower("barrier_arrive", tp.whole(bars))
    function, plan = planned(launch, tir.AllocBuffer(a), tir.AllocBuffer(bars), arrive, touch(a))
    assert not overlap(plan["a"], plan["bars"]) and plan["bars"].offset % 8 == 0
    assert "shared.barrier" not in function.script()


def test_what_warp_groups_use_is_alive_together():
    launch = tp.Launch(256)
    a, b = tile("a", 8), tile("b", 8)

    def group(number, one):
        inside = tir.IfThenElse(launch.tx // 128 == number, touch(one), None)
        return tir.AttrStmt(tp.integer(0), "tl.warp_groups", tvm.ir.StringImm(str(number)), inside)

    _, plan = planned(launch, tir.AllocBuffer(a), tir.AllocBuffer(b), group(0, a), group(1, b))
    assert not overlap(plan["a"], plan["b"])


def test_a_view_has_the_place_of_its_tile_and_keeps_it_alive():
    launch = tp.Launch(32)
    a, b, view = tile("a", 8), tile("b", 8), tp.shared("view", (16, 128), "float32")
    declared = tir.DeclBuffer(view, data=tir.buffer_data(a))
    use = tp.store(view, tir.const(1.0, "float32"), 0, 0)
    body = [tir.AllocBuffer(a), tir.AllocBuffer(b), declared, touch(a), touch(b), use]
    function, plan = planned(launch, *body)
    assert not overlap(plan["a"], plan["b"])
    assert function.script().count(f"arena.data, {plan['a'].offset},") == 2


def test_a_tile_nobody_uses_takes_no_space():
    launch = tp.Launch(32)
    a, b = tile("a", 8), tile("b", 8)
    _, plan = planned(launch, tir.AllocBuffer(a), tir.AllocBuffer(b), touch(a))
    assert list(plan) == ["a"]


@pytest.mark.parametrize(
    ("arch", "limit"), [("sm_70", 98304), ("sm_75", 65536), ("sm_80", 166912), ("sm_89", 101376), ("sm_90a", 232448)]
)
def test_the_limit_is_that_of_the_architecture(arch, limit):
    assert shared_memory_limit(arch) == limit
    launch = tp.Launch(32, arch)
    fits = tp.shared("fits", (limit,), "uint8")
    planned(launch, tir.AllocBuffer(fits), tp.store(fits, tir.const(1, "uint8"), 0))
    assert not launch.context.diagnostics
    launch = tp.Launch(32, arch)
    span = tvm.ir.Span(tvm.ir.SourceName("cell"), 7, 7, 5, 20)
    big, small = tp.shared("big", (limit,), "uint8"), tp.shared("small", (16,), "uint8")
    body = [tir.AllocBuffer(small), tir.AllocBuffer(big, None, span)]
    body += [tp.store(one, tir.const(1, "uint8"), 0) for one in (small, big, small)]
    planned(launch, *body)
    (found,) = launch.context.diagnostics
    assert found.code == "TL209" and found.span.line == 7
    assert f"{limit:,}" in found.message and f"{limit + 16:,}" in found.message
    assert found.help.index("`big`") < found.help.index("`small`")


@pytest.mark.parametrize("seed", range(40))
def test_random_lifetimes_never_overlap_in_time_and_space(seed):
    """Checked from the accesses themselves, over the unrolled order of execution."""
    choose = random.Random(seed)
    launch = tp.Launch(32)
    tiles = [tile(f"t{n}", choose.randint(1, 6)) for n in range(6)]
    history = []

    def statements(depth, turns):
        result = []
        for _ in range(choose.randint(1, 4)):
            if depth < 2 and choose.random() < 0.35:
                before = len(history)
                body = statements(depth + 1, turns)
                history.extend(history[before:])  # a second turn
                result.append(tp.loop("k", 2, lambda k, body=body: tir.SeqStmt(body) if len(body) > 1 else body[0]))
            else:
                one = choose.choice(tiles)
                history.append(one.name)
                result.append(touch(one))
        return result

    body = statements(0, 1)
    _, plan = planned(launch, *map(tir.AllocBuffer, tiles), *body)
    lives = {name: (history.index(name), len(history) - 1 - history[::-1].index(name)) for name in set(history)}
    for one, other in itertools.combinations(sorted(lives), 2):
        together = lives[one][0] <= lives[other][1] and lives[other][0] <= lives[one][1]
        assert not (together and overlap(plan[one], plan[other])), (one, other, history)


def test_sharing_a_place_needs_a_barrier_and_gets_one():
    import numpy as np

    launch = tp.Launch(32)
    tx, out = launch.tx, tp.buffer("out", (32,))
    a, b = tp.shared("a", (512,)), tp.shared("b", (256,), "int64")
    body = [tir.AllocBuffer(a), tir.AllocBuffer(b), tp.store(a, tx, tx), tp.store(out, tp.load(a, tx), tx)]
    body += [tp.store(b, tir.Cast("int64", tx), tx)]
    body += [tp.store(out, tp.load(out, tx) + tir.Cast("int32", tp.load(b, tx)), tx)]
    function, plan = planned(launch, *body, parameters=[out])
    assert plan["a"].offset == plan["b"].offset
    assert run(function, out=np.zeros(32, np.int32)) != []
    got = np.zeros(32, np.int32)
    assert run(insert_barriers(function, launch.context), out=got) == []
    np.testing.assert_array_equal(got, 2 * np.arange(32))


def test_a_tile_of_the_compiler_is_not_named_in_a_message():
    text = """
@T.prim_func
def k(A: T.Tensor((128, 192), "float32"), C: T.Tensor((128,), "float32")):
    with T.Kernel(1, threads=100) as bx:
        a = T.alloc_fragment((128, 192), "float32")
        b = T.alloc_shared((192, 64), "float32")
        c = T.alloc_fragment((128, 64), "float32")
        T.copy(A, a)
        T.clear(b)
        T.clear(c)
        T.gemm(a, b, c)
        T.copy(c[:, 0], C)
"""
    cell = tilelang_nb.compile_cell(text, {}, target="sim", arch="sm_75")
    (found,) = [one for one in cell.diagnostics if one.severity == "error"]
    assert found.code == "TL209" and "a tile that the compiler adds 98,304 bytes, `b` 49,152 bytes" in found.help
