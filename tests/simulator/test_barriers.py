"""Named barriers, mbarriers and warp groups that run side by side."""

from __future__ import annotations

import numpy as np
import pytest
from simulator.nodes import *
from simulator.running import clean, found, run

from tilelang_nb.simulator import Program

X, Y = buffer("X", (512,), "float32"), buffer("Y", (512,), "float32")
TILE = shared("tile", 128, "float32")
BARS = shared("bars", 4, "uint64")


def arguments():
    return {"X": np.arange(512, dtype=np.float32) + 1, "Y": np.zeros(512, np.float32)}


def init(t, index, count):
    return when(t.equal(0), evaluate(ptx["mbarrier.init.shared.b64"](address(BARS, i32(index)), u32(count))))


def arrive(index):
    return evaluate(ptx["mbarrier.arrive.shared::cta.b64"](address(BARS, i32(index))))


def wait(index, parity, line=None):
    return evaluate(cuda.mbarrier_wait(address(BARS, i32(index)), parity), line)


def named(number, count, line=None):
    return evaluate(ptx["bar.sync"](u32(number), u32(count)), line)


def producer_consumer(drop=""):
    """128 producers fill the tile for 128 consumers, 4 times, with a full and an empty barrier."""
    k = var("k")

    def body(t, b):
        g = b * 256 + tir.floormod(t, 128)
        value = load(X, g) * tir.Cast("float32", k + 1)
        fill = [
            wait(1, tir.bitwise_xor(tir.floormod(k, 2), i32(1)), 10),
            store(TILE, value, tir.floormod(t, 128), line=11),
            arrive(0),
        ]
        use = [
            wait(0, tir.floormod(k, 2), 20),
            store(Y, load(Y, g + 128) + load(TILE, 255 - t), g + 128, line=21),
            arrive(1),
        ]
        drops = {"wait full": (use, 0), "wait empty": (fill, 0), "arrive full": (fill, 2), "arrive empty": (use, 2)}
        if drop:
            side, position = drops[drop]
            del side[position]
        roles = when(t < 128, loop(k, 4, *fill), loop(k, 4, *use))
        return [init(t, 0, 128), init(t, 1, 128), barrier(), roles]

    return launch([X, Y], body, threads=256, blocks=2, allocate=[TILE, BARS])


def test_a_producer_and_a_consumer_take_turns():
    got = clean(producer_consumer(), arguments())["Y"].reshape(2, 2, 128)
    x = arguments()["X"].reshape(2, 2, 128)
    assert (got[:, 1] == 10 * x[:, 0, ::-1]).all() and (got[:, 0] == 0).all()


def test_a_missing_wait_for_the_data_is_a_race():
    assert "TL401" in {code for code, _, _ in found(producer_consumer("wait full"), arguments())}


def test_a_missing_wait_for_room_is_found():
    # the producer laps its consumer, which then waits for a phase that has come round
    assert found(producer_consumer("wait empty"), arguments()) == [("TL405", 20, ())]


@pytest.mark.parametrize(("drop", "line"), [("arrive full", 20), ("arrive empty", 10)])
def test_a_missing_arrival_is_a_deadlock_that_names_the_wait(drop, line):
    findings = [d for d in run(producer_consumer(drop), arguments())[1].findings if d.code == "TL405"]
    assert findings and "arrivals at the barrier" in findings[0].message
    assert (
        "threads 0 to 127" in findings[0].message
        and "threads 128 to 255" in findings[0].message
        or drop == "arrive full"
    )


def test_a_wait_that_nobody_ends():
    def body(t, b):
        return [init(t, 0, 32), barrier(), wait(0, 0, 7)]

    func = launch([X, Y], body, threads=32, allocate=[BARS])
    assert found(func, arguments()) == [("TL405", 7, ())]


def test_a_wait_on_a_barrier_that_was_never_initialised():
    func = launch([X, Y], lambda t, b: [wait(0, 0, 7)], threads=32, allocate=[BARS])
    assert found(func, arguments()) == [("TL405", 7, ())]


def test_all_threads_arrive_and_wait():
    k = var("k")

    def body(t, b):
        turn = [store(TILE, load(X, t) + tir.Cast("float32", k), t), arrive(0), wait(0, tir.floormod(k, 2)),
                store(Y, load(Y, t) + load(TILE, 63 - t), t), barrier()]  # fmt: skip
        return [init(t, 0, 64), barrier(), loop(k, 3, *turn)]

    got = clean(launch([X, Y], body, threads=64, allocate=[TILE, BARS]), arguments())["Y"]
    assert (got[:64] == 3 * arguments()["X"][:64][::-1] + 3).all()


def test_expected_bytes_hold_a_phase_open():
    def body(t, b):
        expect = when(t.equal(0), evaluate(ptx["mbarrier.arrive.expect_tx.shared::cta.b64"](address(BARS, 0), u32(64))))
        return [init(t, 0, 1), barrier(), expect, wait(0, 0, 9)]

    _, report = run(launch([X, Y], body, threads=32, allocate=[BARS]), arguments())
    (finding,) = report.findings
    assert finding.code == "TL405" and "64 bytes" in finding.message


def warp_groups(synchronised=True):
    """Two groups of 128 threads, each reversing its own half with a named barrier of its own."""
    halves = shared("halves", 256, "float32")

    def body(t, b):
        def group(first, number):
            g = b * 256 + t
            middle = [named(number, 128)] if synchronised else []
            return seq(
                store(halves, load(X, g), t, line=3), *middle, store(Y, load(halves, first * 2 + 127 - t), g, line=5)
            )

        return [when(t < 128, group(0, 1), group(128, 2))]

    return launch([X, Y], body, threads=256, blocks=2, allocate=[halves])


def test_named_barriers_order_a_group():
    got = clean(warp_groups(), arguments())["Y"]
    assert (got.reshape(4, 128) == arguments()["X"].reshape(4, 128)[:, ::-1]).all()


def test_a_missing_named_barrier_is_a_race():
    assert ("TL401", 5, (3,)) in found(warp_groups(False), arguments())


def test_roles_meet_at_named_barriers_and_at_a_block_barrier_inside_the_branches():
    def build(drop):
        def body(t, b):
            g = b * 256 + t
            write = lambda factor: store(TILE, load(X, g) * f32(factor), t, line=3)
            read = store(Y, load(TILE, t - 128) + load(Y, g), g, line=5)
            come = evaluate(ptx["bar.arrive"](u32(1), u32(256)))
            produce = seq(write(2.0), evaluate(i32(0)) if drop else come, barrier(), write(3.0), come)
            return [when(t < 128, produce, seq(named(1, 256, 8), read, barrier(), named(1, 256, 9), read))]

        return launch([X, Y], body, threads=256, blocks=2, allocate=[TILE])

    got = clean(build(False), arguments())["Y"].reshape(2, 2, 128)
    assert (got[:, 1] == 5 * arguments()["X"].reshape(2, 2, 128)[:, 0]).all()
    assert "TL405" in {code for code, _, _ in found(build(True), arguments())}


def test_registers_of_a_role_are_those_of_its_threads():
    reg = local("reg", 2, "float32")
    k = var("k")

    def body(t, b):
        g = b * 256 + t
        start = unroll(k, 2, store(reg, load(X, g) + tir.Cast("float32", k), k))
        first = seq(store(reg, load(reg, 0) * f32(2), 0), named(1, 128))
        second = seq(store(reg, load(reg, 1) * f32(3), 1), named(2, 128))
        return [start, when(t < 128, first, second), store(Y, load(reg, 0) + load(reg, 1), g)]

    got = clean(launch([X, Y], body, threads=256, blocks=2, allocate=[reg]), arguments())["Y"]
    x = arguments()["X"]
    assert (got == np.where(np.arange(512) % 256 < 128, 2 * x + x + 1, x + 3 * (x + 1))).all()


def test_a_role_of_one_thread():
    def body(t, b):
        produce = seq(store(TILE, load(X, 0), 0), arrive(0))
        consume = seq(wait(0, 0), store(Y, load(TILE, 0), t))
        return [init(t, 0, 1), barrier(), when(t.equal(5), produce, consume)]

    got = clean(launch([X, Y], body, threads=64, allocate=[TILE, BARS]), arguments())["Y"]
    assert got[:64].tolist() == [0.0 if t == 5 else 1.0 for t in range(64)]


def test_the_plain_translation_reports_a_deadlock_too():
    def body(t, b):
        return [init(t, 0, 32), barrier(), wait(0, 0, 7)]

    func = launch([X, Y], body, threads=32, allocate=[BARS])
    assert [f.code for f in Program(func, checks=False).run(arguments()).findings] == ["TL405"]
