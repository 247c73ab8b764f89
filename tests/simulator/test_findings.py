"""Every planted fault is found, with its lines; the correct twin has no finding."""

from __future__ import annotations

import numpy as np
import pytest
from simulator.nodes import *
from simulator.running import clean, found, run

from tilelang_nb.simulator import Program

X, Y = buffer("X", (128,), "float32"), buffer("Y", (128,), "float32")
TILE, REG = shared("tile", 64, "float32"), local("reg", 1, "float32")


def arguments() -> dict:
    return {"X": np.arange(128, dtype=np.float32) + 1, "Y": np.zeros(128, np.float32)}


def kernel(body, *allocate):
    return launch([X, Y], body, threads=64, blocks=2, allocate=allocate or (TILE, REG))


def test_shared_read_after_write_without_a_barrier_is_a_race():
    def body(t, b):
        return [store(TILE, load(X, b * 64 + t), t, line=3), store(Y, load(TILE, 63 - t), b * 64 + t, line=4)]

    assert found(kernel(body), arguments()) == [("TL401", 4, (3,))]


def test_a_barrier_orders_the_accesses():
    def body(t, b):
        g = b * 64 + t
        return [store(TILE, load(X, g), t, line=3), barrier(), store(Y, load(TILE, 63 - t), g, line=4)]

    result = clean(kernel(body), arguments())
    assert (result["Y"] == arguments()["X"].reshape(2, 64)[:, ::-1].reshape(-1)).all()


def test_a_thread_may_read_what_it_wrote_itself():
    def body(t, b):
        return [store(TILE, load(X, b * 64 + t), t), store(Y, load(TILE, t), b * 64 + t)]

    clean(kernel(body), arguments())


def test_write_after_read_without_a_barrier_is_a_race():
    def body(t, b):
        g = b * 64 + t
        return [
            store(TILE, load(X, g), t, line=3),
            barrier(),
            store(Y, load(TILE, 63 - t), g, line=4),
            store(TILE, f32(0), t, line=5),
        ]

    assert found(kernel(body), arguments()) == [("TL401", 5, (4,))]


def test_a_race_carried_over_loop_turns_is_found():
    k = var("k")

    def body(t, b, fixed):
        inside = [store(TILE, load(X, b * 64 + t) + tir.Cast("float32", k), t, line=4), barrier()]
        inside += [store(Y, load(TILE, 63 - t), b * 64 + t, line=6)] + ([barrier()] if fixed else [])
        return [loop(k, 4, *inside)]

    assert found(kernel(lambda t, b: body(t, b, False)), arguments()) == [("TL401", 4, (6,))]
    clean(kernel(lambda t, b: body(t, b, True)), arguments())


def test_different_values_stored_to_one_shared_element_in_one_statement_are_a_race():
    def body(t, b):
        return [store(TILE, load(X, b * 64 + t), tir.floordiv(t, 2), line=3)]

    assert found(kernel(body), arguments()) == [("TL401", 3, (3,))]


def test_one_value_stored_by_many_threads_is_no_race():
    def body(t, b):
        return [
            store(TILE, f32(7), tir.floordiv(t, 2)),
            store(REG, load(TILE, tir.floordiv(t, 2)), 0),  # each thread stored this value itself
            barrier(),
            store(Y, load(TILE, tir.floordiv(t, 4)) + load(REG, 0), b * 64 + t),
        ]

    assert (clean(kernel(body), arguments())["Y"] == 14).all()


def test_one_value_stored_by_all_threads_and_read_by_all_is_no_race():
    def body(t, b):
        return [store(TILE, f32(3), 0), store(Y, load(TILE, 0), b * 64 + t)]

    assert (clean(kernel(body), arguments())["Y"] == 3).all()


def test_a_value_stored_by_some_threads_is_not_safe_for_the_others():
    def body(t, b):
        return [when(t < 32, store(TILE, f32(3), 0, line=3)), store(Y, load(TILE, 0), b * 64 + t, line=4)]

    assert found(kernel(body), arguments()) == [("TL401", 4, (3,))]


def test_blocks_that_store_different_values_to_one_global_element_race():
    out = buffer("out", (4,), "int32")
    func = launch([out], lambda t, b: [store(out, b, 0, line=5)], threads=1, blocks=2)
    assert found(func, {"out": np.zeros(4, np.int32)}) == [("TL401", 5, (5,))]


def test_blocks_that_run_one_batch_after_another_race_too(monkeypatch):
    import tilelang_nb.simulator.program as program

    monkeypatch.setattr(program, "LANES", 1)
    out = buffer("out", (4,), "int32")
    func = launch([out], lambda t, b: [store(out, b, 0, line=5)], threads=1, blocks=2)
    assert found(func, {"out": np.zeros(4, np.int32)}) == [("TL401", 5, (5,))]


def test_blocks_that_store_one_value_to_one_global_element_do_not_race():
    out = buffer("out", (4,), "int32")
    func = launch([out], lambda t, b: [store(out, i32(9), 0)], threads=32, blocks=8)
    assert clean(func, {"out": np.zeros(4, np.int32)})["out"].tolist() == [9, 0, 0, 0]


def test_a_block_that_reads_what_another_block_writes_races():
    def body(t, b):
        g = b * 64 + t
        return [store(Y, load(X, g), g, line=3), barrier(), store(X, load(Y, tir.floormod(g + 64, 128)), g, line=5)]

    codes = found(kernel(body), arguments())
    assert ("TL401", 5, (3,)) in codes


def test_global_memory_used_within_a_block_needs_a_barrier():
    def body(t, b, with_barrier):
        g = b * 64 + t
        middle = [barrier()] if with_barrier else []
        return [store(Y, load(X, g), g, line=3), *middle, store(REG, load(Y, b * 64 + 63 - t), 0, line=4), barrier(),
                store(Y, load(REG, 0), g, line=5)]  # fmt: skip

    assert found(kernel(lambda t, b: body(t, b, False)), arguments()) == [("TL401", 4, (3,))]
    clean(kernel(lambda t, b: body(t, b, True)), arguments())


def test_reads_of_one_element_by_different_threads_at_different_times_do_not_disturb_a_later_write():
    def body(t, b):
        g = b * 64 + t
        return [
            store(REG, load(X, g), 0),
            barrier(),
            store(REG, load(X, b * 64 + 63 - t) + load(REG, 0), 0),
            barrier(),
            store(X, load(REG, 0), g),
        ]

    clean(kernel(body), arguments())


def test_accumulating_into_one_global_element_by_all_threads_races():
    def body(t, b):
        return [store(Y, load(Y, 0) + f32(1), 0, line=3)]

    assert ("TL401", 3, (3,)) in found(kernel(body), arguments())


def test_a_race_within_one_statement_is_not_to_be_mended_by_a_barrier():
    func = launch([Y], lambda t, b: [store(Y, load(Y, 0) + f32(1), 0, line=3)], threads=64, blocks=1)
    (finding,) = Program(func).run({"Y": np.zeros(128, np.float32)}).findings
    assert "T.atomic_add" in finding.help and "sync_threads" not in finding.help


def test_each_thread_may_update_its_own_global_element_again_and_again():
    k = var("k")

    def body(t, b):
        g = b * 64 + t
        return [loop(k, 5, store(Y, load(Y, g) + load(X, g), g))]

    assert (clean(kernel(body), arguments())["Y"] == 5 * arguments()["X"]).all()


def test_atomic_operations_do_not_race_with_each_other_but_with_plain_accesses():
    def body(t, b, plain):
        statements = [evaluate(extern("float32", "tl_atomic_add", address(Y, 0), load(X, t)), line=3)]
        return statements + ([store(Y, f32(0), 0, line=4)] if plain else [])

    clean(kernel(lambda t, b: body(t, b, False)), arguments())
    assert ("TL401", 4, (3,)) in found(kernel(lambda t, b: body(t, b, True)), arguments())


def last_block(counter_first: bool, order: str = "acq_rel"):
    """Every block stores a partial result and counts itself; the last one sums up."""
    partial, counter, out = (
        buffer("partial", (4,), "int32"),
        buffer("counter", (1,), "int32"),
        buffer("out", (1,), "int32"),
    )
    ticket, flag = local("ticket", 1, "int32"), shared("flag", 1, "int32")
    k = var("k")

    def body(t, b):
        orders = [extern("int32", f"tl_order_{order}")] if order else []
        count = store(ticket, extern("int32", "tl_atomic_add", address(counter, 0), i32(1), *orders), 0)
        write = store(partial, b + 1, b, line=3)
        lead = seq(count, write) if counter_first else seq(write, count)
        total = loop(k, 4, store(out, load(out, 0) + load(partial, k), 0, line=9))
        return [
            when(t.equal(0), seq(lead, store(flag, load(ticket, 0), 0))),
            barrier(),
            when(tir.And(load(flag, 0).equal(3), t.equal(0)), total),
        ]

    func = launch([partial, counter, out], body, threads=32, blocks=4, allocate=[ticket, flag])
    return func, {"partial": np.zeros(4, np.int32), "counter": np.zeros(1, np.int32), "out": np.zeros(1, np.int32)}


def test_blocks_that_meet_at_an_atomic_counter_are_in_order():
    assert clean(*last_block(False))["out"][0] == 10


def test_blocks_that_meet_at_a_relaxed_counter_are_not():
    assert ("TL401", 9, (3,)) in found(*last_block(False, ""))


def test_what_a_block_does_after_the_atomic_counter_is_not():
    assert ("TL401", 9, (3,)) in found(*last_block(True))


def test_a_uniform_index_outside_gives_zero_also_where_it_counts_turns():
    n, at_ = buffer("n", (2,), "int32"), buffer("at_", (1,), "int32")
    k = var("k")

    def body(t, b):
        return [loop(k, load(n, load(at_, 0)), store(Y, f32(1), t)), store(Y, load(Y, t) + f32(1), t)]

    func = launch([n, at_, Y], body, threads=32)
    arguments = {"n": np.ones(2, np.int32), "at_": np.array([5], np.int32), "Y": np.zeros(128, np.float32)}
    result, report = run(func, arguments)
    assert [f.code for f in report.findings] == ["TL402"] and (result["Y"][:32] == 1).all()


def test_more_barriers_than_records_have_room_for_are_no_finding(monkeypatch):
    import tilelang_nb.simulator.machine.shadow as shadow

    monkeypatch.setattr(shadow, "LAST_EPOCH", 20)
    k = var("k")

    def body(t, b):
        exchange = [store(TILE, load(X, b * 64 + t), t), barrier(), store(Y, load(TILE, 63 - t), b * 64 + t), barrier()]
        return [loop(k, 40, *exchange)]

    clean(kernel(body), arguments())


def test_global_reads_outside_are_found_and_give_zero():
    def body(t, b):
        return [store(Y, load(X, b * 64 + t + 1), b * 64 + t, line=4)]

    result, report = run(kernel(body), arguments())
    (finding,) = report.findings
    assert (finding.code, finding.span.line) == ("TL402", 4)
    assert "thread (63, 0, 0) of block (1, 0, 0) reads `X[128]`" in finding.message and "(128,)" in finding.message
    assert (result["Y"] == np.r_[arguments()["X"][1:], 0]).all()


def test_global_writes_outside_are_found_and_skipped():
    def body(t, b):
        return [store(Y, load(X, b * 64 + t), b * 64 + t - 1, line=4)]

    result, report = run(kernel(body), arguments())
    assert [f.code for f in report.findings] == ["TL402"] and "`Y[-1]`" in report.findings[0].message
    assert (result["Y"] == np.r_[arguments()["X"][1:], 0]).all()


def test_an_index_outside_one_dimension_is_found_although_the_address_is_inside():
    a, out = buffer("a", (8, 8), "int32"), buffer("out", (8,), "int32")
    func = launch([a, out], lambda t, b: [store(out, load(a, t, t + 1), t, line=2)], threads=8)
    _, report = run(func, {"a": np.ones((8, 8), np.int32), "out": np.zeros(8, np.int32)})
    assert [f.code for f in report.findings] == ["TL402"] and "`a[7, 8]`" in report.findings[0].message


def test_an_access_outside_in_one_turn_for_all_of_an_unrolled_loop_is_found():
    """The row is the same in every turn, the column, which is always inside, is not."""
    a, index, regs = buffer("a", (4, 8), "float32"), buffer("at", (1,), "int32"), local("regs", 4, "float32")

    def body(t, b):
        k = var("k")
        return [unroll(k, 4, store(regs, load(a, load(index, 0), k * 2), k, line=3)), store(Y, load(regs, 1), t)]

    func = launch([a, index, Y], body, threads=64, allocate=[regs])
    arrays = {"a": np.ones((4, 8), np.float32), "at": np.array([5], np.int32), "Y": np.zeros(128, np.float32)}
    _, report = run(func, arrays)
    assert [(f.code, f.span.line) for f in report.findings] == [("TL402", 3)] and "`a[5, 0]`" in report.findings[
        0
    ].message


def test_a_guarded_access_outside_is_no_finding():
    def body(t, b):
        g = b * 64 + t
        return [store(Y, tir.if_then_else(g + 5 < 128, load(X, g + 5), f32(-1)), g)]

    assert (clean(kernel(body), arguments())["Y"] == np.r_[arguments()["X"][5:], [-1] * 5]).all()


def test_a_guard_by_and_keeps_the_right_side_from_running():
    def body(t, b):
        g = b * 64 + t
        condition = tir.And(g + 5 < 128, load(X, g + 5) > f32(64))
        return [when(condition, store(Y, f32(1), g))]

    wanted = (np.r_[arguments()["X"][5:], [0] * 5] > 64).astype(np.float32)
    assert (clean(kernel(body), arguments())["Y"] == wanted).all()


def test_shared_memory_outside_is_found_with_the_index_from_data():
    s, index, out = shared("s", 8, "int32"), buffer("at", (1,), "int32"), buffer("out", (8,), "int32")

    def body(t, b):
        return [store(s, i32(0), t), barrier(), when(t.equal(0), store(s, i32(1), load(index, 0), line=10)), barrier(),
                store(out, load(s, t), t)]  # fmt: skip

    func = launch([index, out], body, threads=8, allocate=[s])
    _, report = run(func, {"at": np.array([9], np.int32), "out": np.ones(8, np.int32)})
    (finding,) = report.findings
    assert (finding.code, finding.span.line) == ("TL402", 10) and "`s[9]`" in finding.message


def test_registers_outside_are_found():
    regs, index = local("regs", 4, "float32"), buffer("at", (64,), "int32")

    def body(t, b):
        k = var("k")
        return [unroll(k, 4, store(regs, f32(1), k)), store(Y, load(regs, load(index, t)), t, line=6)]

    func = launch([index, Y], body, threads=64, allocate=[regs])
    _, report = run(func, {"at": np.arange(64, dtype=np.int32) % 5, "Y": np.zeros(128, np.float32)})
    assert [(f.code, f.span.line) for f in report.findings] == [("TL402", 6)]


def test_shared_memory_that_nothing_has_written_is_found():
    def body(t, b):
        return [
            when(t < 63, store(TILE, f32(1), t, line=3)),
            barrier(),
            store(Y, load(TILE, 63 - t), b * 64 + t, line=4),
        ]

    assert found(kernel(body), arguments()) == [("TL403", 4, ())]


def test_registers_that_nothing_has_written_are_found():
    def body(t, b):
        return [when(t < 63, store(REG, f32(1), 0, line=3)), store(Y, load(REG, 0), b * 64 + t, line=4)]

    _, report = run(kernel(body), arguments())
    (finding,) = report.findings
    assert (finding.code, finding.span.line) == ("TL403", 4) and "thread (63, 0, 0)" in finding.message


def test_registers_written_on_both_branches_are_initialised():
    def body(t, b):
        return [when(t < 20, store(REG, f32(1), 0), store(REG, f32(2), 0)), store(Y, load(REG, 0), b * 64 + t)]

    assert (clean(kernel(body), arguments())["Y"] == np.where(np.arange(128) % 64 < 20, 1, 2)).all()


def test_a_register_of_a_loop_body_is_not_initialised_by_an_earlier_turn():
    k = var("k")

    def body(t, b):
        first = when(k.equal(0), store(REG, f32(1), 0))
        return [loop(k, 2, tir.AllocBuffer(REG), first, store(Y, load(REG, 0), b * 64 + t, line=5))]

    assert found(launch([X, Y], body, threads=64, blocks=2), arguments()) == [("TL403", 5, ())]


def test_a_failed_assertion_stops_the_launch_and_names_the_thread():
    def body(t, b):
        check = evaluate(extern("void", "tl_device_assert", load(X, b * 64 + t) < f32(100), "too large"), line=8)
        return [check, store(Y, f32(1), b * 64 + t)]

    result, report = run(kernel(body), arguments())
    (finding,) = report.findings
    assert (finding.code, finding.span.line) == ("TL404", 8)
    assert "too large" in finding.message and "thread (35, 0, 0) of block (1, 0, 0)" in finding.message
    assert (result["Y"] == 0).all()


def test_a_true_assertion_says_nothing():
    def body(t, b):
        return [
            evaluate(extern("void", "tl_device_assert", load(X, t) > f32(0), "never")),
            store(Y, f32(1), b * 64 + t),
        ]

    clean(kernel(body), arguments())


def test_a_barrier_that_only_some_threads_reach_is_found():
    def body(t, b):
        return [when(load(X, t) < f32(10), barrier(line=7), line=6)]

    assert found(kernel(body), arguments()) == [("TL405", 7, ())]


def test_a_barrier_that_whole_blocks_skip_is_fine():
    def body(t, b):
        return [when(b < 1, seq(store(TILE, f32(1), t), barrier(), store(Y, load(TILE, 63 - t), t)))]

    clean(kernel(body), arguments())


@pytest.mark.parametrize("uniform", [True, False])
def test_an_endless_loop_ends_with_a_finding(uniform):
    def body(t, b):
        condition = load(Y, 0) < f32(1) if uniform else load(Y, t) < f32(1)
        return [tir.While(condition, store(REG, f32(1), 0), at(4))]

    assert found(kernel(body), arguments(), step_limit=1000) == [("TL405", 4, ())]


def test_an_endless_loop_with_a_break_ends_with_a_finding():
    def body(t, b):
        return [tir.While(tir.const(True, "bool"), when(load(Y, t) > f32(1), tir.Break()), at(4))]

    assert found(kernel(body), arguments(), step_limit=1000) == [("TL405", 4, ())]


def test_findings_of_one_line_are_one_with_a_count():
    k = var("k")

    def body(t, b):
        return [loop(k, 3, store(Y, load(X, b * 64 + t + 64), b * 64 + t, line=4), barrier())]

    report = Program(kernel(body)).run(arguments())
    (finding,) = report.findings
    assert [note.message for note in finding.notes] == ["192 times in this launch"]


def test_shuffles_exchange_registers_without_a_finding():
    def body(t, b):
        total = load(X, b * 64 + t)
        statements = [store(REG, total, 0)]
        for lane in (16, 8, 4, 2, 1):
            statements.append(store(REG, load(REG, 0) + shuffle("_xor", "float32", load(REG, 0), i32(lane)), 0))
        return [*statements, store(Y, load(REG, 0), b * 64 + t)]

    wanted = arguments()["X"].reshape(4, 32).sum(1).repeat(32)
    assert (clean(kernel(body), arguments())["Y"] == wanted).all()


def test_a_warp_barrier_orders_accesses_inside_a_warp_only():
    def body(t, b, partner):
        g = b * 64 + t
        sync = evaluate(extern("void", "__syncwarp"))
        return [store(TILE, load(X, g), t, line=3), sync, store(Y, load(TILE, partner(t)), g, line=4)]

    clean(kernel(lambda t, b: body(t, b, lambda t: tir.bitwise_xor(t, i32(31)))), arguments())
    assert found(kernel(lambda t, b: body(t, b, lambda t: tir.bitwise_xor(t, i32(63)))), arguments()) == [
        ("TL401", 4, (3,))
    ]


def test_views_of_one_arena_share_their_races_and_their_initialisation():
    arena = shared("arena", 512, "uint8")
    words, halfs = shared("words", 64, "float32"), shared("halfs", 128, "float16")

    def body(t, b, apart):
        view = tir.DeclBuffer(words, data=tir.ptr_byte_offset(tir.buffer_data(arena), 256 if apart else 0, "float32"))
        other = tir.DeclBuffer(halfs, data=tir.ptr_byte_offset(tir.buffer_data(arena), 0, "float16"))
        k = var("k")
        fill = unroll(k, 2, store(halfs, tir.const(1, "float16"), t * 2 + k, line=3))
        return [tir.AllocBuffer(arena), view, other, fill, barrier(), store(words, f32(2), 63 - t, line=5),
                store(Y, tir.Cast("float32", load(halfs, t * 2)), b * 64 + t, line=6)]  # fmt: skip

    assert found(launch([X, Y], lambda t, b: body(t, b, False), threads=64, blocks=2), arguments()) == [
        ("TL401", 6, (5,))
    ]
    clean(launch([X, Y], lambda t, b: body(t, b, True), threads=64, blocks=2), arguments())


def test_an_interrupt_in_a_running_kernel_passes(monkeypatch):
    from tilelang_nb.simulator.machine.strand import Strand

    def interrupt(self, site):
        raise KeyboardInterrupt

    monkeypatch.setattr(Strand, "take_step", interrupt)
    program = Program(kernel(lambda t, b: [tir.While(load(Y, t) < f32(1), store(REG, f32(1), 0))]))
    with pytest.raises(KeyboardInterrupt):
        program.run(arguments())
