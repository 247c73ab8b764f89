"""Order between blocks by atomic operations.

PTX's release and acquire patterns: what a thread did before an atomic operation with an order is known to the threads
that acquire it, by an operation on the same place that reads what it, or a chain of read-modify-write operations behind
it, has stored.  For the other threads of the two blocks a barrier of their block must stand before the
one and after the other.  A relaxed operation orders nothing, unless fences stand beside it: one before a relaxed store
makes it a release, one after a relaxed load an acquire.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .clocks import Clocks, Release

RELEASES, ACQUIRES = ("release", "acq_rel", "seq_cst"), ("consume", "acquire", "acq_rel", "seq_cst")
WARP = 32
MOST_MEETINGS = 1024  # of a block at a place in one operation, beyond which they are not told apart
Array = Any


@dataclass
class Flag:
    """A place of atomic operations.  clock: what an acquire of it learns.  block, lanes, sent: of the last release."""

    clock: int = 0
    block: int = -1
    lanes: bytes = b""
    sent: int = 0


@dataclass(frozen=True)
class Fence:
    """Threads of a block that have come to a fence: what it covers, and what they knew of other blocks."""

    release: Release
    known: int


class Meetings:
    """What the threads of a launch know of other blocks.

    own: (blocks, threads), the clock of each thread.  pending: what it has read without acquiring it.  fences: by block
    and thread, the last fence.  met: by block, the clock of what fences before a barrier let all its threads release.
    """

    def __init__(self, blocks: int, threads: int):
        self.shape = blocks, threads
        self.used = False  # the tables are made for the first operation that orders blocks

    def use(self) -> None:
        if self.used:
            return
        self.own = np.zeros(self.shape, np.int32)
        self.pending = np.zeros(self.shape, np.int32)
        self.flags: dict[int, Flag] = {}  # by address
        self.fences: dict[int, dict[int, Fence]] = {}
        self.met: dict[int, int] = {}
        self.clocks = Clocks(self.shape[0], self._in_use)
        self.used = True

    def _in_use(self) -> Iterable[int]:
        yield from np.unique(self.own).tolist()
        yield from np.unique(self.pending).tolist()
        yield from self.met.values()
        for flag in self.flags.values():
            yield from (flag.clock, flag.sent)
        for fences in self.fences.values():
            yield from (fence.known for fence in fences.values())

    def learn(self, table: Array, block: int, threads: Array, clock: int) -> None:
        """Some threads of a block know a clock as well from now on."""
        held = table[block, threads]
        if (held == held[0]).all():
            table[block, threads] = self.clocks.merged(int(held[0]), clock)
            return
        for one in np.unique(held).tolist():
            table[block, threads[held == one]] = self.clocks.merged(one, clock)

    def meet(self, table: Array, block: int, threads: Array) -> None:
        """What one of some threads of a block knows, all know."""
        held = table[block, threads]
        if (held != held[0]).any():
            table[block, threads] = self.clocks.of_all(held)

    def ordered(
        self, epochs: Array, owners: Array, theirs: Array, their_threads: Array, mine: Array, my_threads: Array
    ) -> Array:
        """Which accesses of other blocks come before the next one.

        owners: strands of the accesses.  theirs, mine: numbers of blocks, -1 for several.  their_threads, my_threads:
        inside a block, -1 for several.
        """
        result = np.zeros(len(epochs), np.bool_)
        if not self.used:
            return result
        asked = np.flatnonzero((theirs >= 0) & (mine >= 0))
        if not len(asked):
            return result
        pairs = np.stack([mine[asked], my_threads[asked], theirs[asked]])
        groups, which = np.unique(pairs, axis=1, return_inverse=True)
        which = which.reshape(-1)
        order = np.argsort(which, kind="stable")
        ends = np.cumsum(np.bincount(which, minlength=groups.shape[1]))
        for (me, thread, other), at in zip(groups.T.tolist(), np.split(order, ends[:-1])):
            rows = asked[at]
            accesses = epochs[rows], owners[rows], their_threads[rows]
            clocks = np.unique(self.own[me] if thread < 0 else self.own[me, thread]).tolist()
            known = np.ones(len(rows), np.bool_)
            for clock in clocks:
                known &= self.clocks.knows(clock, other, *accesses)
            result[rows] = known
        return result


class BlockOrder:
    """Part of a strand."""

    noted: list[tuple[Array, Array]] | None  # places in memory that atomic operations and loads touch, where it matters

    def ordered(self, order: str, kind: str, mask: Any, operation: Callable[[], Any]) -> Any:
        """An atomic operation with an order; "" for relaxed.  kind: "load", "store" or "update"."""
        if not self.machine.checks:
            return operation()
        outer, self.noted = self.noted, []
        result = operation()
        places, self.noted = self.noted, outer
        if outer is not None:
            outer += places
        if places:
            self.machine.meetings.use()
            memory, index = places[-1]
            self._meet_at(order, kind, mask, _addresses(memory, index))
        return result

    def _meet_at(self, order: str, kind: str, mask: Any, addresses: Array) -> None:
        lanes = np.broadcast_to(
            True if mask is None else mask, self.shape_of(addresses, *(() if mask is None else (mask,)))
        )
        addresses = np.broadcast_to(addresses, lanes.shape)
        turns = zip(lanes.reshape(-1, self.B, self.T), addresses.reshape(-1, self.B, self.T))
        for taking, places in turns:
            block, lane = np.nonzero(taking)
            if self.B > 1 and len(block) > MOST_MEETINGS:
                pairs = (block.astype(np.int64) << 48) ^ places[block, lane]
                if len(np.unique(pairs)) > MOST_MEETINGS:
                    self._meet_all(taking, places, order, kind)
                    continue
            for block in np.flatnonzero(taking.any(1)).tolist():
                threads, row = np.flatnonzero(taking[block]), places[block][taking[block]]
                if (row == row[0]).all():
                    self._meet_in(int(self.block_ids[block]), self.threads[threads], int(row[0]), order, kind)
                    continue
                for place in np.unique(row).tolist():
                    mine = self.threads[threads[row == place]]
                    self._meet_in(int(self.block_ids[block]), mine, place, order, kind)
        if kind != "load":
            self.new_epoch()

    def _meet_all(self, taking: Array, places: Array, order: str, kind: str) -> None:
        """Very many threads come to very many places at once: each counts as if it met all others there."""
        meetings = self.machine.meetings
        clocks = meetings.clocks
        flags = [meetings.flags.setdefault(place, Flag()) for place in np.unique(places[taking]).tolist()]
        here = {int(self.block_ids[at]): self.threads[taking[at]] for at in np.flatnonzero(taking.any(1)).tolist()}
        total = clocks.of_all(np.array([flag.clock for flag in flags])) if kind != "store" else 0
        if kind != "load" and (order in RELEASES or meetings.fences or meetings.met):
            known = clocks.of_all(np.concatenate([meetings.own[block, threads] for block, threads in here.items()]))
            releases = {block: self._covered(threads) for block, threads in here.items()}
            total = clocks.released_together(releases, clocks.merged(total, known))
        if kind != "store" and total:
            for block, threads in here.items():
                if order in ACQUIRES:
                    self._learn(block, threads, total)
                else:
                    meetings.learn(meetings.pending, block, threads, total)
        if kind != "load":
            for flag in flags:
                flag.clock, flag.block, flag.sent = total, -1, 0

    def _meet_in(self, block: int, threads: Array, place: int, order: str, kind: str) -> None:
        """Some threads of a block come to a place in memory."""
        meetings = self.machine.meetings
        clocks, flag = meetings.clocks, meetings.flags.get(place)
        if kind != "store" and flag is not None and flag.clock:
            if order in ACQUIRES:
                self._learn(block, threads, flag.clock)
            else:
                meetings.learn(meetings.pending, block, threads, flag.clock)
        if kind == "load":
            return
        sent = meetings.met.get(block, 0)
        if order in RELEASES:
            known = clocks.of_all(meetings.own[block, threads])
            sent = clocks.merged(sent, clocks.released(block, self._covered(threads), known))
        fences = meetings.fences.get(block)
        if fences:
            for fence in {id(one): one for one in map(fences.get, threads.tolist()) if one is not None}.values():
                sent = clocks.merged(sent, self._sent_by(block, fence, threads))
        lanes = threads.tobytes()
        if flag is None:
            flag = meetings.flags[place] = Flag()
        if flag.sent and flag.block == block and flag.lanes == lanes:
            sent = clocks.merged(flag.sent, sent)  # a store behind a release of the same threads is one as well
        if order in RELEASES or flag.block != block or flag.lanes != lanes:
            flag.block, flag.lanes, flag.sent = block, lanes, sent
        flag.clock = clocks.merged(flag.clock, sent) if kind == "update" else sent

    def _sent_by(self, block: int, fence: Fence, threads: Array) -> int:
        """The clock of what a fence lets these threads release."""
        lanes = np.zeros(self.machine.threads, np.bool_)
        lanes[threads] = True
        lanes &= fence.release.lanes
        warps = _mates(lanes)
        release = Release(lanes, fence.release.epoch, warps, fence.release.warp_epoch, fence.release.seen)
        return self.machine.meetings.clocks.released(block, release, fence.known)

    def _covered(self, threads: Array) -> Release:
        lanes = np.zeros(self.machine.threads, np.bool_)
        lanes[threads] = True
        return Release(
            lanes, self.epoch, _mates(lanes), self.warp_epoch, dict(self.known_by(np.unique(threads // WARP).tolist()))
        )

    def _learn(self, block: int, threads: Array, clock: int) -> None:
        """Threads acquire; which threads of roles meet behind that is not asked."""
        meetings = self.machine.meetings
        roles = self.machine.threads > self.T
        meetings.learn(meetings.own, block, np.arange(self.machine.threads) if roles else threads, clock)

    def fence(self, mask: Any) -> None:
        """__threadfence"""
        if not self.machine.checks:
            return
        meetings, lanes = self.machine.meetings, self._coming(mask)
        meetings.use()
        for at in np.flatnonzero(lanes.any(1)).tolist():
            block, threads = int(self.block_ids[at]), self.threads[lanes[at]]
            for clock in np.unique(meetings.pending[block, threads]).tolist():
                if clock:
                    self._learn(block, threads[meetings.pending[block, threads] == clock], clock)
            release, fences = self._covered(threads), meetings.fences.setdefault(block, {})
            for known in np.unique(meetings.own[block, threads]).tolist():
                fence = Fence(release, known)
                fences.update(dict.fromkeys(threads[meetings.own[block, threads] == known].tolist(), fence))
        self.new_epoch()

    def _coming(self, mask: Any) -> Array:
        """The lanes of a mask, which may have vector axes in front: (blocks, threads)."""
        if mask is not None and mask.ndim > 2:
            mask = mask.any(axis=tuple(range(mask.ndim - 2)))
        return np.broadcast_to(True if mask is None else mask, (self.B, self.T))

    def threads_have_met(self, of_block: bool, mask: Any) -> None:
        """The threads of each block, or of each warp, have come to a barrier: what one of them acquired, all know.

        What some of them have fenced, all release with their next store.
        """
        meetings = self.machine.meetings
        if not meetings.used or self.machine.threads > self.T:
            return
        lanes = self._coming(mask)
        for at in np.flatnonzero(lanes.any(1)).tolist():
            block, threads = int(self.block_ids[at]), self.threads[lanes[at]]
            groups = [threads] if of_block else [threads[threads // WARP == one] for one in np.unique(threads // WARP)]
            for group in groups:
                meetings.meet(meetings.own, block, group)
                meetings.meet(meetings.pending, block, group)
            fences = meetings.fences.pop(block, None) if of_block else None
            for fence in {id(one): one for one in (fences or {}).values()}.values():
                sent = meetings.clocks.released(block, fence.release, fence.known)
                meetings.met[block] = meetings.clocks.merged(meetings.met.get(block, 0), sent)


def _mates(lanes: Array) -> Array:
    """All threads of the warps of some."""
    warps = np.pad(lanes, (0, -len(lanes) % WARP)).reshape(-1, WARP).any(1)
    return np.repeat(warps, WARP)[: len(lanes)]


def _addresses(memory: Array, index: Array) -> Array:
    """Of elements, in bytes."""
    return memory.__array_interface__["data"][0] + np.asarray(index, np.int64) * memory.itemsize
