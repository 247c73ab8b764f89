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
Array = Any


class Meetings:
    """By block: the epoch of the last release, of the last acquire, and of the last fence, which is a release once an
    atomic operation comes after it.

    own: for the threads first..last that came to it.  all: for the other threads, what a barrier of the block lies
    between.
    """

    def __init__(self, blocks: int):
        self.own, self.all, self.first, self.last = (np.zeros((3, blocks), np.int64) for _ in range(4))
        self.asked = np.zeros(blocks, np.int64)  # the last epoch at an atomic operation
        self.used = False

    def ordered(self, epochs: Array, theirs: Array, their_threads: Array, mine: Array, my_threads: Array) -> Array:
        """Which accesses of other blocks come before the next one.

        theirs, mine: numbers of blocks, -1 for several.  their_threads, my_threads: inside a block, -1 for several.
        """
        known = np.minimum(self._known(RELEASE, theirs, their_threads), self._known(ACQUIRE, mine, my_threads))
        return (theirs >= 0) & (mine >= 0) & (epochs <= known)

    def _known(self, side: int, blocks: Array, threads: Array) -> Array:
        came = (self.first[side][blocks] <= threads) & (threads <= self.last[side][blocks])
        return np.where(came, self.own[side][blocks], self.all[side][blocks])


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
            yield Wait(lambda: machine.changes != before, lambda: self._said(), self.site)
        elif self.changes >= 0:
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
        lanes = np.broadcast_to(True if mask is None else _of_threads(mask), (self.B, self.T))
        blocks = self.block_ids[lanes.any(1)]
        meetings.asked[blocks] = self.machine.epochs.last
        blocks = blocks[meetings.own[FENCE, blocks] > meetings.own[RELEASE, blocks]]
        for one in (meetings.own, meetings.all, meetings.first, meetings.last):
            one[RELEASE, blocks] = one[FENCE, blocks]
        self.new_epoch()

    def asking(self, site: int) -> Asking:
        return Asking(self, site)

    def _come(self, side: int, mask: Any, by_fence: bool = False) -> None:
        """Some threads come to a release, an acquire or a fence."""
        meetings, blocks = self.machine.meetings, self.block_ids
        lanes = np.broadcast_to(True if mask is None else _of_threads(mask), (self.B, self.T))
        here = lanes.any(1)
        blocks, lanes = blocks[here], lanes[here]
        meetings.used = True
        reached = (
            self.machine.epochs.last if side == ACQUIRE else self.epoch
        )  # epochs of all strands, or of what this one did
        if by_fence:
            reached = meetings.asked[blocks]
        meetings.own[side, blocks] = reached
        first, last = self.threads[lanes.argmax(1)], self.threads[self.T - 1 - lanes[:, ::-1].argmax(1)]
        if self.warp_epoch > self.seen.get(self.number, 0):  # the threads of a warp have met since the last barrier
            first, last = first // 32 * 32, last // 32 * 32 + 31
        meetings.first[side, blocks], meetings.last[side, blocks] = first, last
        if self.machine.threads > self.T:  # roles: which of them have met is not asked
            meetings.all[side, blocks] = reached
        elif side != ACQUIRE:
            meetings.all[side, blocks] = self.seen.get(self.number, 0)
        self.new_epoch()

    def blocks_have_met(self) -> None:
        """The threads of each block have come to its barrier: what one of them acquired, all know."""
        if self.machine.meetings.used:
            meetings = self.machine.meetings
            meetings.all[ACQUIRE, self.block_ids] = meetings.own[ACQUIRE, self.block_ids]


def _of_threads(mask: Array) -> Array:
    """A mask over blocks and threads, of one that may have vector axes in front."""
    return mask.any(axis=tuple(range(mask.ndim - 2))) if mask.ndim > 2 else mask
