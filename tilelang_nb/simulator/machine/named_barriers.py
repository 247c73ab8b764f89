"""Named barriers: hardware barriers of a block at which a number of threads meet, counted in whole warps.

A barrier does not know who comes. Where two groups of threads use one at the same time, or more come than it counts,
it opens for a mixture of them on a device, and nothing orders what they do. The simulated device runs one group after
the other, so that it looks at order instead: whoever comes to a barrier must have waited for its last opening, or
know by other barriers that all came to that one.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .knowledge import Known
from .waits import Lack, Wait

WARP = 32
Mask = Any


@dataclass(frozen=True)
class Coming:
    """Threads of one strand that have come to a barrier.  warps: all of them; epoch: their last one before."""

    strand: int
    warps: frozenset[int]
    epoch: int
    site: int
    threads: tuple[int, int]  # the first and the last one
    expected: int


@dataclass
class NamedBarrier:
    """A hardware barrier of a block: how many threads have come, and how often it has opened.

    opened: what those who came knew, for the last two openings by parity.  here, before: who has come, and who came to
    the last opening.
    """

    arrived: int = 0
    generation: int = 0
    known: Known = field(default_factory=dict)
    opened: dict[int, Known] = field(default_factory=dict)
    here: list[Coming] = field(default_factory=list)
    before: list[Coming] = field(default_factory=list)

    def come(self, threads: int, expected: int) -> None:
        self.arrived += threads
        if self.arrived >= expected:
            self.opened[self.generation & 1] = dict(self.known)
            self.arrived = 0
            self.generation += 1
            self.here, self.before = [], self.here


class NamedBarriers:
    """Part of a strand."""

    def _groups(self, number: Any, threads: Any, mask: Mask) -> Iterator[tuple[int, int, int, np.ndarray]]:
        """(block, number of the barrier, threads that it counts, lanes that come) of each barrier they come to."""
        shape = self.B, self.T
        lanes = np.broadcast_to(True if mask is None else mask, shape)
        if isinstance(number, int) and isinstance(threads, int):
            for block in range(self.B):
                if mask is None or lanes[block].any():
                    yield block, number, threads, lanes[block]
            return
        numbers, counts = np.broadcast_to(number, shape), np.broadcast_to(threads, shape)
        for block in range(self.B):
            for which, expected in sorted({*zip(numbers[block][lanes[block]], counts[block][lanes[block]])}):
                yield (
                    block, int(which), int(expected),
                    lanes[block] & (numbers[block] == which) & (counts[block] == expected),
                )  # fmt: skip

    def _arrive(self, number: Any, threads: Any, mask: Mask, site: int) -> list[tuple[NamedBarrier, int, int, int]]:
        table = []
        for block, which, expected, lanes in self._groups(number, threads, mask):
            barrier = self.machine.named.setdefault((block + self.first, which), NamedBarrier())
            coming = int(np.count_nonzero(lanes))
            if self.machine.checks:
                self._check_arrival(barrier, block, lanes, expected, site)
            self._release(barrier.known, self._warps(lanes[None] if self.B == 1 else lanes, block))
            table.append((barrier, barrier.generation, which, expected))
            barrier.come(-(-coming // WARP) * WARP if expected % WARP == 0 else coming, expected)
        return table

    def named_arrive(self, number: Any, threads: Any, mask: Mask, site: int) -> None:
        self._arrive(number, threads, mask, site)

    def named_barrier(self, number: Any, threads: Any, mask: Mask, site: int) -> Generator[Wait, None, None]:
        """Yields until the barrier has opened for every active block."""
        table = self._arrive(number, threads, mask, site)

        def ready() -> bool:
            return all(barrier.generation != before for barrier, before, _, _ in table)

        def said() -> Lack:
            barrier, which, expected = next(
                (barrier, which, expected) for barrier, before, which, expected in table if barrier.generation == before
            )
            return Lack(f"barrier {which}: {barrier.arrived} of {expected} threads have arrived")

        while not ready():
            yield Wait(ready, said, site)
        every = mask is None or bool(np.broadcast_to(mask, (self.B, self.T)).all(1).any())
        for barrier, before, *_ in table:
            self._acquire(barrier.opened[before & 1], None if every else mask)
        if every:
            self._order_own()
        else:
            self.new_epoch()

    # ---- who may come ----
    def _check_arrival(self, barrier: NamedBarrier, block: int, lanes: np.ndarray, expected: int, site: int) -> None:
        mine = self.threads[lanes]
        warps, counts = np.unique(mine // WARP, return_counts=True)
        full = np.minimum(self.machine.threads - warps * WARP, WARP)
        coming = Coming(
            self.number, frozenset(warps.tolist()), self.epoch, site, (int(mine[0]), int(mine[-1])), expected
        )
        where = self.coordinates(int(self.codes[block, int(np.flatnonzero(lanes)[0])]))[0]
        if (counts != full).any():
            short = int(warps[np.flatnonzero(counts != full)[0]])
            absent = next(thread for thread in range(short * WARP, self.machine.threads) if thread not in mine)
            code = int(self.block_ids[block]) * self.machine.threads + absent + 1
            self.findings.part_of_warp(site, self.coordinates(code))
            return
        again = [one for one in barrier.here if one.warps & coming.warps]
        unordered = [one for one in barrier.before if not self._knows(one, coming)]
        others = [one for one in (*barrier.here, *unordered) if one.expected != expected]
        if again:
            self.findings.come_again(site, again[0].site, where, coming)
        elif others:
            self.findings.other_count(site, others[0].site, where, coming, others[0])
        elif barrier.arrived + len(warps) * WARP > -(-expected // WARP) * WARP:
            self.findings.too_many_come(site, where, barrier.arrived + len(warps) * WARP, expected)
        elif unordered:
            self.findings.mixed_barrier(site, unordered[0].site, where, coming, unordered[0])
        barrier.here.append(coming)

    def _knows(self, earlier: Coming, coming: Coming) -> bool:
        """Is an arrival ordered before one of this strand's threads?"""
        known = self.known_by(sorted(coming.warps))
        if known.get(earlier.strand, 0) >= earlier.epoch:
            return True
        if coming.warps <= earlier.warps and (
            earlier.strand == self.number or any(earlier.strand in share.own for share in self.shares)
        ):
            return True
        return all(known.get((earlier.strand, warp), 0) >= earlier.epoch for warp in earlier.warps)
