"""Findings of threads that wait for ever, or come to a barrier, product or loop in a way that has no end (TL405)."""

from __future__ import annotations

from typing import Any

from ..source import catalogue as say
from ..source.diagnostic import Message, Note
from .machine import waits
from .translation.values import Site
from .who import Place, does, user_span

# What to do about a deadlock, by what the threads wait for; of the first kind that one of them waits for.
CURES = {
    waits.UNKNOWN_BYTES: "announce the bytes of every copy at its barrier, as `T.tma_copy` does for its own",
    waits.MISSING_BYTES: "announce only bytes that copies bring: `T.tma_copy` announces those of its own",
    waits.SURPLUS: "give `T.alloc_barrier` the number of arrivals in a phase, or let only so many arrive",
    waits.CLUSTER: "let all threads of all blocks of the cluster come to it",
    waits.REGISTERS: "let other warp groups give some back first: `T.dec_max_nreg(...)`",
    waits.VALUE: "let another thread store the value before it waits itself, in a block or role that can go on",
    waits.ARRIVALS: "let every thread that the barrier counts arrive, once per phase",
}


def _threads(coming: Any) -> str:
    """Those who come to a named barrier."""
    first, last = coming.threads
    return f"thread {first}" if first == last else f"threads {first} to {last}"


class NeverEnding:
    """Part of the findings of a launch."""

    sites: list[Site]

    def _add(self, key: tuple[Any, ...], count: int, site: Site | None, make: Any) -> None:
        raise NotImplementedError

    def divergent(self, site: int, where: Place, count: int) -> None:
        here = self.sites[site]

        def make() -> tuple[Message, tuple[Note, ...]]:
            problem = f"only some threads of a block come to this barrier; {does(where, 'do')} not"
            remedy = "move the barrier out of the `if` or loop that differs between the threads of a block"
            return say.SimulatedDeadlock(problem=problem, remedy=remedy), ()

        self._add(("TL405", here, "divergent"), count, here, make)

    def part_of_warp_group(self, site: int, where: Place, what: str = "matrix product") -> None:
        here = self.sites[site]

        def make() -> tuple[Message, tuple[Note, ...]]:
            problem = f"only a part of a warp group comes to this {what}; {does(where, 'do')} not"
            remedy = "let all 128 threads of a warp group run it together"
            return say.SimulatedDeadlock(problem=problem, remedy=remedy), ()

        self._add(("TL405", here, "warp group"), 1, here, make)

    # ---- named barriers ----
    def part_of_warp(self, site: int, where: Place) -> None:
        """A named barrier to which only some threads of a warp come; where: one that does not."""
        here = self.sites[site]

        def make() -> tuple[Message, tuple[Note, ...]]:
            problem = f"only some threads of a warp come to this barrier; {does(where, 'do')} not"
            remedy = "let whole warps come: barriers count warps, and all threads of one wait together"
            return say.MixedBarrier(problem=problem, remedy=remedy), ()

        self._add(("TL405", here, "part of a warp"), 1, here, make)

    def come_again(self, site: int, other: int, block: tuple[int, int, int], coming: Any) -> None:
        """Threads that come to a barrier a second time before it has opened."""
        here, there = self.sites[site], self.sites[other]

        def make() -> tuple[Message, tuple[Note, ...]]:
            problem = f"{_threads(coming)} of block {block} come to this barrier again before it has opened"
            remedy = "wait at another barrier between the two for those who wait at this one"
            return say.MixedBarrier(problem=problem, remedy=remedy), (Note("the first time", user_span(there.span)),)

        self._add(("TL405", here, there, "again"), 1, here, make)

    def too_many_come(self, site: int, block: tuple[int, int, int], coming: int, expected: int) -> None:
        here = self.sites[site]

        def make() -> tuple[Message, tuple[Note, ...]]:
            problem = f"{coming} threads of block {block} come to this barrier, which opens for every {expected}"
            remedy = f"count all that come: `T.sync_threads(barrier_id, {coming})`"
            return say.MixedBarrier(problem=problem, remedy=remedy), ()

        self._add(("TL405", here, "too many"), 1, here, make)

    def other_count(self, site: int, other: int, block: tuple[int, int, int], coming: Any, earlier: Any) -> None:
        """Threads come to a barrier that others wait at, and count other threads than those do."""
        here, there = self.sites[site], self.sites[other]

        def make() -> tuple[Message, tuple[Note, ...]]:
            problem = (
                f"{_threads(coming)} of block {block} come to this barrier and count {coming.expected}, and"
                f" {_threads(earlier)}, which have come to it, count {earlier.expected}"
            )
            remedy = "give the same number everywhere: all threads that come, those that only arrive too"
            return say.MixedBarrier(problem=problem, remedy=remedy), (
                Note("the others come here", user_span(there.span)),
            )

        self._add(("TL405", here, there, "other count"), 1, here, make)

    def mixed_barrier(self, site: int, other: int, block: tuple[int, int, int], coming: Any, earlier: Any) -> None:
        """Threads come to a barrier, and nothing orders them behind those for whom it has opened."""
        here, there = self.sites[site], self.sites[other]

        def make() -> tuple[Message, tuple[Note, ...]]:
            problem = (
                f"{_threads(coming)} of block {block} come to a barrier that {_threads(earlier)} use as well, and"
                " nothing orders the two: it may open for some of both"
            )
            remedy = "give each group a `barrier_id` of its own, or count all of them if they are to meet"
            return say.MixedBarrier(problem=problem, remedy=remedy), (
                Note("the others come here", user_span(there.span)),
            )

        self._add(("TL405", *sorted((here.place, there.place), key=str), "mixed"), 1, here, make)

    def cluster_out_of_turn(self, site: int, where: Place, again: bool, count: int) -> None:
        """Threads that arrive at the barrier of the cluster again before they wait, or wait without an arrival."""
        here = self.sites[site]

        def make() -> tuple[Message, tuple[Note, ...]]:
            problem = f"{does(where, 'wait')} for the barrier of the cluster without an arrival at it before"
            remedy = "put `T.cluster_arrive()` before this, or call `T.cluster_sync()`, which does both"
            if again:
                problem = f"{does(where, 'arrive')} at the barrier of the cluster again and did not wait for it between"
                remedy = "put `T.cluster_wait()` before this: each arrival has a wait of its own"
            return say.SimulatedDeadlock(problem=problem, remedy=remedy), ()

        self._add(("TL405", here, "cluster", again), count, here, make)

    def register_direction(self, site: int, increase: bool, count: int, held: int) -> None:
        here = self.sites[site]

        def make() -> tuple[Message, tuple[Note, ...]]:
            verb, other = ("takes", "T.dec_max_nreg") if increase else ("gives back", "T.inc_max_nreg")
            problem = f"this {verb} registers down to or up to {count} for each thread, and they hold {held}"
            return say.RegisterShare(problem=problem, remedy=f"write `{other}({count})`"), ()

        self._add(("TL405", here, "registers"), 1, here, make)

    def deadlock(self, site: int, lack: waits.Lack) -> None:
        here = self.sites[site] if 0 <= site < len(self.sites) else None

        def make() -> tuple[Message, tuple[Note, ...]]:
            remedy = next(remedy for kind, remedy in CURES.items() if kind in lack.kinds)
            return say.SimulatedDeadlock(problem=f"no thread can go on: {lack.text}", remedy=remedy), ()

        self._add(("TL405", here, "deadlock"), 1, here, make)

    def endless(self, site: int, steps: int) -> None:
        here = self.sites[site]

        def make() -> tuple[Message, tuple[Note, ...]]:
            problem = f"no end after {steps} loop turns"
            remedy = "check that the loop's condition becomes false"
            if here.kind == "asking loop":
                problem = "this loop asks again and again, and no other thread stores what would end it"
                remedy = CURES[waits.VALUE]
            if here.kind == "counted loop":
                problem = f"the simulated device stops after {steps} loop turns, and this loop has more"
                remedy = "run the kernel with smaller sizes"
            return say.EndlessLoop(problem=problem, remedy=remedy), ()

        self._add(("TL405", here, "endless"), 1, here, make)

    def same_turns(self, site: int, turns: int) -> None:
        """A `while` at `site` that does the same turns for ever.  turns: after how many it is where it was."""
        here = self.sites[site]

        def make() -> tuple[Message, tuple[Note, ...]]:
            problem = "this loop does the same turn for ever: no statement in it changes what its condition reads"
            if turns > 1:
                problem = f"this loop does the same {turns} turns for ever, and its condition stays true in all of them"
            remedy = (
                "let the loop change what its condition reads; where it waits for what other threads store, read that"
                " with `T.atomic_load`"
            )
            return say.EndlessLoop(problem=problem, remedy=remedy), ()

        self._add(("TL405", here, "same turns"), 1, here, make)
