"""Order between blocks, and threads that ask for a value until others have stored it.

PTX's release and acquire patterns, for each block: what its threads did before an atomic operation with an order is
known to the threads of another block after theirs.  For the other threads of the two blocks a barrier of their block
must stand before the one and after the other.  A relaxed operation orders nothing.  Which release an acquire has read
is not asked: one that came earlier in the run counts.  A fence is both: a release at the next atomic operation of
the block, and an acquire of what was there at the last one.

A loop with atomic operations may ask for what other threads store.  Where a turn has changed nothing, neither registers
nor memory, the next one comes when others have changed something; until then they run.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

import numpy as np

from .repetition import equal
from .waits import VALUE, Lack, Wait

RELEASES, ACQUIRES = ("release", "acq_rel", "seq_cst"), ("acquire", "acq_rel", "seq_cst")
RELEASE, ACQUIRE, FENCE = range(3)
STEPS = 16  # that a turn counts as which changes something itself: others run in between, so that few are enough
Array = Any


class Meetings:
    """What is known between blocks: epochs up to which a thread has released, or acquired, or come to a fence, which is
    a release once an atomic operation comes after it.

    own: (3, blocks, threads), of each thread.  warps: (3, blocks, warps), where the threads of a warp have met in
    between.  blocks: (3, blocks), where all threads of the block have.
    """

    def __init__(self, blocks: int, threads: int):
        self.shape = blocks, threads
        self.used = False  # the tables are made for the first operation that orders blocks

    def use(self) -> None:
        if self.used:
            return
        blocks, threads = self.shape
        self.own = np.zeros((3, blocks, threads), np.int32)
        self.warps = np.zeros((3, blocks, -(-threads // 32)), np.int32)
        self.blocks = np.zeros((3, blocks), np.int32)
        self.asked = np.zeros(blocks, np.int32)  # the last epoch at an atomic operation
        self.used = True

    def ordered(self, epochs: Array, theirs: Array, their_threads: Array, mine: Array, my_threads: Array) -> Array:
        """Which accesses of other blocks come before the next one.

        theirs, mine: numbers of blocks, -1 for several.  their_threads, my_threads: inside a block, -1 for several.
        """
        if not self.used:
            return np.zeros(len(epochs), np.bool_)
        known = np.minimum(self._known(RELEASE, theirs, their_threads), self._known(ACQUIRE, mine, my_threads))
        return (theirs >= 0) & (mine >= 0) & (epochs <= known)

    def _known(self, side: int, blocks: Array, threads: Array) -> Array:
        known = np.maximum(self.blocks[side, blocks], self.warps[side, blocks, np.maximum(threads, 0) // 32])
        several = threads < 0
        if several.any() and self.shape[1] > 32:
            known[several] = self.blocks[side, blocks[several]]
        own = self.own[side, blocks, threads]
        if several.any():
            own[several] = self.own[side, blocks[several]].min(1)
        return np.maximum(known, own)


class Asking:
    """The turns of one loop that may ask for what others store."""

    def __init__(self, strand: Any, site: int):
        self.strand, self.site = strand, site
        self.changes = -1
        self.kept: tuple[Any, ...] = ()

    def turn_begins(self, *state: Any) -> Generator[Wait, None, None]:
        """Yields before every turn but the first; until others have changed memory where the turn before did nothing.

        state: masks and registers.
        """
        machine = self.strand.machine
        idle = len(self.kept) == len(state) and all(equal(one, kept) for one, kept in zip(state, self.kept))
        before = machine.changes
        if idle and before == self.changes:
            machine.take_steps(-1, self.site)  # the turn is that of those who change memory
            yield Wait(lambda: machine.changes != before, lambda: self._said(), self.site)
        elif self.changes >= 0:
            machine.take_steps(STEPS, self.site)
            yield Wait(lambda: True, lambda: self._said(), self.site)
        self.changes = machine.changes
        self.kept = tuple(one.copy() if isinstance(one, np.ndarray) else one for one in state)

    def _said(self) -> Lack:
        return Lack("another value in memory than this loop reads", frozenset((VALUE,)))


class BlockOrder:
    """Part of a strand."""

    def ordered(self, order: str, mask: Any, operation: Callable[[], Any]) -> Any:
        """An atomic operation with an order; "" for relaxed, beside which there are fences."""
        checks = self.machine.checks
        if checks and order in RELEASES:
            self._come(RELEASE, mask)
        result = operation()
        if checks and order in ACQUIRES:
            self._come(ACQUIRE, mask)
        if checks and not order:
            self._ask(mask)
        return result

    def fence(self, mask: Any) -> None:
        """__threadfence"""
        if self.machine.checks:
            self._come(ACQUIRE, mask, True)
            self._come(FENCE, mask)

    def _ask(self, mask: Any) -> None:
        """A relaxed operation: fences before it are releases, those after it acquire what was there."""
        meetings = self.machine.meetings
        meetings.use()
        blocks = self.block_ids[self._coming(mask).any(1)]
        meetings.asked[blocks] = self.machine.epochs.last
        for table in (meetings.own, meetings.warps, meetings.blocks):
            table[RELEASE, blocks] = np.maximum(table[RELEASE, blocks], table[FENCE, blocks])
        self.new_epoch()

    def asking(self, site: int) -> Asking:
        return Asking(self, site)

    def _come(self, side: int, mask: Any, by_fence: bool = False) -> None:
        """Some threads come to a release, an acquire or a fence."""
        meetings, lanes = self.machine.meetings, self._coming(mask)
        meetings.use()
        here = lanes.any(1)
        blocks, lanes = self.block_ids[here], lanes[here]
        reached = np.int64(
            self.machine.epochs.last if side == ACQUIRE else self.epoch
        )  # of all strands, or of this one
        bounds = meetings.asked[blocks] if by_fence else np.full(len(blocks), reached)
        place = side, blocks[:, None], self.threads
        meetings.own[place] = np.where(lanes, bounds[:, None], meetings.own[place])
        if self.machine.threads > self.T:  # roles: which of their threads have met is not asked
            meetings.blocks[side, blocks] = bounds
        elif side != ACQUIRE:
            meetings.blocks[side, blocks] = self.seen.get(self.number, 0)
            warps = _by_warps(lanes, False).any(-1)
            meetings.warps[side, blocks] = np.where(warps, self.warp_epoch, meetings.warps[side, blocks])
        self.new_epoch()

    def _coming(self, mask: Any) -> Array:
        """The lanes of a mask, which may have vector axes in front: (blocks, threads)."""
        if mask is not None and mask.ndim > 2:
            mask = mask.any(axis=tuple(range(mask.ndim - 2)))
        return np.broadcast_to(True if mask is None else mask, (self.B, self.T))

    def threads_have_met(self, of_block: bool) -> None:
        """The threads of each block, or of each warp, have come to a barrier: what one of them acquired, all know."""
        meetings, blocks = self.machine.meetings, self.block_ids
        if not meetings.used or self.machine.threads > self.T:
            return
        own = meetings.own[ACQUIRE, blocks]
        meetings.warps[ACQUIRE, blocks] = np.maximum(meetings.warps[ACQUIRE, blocks], _by_warps(own, 0).max(-1))
        if of_block:
            meetings.blocks[ACQUIRE, blocks] = meetings.warps[ACQUIRE, blocks].max(1)


def _by_warps(values: Array, fill: Any) -> Array:
    """(blocks, threads) -> (blocks, warps, 32)."""
    missing = -values.shape[1] % 32
    return np.pad(values, ((0, 0), (0, missing)), constant_values=fill).reshape(len(values), -1, 32)
