"""Random programs of stores, loads and barriers of every kind, some of them missing or of some threads only.

A second engine, which keeps a vector clock for each thread, says which accesses nothing orders.
"""

from __future__ import annotations

import numpy as np
import pytest
from simulator.nodes import *
from simulator.running import found

THREADS, HALF = 128, 64
X, Y = buffer("X", (THREADS,), "int32"), buffer("Y", (THREADS,), "int32")
TILE, BARS = shared("tile", THREADS, "int32"), shared("bars", 8, "uint64")
WHO = np.arange(THREADS)
# which element a thread touches: its own, that of another thread of its warp, of its half, or of the other half
PLACES = {
    "own": (lambda t: t, WHO),
    "warp": (lambda t: tir.bitwise_xor(t, i32(5)), WHO ^ 5),
    "half": (lambda t: tir.bitwise_xor(t, i32(40)), WHO ^ 40),
    "other": (lambda t: tir.bitwise_xor(t, i32(64)), WHO ^ 64),
}
# who comes to something: all threads, the first half, the second one, one warp, odd threads by their data
GROUPS = {
    "all": (None, WHO >= 0),
    "first": (lambda t: t < HALF, WHO < HALF),
    "second": (lambda t: i32(HALF) <= t, WHO >= HALF),
    "a warp": (lambda t: tir.floordiv(t, 32).equal(1), WHO // 32 == 1),
    "one": (lambda t: t.equal(37), WHO == 37),
    "odd": (lambda t: tir.floormod(load(X, t), 2).equal(1), WHO % 2 == 1),
}


def under(group, t, statement):
    condition = GROUPS[group][0]
    return statement if condition is None else when(condition(t), statement)


class Clocks:
    """What each thread knows: known[t, u] is the last step of u that comes before what t does next."""

    def __init__(self):
        self.known = np.zeros((THREADS, THREADS), np.int64)
        self.now = 0
        self.writes: list[dict[int, int]] = [{} for _ in WHO]  # of each element: thread -> last step
        self.reads: list[dict[int, int]] = [{} for _ in WHO]
        self.raced = False

    def access(self, group, place, write):
        self.now += 1
        for t in WHO[GROUPS[group][1]].tolist():
            at = int(PLACES[place][1][t])
            others = [*self.writes[at].items(), *(self.reads[at].items() if write else ())]
            self.raced |= any(u != t and step > self.known[t, u] for u, step in others)
        for t in WHO[GROUPS[group][1]].tolist():
            (self.writes if write else self.reads)[int(PLACES[place][1][t])][t] = self.now
            self.known[t, t] = self.now

    def meet(self, threads):
        self.known[threads] = self.known[threads].max(0)

    def hand_over(self, giving, taking):
        self.known[taking] = np.maximum(self.known[taking], self.known[giving].max(0))


def program(rng):
    """(program, does it race)"""
    clocks, steps, phases = Clocks(), [], 0
    for thread in WHO:
        clocks.writes[thread][int(thread)] = 1
        clocks.known[thread, thread] = 1
    clocks.now = 1

    def add(make):
        steps.append(make)

    for _ in range(int(rng.integers(2, 7))):
        place, group = rng.choice(list(PLACES)), rng.choice(list(GROUPS), p=[0.5, 0.1, 0.1, 0.1, 0.1, 0.1])
        kind = rng.choice(["read", "write", "block", "warp", "named", "mbarrier"], p=[0.3, 0.15, 0.15, 0.1, 0.15, 0.15])
        if kind == "read":
            clocks.access(group, place, False)
            add(lambda t, group=group, place=place: under(
                group, t, store(Y, load(Y, t) + load(TILE, PLACES[place][0](t)), t)))  # fmt: skip
        elif kind == "write":
            clocks.access(group, place, True)
            add(lambda t, group=group, place=place: under(group, t, store(TILE, t + 1000, PLACES[place][0](t))))
        elif kind == "block":
            clocks.meet(WHO)
            add(lambda t: barrier())
        elif kind == "warp":
            group = rng.choice(["all", "a warp"])
            for warp in range(4):
                if group == "all" or warp == 1:
                    clocks.meet(WHO[warp == WHO // 32])
            add(lambda t, group=group: under(group, t, barrier(scope="warp")))
        elif kind == "named":
            halves = [half for half in (0, 1) if rng.random() < 0.8]
            for half in halves:
                clocks.meet(WHO[half == WHO // HALF])
            ways = [
                evaluate(ptx["bar.sync"](u32(1 + h), u32(HALF))) if h in halves else evaluate(i32(0)) for h in (0, 1)
            ]
            add(lambda t, ways=ways: when(t < HALF, *ways))
        elif phases < 8:  # all threads of a group arrive, and some wait
            giving, taking = rng.choice(["all", "first", "second"]), rng.choice(list(GROUPS))
            clocks.hand_over(GROUPS[giving][1], GROUPS[taking][1])
            arrive = evaluate(ptx["mbarrier.arrive.shared::cta.b64"](address(BARS, i32(phases))))
            wait = evaluate(cuda.mbarrier_wait(address(BARS, i32(phases)), 0))
            add(lambda t, g=giving, w=taking, a=arrive, b=wait: seq(under(g, t, a), under(w, t, b)))
            steps[-1].count = int(GROUPS[giving][1].sum())
            phases += 1

    def body(t, b):
        counts = [step.count for step in steps if hasattr(step, "count")]
        made = [evaluate(ptx["mbarrier.init.shared.b64"](address(BARS, i32(i)), u32(n))) for i, n in enumerate(counts)]
        start = [when(t.equal(0), seq(*made)), barrier()] if made else []
        return [*start, store(TILE, load(X, t), t), *[step(t) for step in steps]]

    return launch([X, Y], body, threads=THREADS, allocate=[TILE, BARS]), clocks.raced


@pytest.mark.parametrize("seed", range(24))
def test_what_nothing_orders_is_found_and_nothing_else(seed):
    rng = np.random.default_rng(seed)
    for _ in range(8):
        func, raced = program(rng)
        codes = {code for code, *_ in found(func, {"X": WHO.astype(np.int32), "Y": np.zeros(THREADS, np.int32)})}
        assert codes == ({"TL401"} if raced else set()), func.script()
