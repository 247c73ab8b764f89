"""What threads know of other blocks: which of their releases they have acquired.

A release covers what its threads did before it, and what others of their block did before a barrier that stands before
it.  A clock is a set of releases, as an array over the blocks of the launch: for each the number of what is known of
it.  Clocks have numbers too, 0 for the empty one, so that a table holds one for each thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = Any
KEPT = 512  # clocks that are kept at least, before those that are not in use are looked for
MOST_BLOCKS = 4096  # of a launch whose clocks tell blocks apart


@dataclass(frozen=True)
class Release:
    """By some threads of a block: epochs up to which accesses are covered.

    lanes, mates: booleans over the threads of the block: those that release, and those of their warps.  seen: of other
    threads, by strand or by (strand, warp).
    """

    lanes: Array
    epoch: int
    mates: Array
    warp_epoch: int
    seen: dict[Any, int]

    def covers(self, epochs: Array, owners: Array, threads: Array) -> Array:
        """Which accesses of the block; threads: -1 for several."""
        one = np.maximum(threads, 0)
        bounds = np.where(self.lanes[one], self.epoch, np.where(self.mates[one], self.warp_epoch, 0))
        bounds = np.where(threads < 0, self.epoch if self.lanes.all() else 0, bounds)
        for owner in np.unique(owners).tolist():
            bounds = np.maximum(bounds, np.where(owners == owner, self.seen.get(owner, 0), 0))
        for (owner, warp), epoch in [item for item in self.seen.items() if type(item[0]) is tuple]:
            told = (owners == owner) & ((threads < 0) | (threads // 32 == warp))
            bounds = np.maximum(bounds, np.where(told, epoch, 0))
        covered: Array = epochs <= bounds
        return covered


class Clocks:
    """All clocks of a launch.

    in_use: numbers of those that tables hold.  A launch of very many blocks has no arrays: the number of a clock is the
    epoch of the last release that is known, and of each block all releases up to now count.
    """

    def __init__(self, blocks: int, in_use: Callable[[], Iterable[int]]):
        self.blocks, self._in_use = blocks, in_use
        self.fine = blocks <= MOST_BLOCKS
        self._vectors: dict[int, Array] = {0: np.zeros(blocks if self.fine else 0, np.int32)}
        self._last, self._most = 0, KEPT
        self._merged: dict[tuple[int, int], int] = {}
        self._covers: list[tuple[Release, ...]] = [()]
        self._cover_of: dict[tuple[int, ...], int] = {}  # numbers of releases -> number of their cover
        self._parts: list[tuple[int, ...]] = [()]  # the other way round
        self._releases: list[Release] = []
        self._sets: list[int] = []  # of each release: which threads
        self._lane_sets: dict[bytes, int] = {}
        self.of_blocks: dict[int, list[Release]] = {}  # where clocks do not tell them apart

    # ---- making ----
    def released(self, block: int, release: Release, known: int) -> int:
        """The clock of those who know one and what was known at a release of theirs."""
        if not self.fine:
            mine = self.of_blocks.setdefault(block, [])
            same = [one for one in mine if (one.lanes == release.lanes).all()]
            last = max([*same, release], key=lambda one: one.epoch)
            mine[:] = [one for one in mine if not any(one is other for other in same)][-8:] + [last]
            return max(known, release.epoch)
        return self.released_together({block: release}, known)

    def released_together(self, releases: dict[int, Release], known: int) -> int:
        """The clock of those who know releases of several blocks, and what was known before."""
        if not self.fine:
            return max((self.released(block, release, known) for block, release in releases.items()), default=known)
        vector = self._vectors[known].copy()
        for block, release in releases.items():
            vector[block] = self._joined(int(vector[block]), self._new(release))
        return self._number(vector)

    def _new(self, release: Release) -> int:
        """The cover of a release alone."""
        self._releases.append(release)
        self._sets.append(self._lane_sets.setdefault(release.lanes.tobytes(), len(self._lane_sets)))
        return self._cover((len(self._releases) - 1,))

    def _number(self, vector: Array) -> int:
        if len(self._vectors) > self._most:
            live = {0, *self._in_use(), *range(self._last - KEPT, self._last + 1)}  # new ones may be in no table yet
            self._vectors = {number: one for number, one in self._vectors.items() if number in live}
            self._merged, self._most = {}, KEPT + 2 * len(live)
        self._last += 1
        self._vectors[self._last] = vector
        return self._last

    def _cover(self, parts: tuple[int, ...]) -> int:
        if parts not in self._cover_of:
            self._cover_of[parts] = len(self._covers)
            self._covers.append(tuple(self._releases[part] for part in parts))
            self._parts.append(parts)
        return self._cover_of[parts]

    def _joined(self, one: int, other: int) -> int:
        """Two covers of a block: the last release of each set of threads."""
        if one == other or not one or not other:
            return one or other
        last: dict[int, int] = {}
        for part in sorted(self._parts[one] + self._parts[other], key=lambda part: (self._releases[part].epoch, part)):
            last[self._sets[part]] = part
        return self._cover(tuple(sorted(last.values())))

    def merged(self, one: int, other: int) -> int:
        """What two clocks know together."""
        if one == other or not one or not other:
            return one or other
        if not self.fine:
            return max(one, other)
        key = (one, other) if one < other else (other, one)
        if key not in self._merged:
            self._merged[key] = self._merge(*key)
        return self._merged[key]

    def _merge(self, earlier: int, later: int) -> int:
        a, b = self._vectors[earlier], self._vectors[later]
        vector = np.where(b == 0, a, b)
        for block in np.flatnonzero((a != b) & (a != 0) & (b != 0)).tolist():
            vector[block] = self._joined(int(a[block]), int(b[block]))
        if (vector == b).all():
            return later
        return earlier if (vector == a).all() else self._number(vector)

    def of_all(self, clocks: Array) -> int:
        """What the holders of some clocks know together."""
        total = 0
        for clock in np.unique(clocks).tolist():
            total = self.merged(total, clock)
        return total

    # ---- asking ----
    def knows(self, clock: int, block: int, epochs: Array, owners: Array, threads: Array) -> Array:
        """Which accesses of a block a clock knows."""
        known = np.zeros(len(epochs), np.bool_)
        if not clock:
            return known
        releases = self._covers[self._vectors[clock][block]] if self.fine else self.of_blocks.get(block, [])
        for release in releases:
            known |= release.covers(epochs, owners, threads)
        return known if self.fine else known & (epochs <= clock)
