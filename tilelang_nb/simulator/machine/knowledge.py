"""What the threads of a strand know to be over, also where not all know the same.

A strand knows epochs of other strands, and of itself, for all of its threads.  What only some of them know, because
they alone have waited, or because they have come from different branches, is kept in shares until all of them meet.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

WARP = 32
MANY = 1 << 30  # of a code that stands for several threads
CODE_BITS, SITE_BITS = 31, 12  # of a record
EPOCH_SHIFT = CODE_BITS + SITE_BITS
# a strand, or (strand, warp of the block) -> the last of its epochs that is ordered; negative: also for other proxies
Known = dict[Any, int]
Array = Any


def add(known: Known, more: Known) -> None:
    """Know something as well."""
    for key, epoch in more.items():
        if known.get(key, 0) < epoch:
            known[key] = epoch


def of_warps(known: Known, owners: Array, threads: Array, all_threads: int, sign: int = 1) -> Array:
    """The last epochs that are known of the warps of some threads, by strand; 0 for none.

    threads: -1 for several, which are also those of a matrix product of a warp group: one warp's is taken then.
    sign: -1 for what is known across proxies.
    """
    table = np.zeros((int(owners.max()) + 1, -(-all_threads // WARP)), np.int64)
    for key, epoch in known.items():
        if type(key) is tuple and 0 < sign * key[0] < len(table):
            table[sign * key[0], key[1]] = epoch
    return np.where(threads < 0, table.max(1)[owners], table[owners, np.maximum(threads, 0) // WARP])


@dataclass
class Share:
    """lanes: booleans over the threads of the block.  own: what these threads did as threads of other strands: up to
    which epoch, and whether all threads of that strand are in this one.  warp_epoch: up to it they met in their warps.
    """

    lanes: Array
    known: Known
    own: dict[int, tuple[int, bool]] = field(default_factory=dict)
    warp_epoch: int = 0

    @property
    def warps(self) -> list[int]:
        return np.unique(np.flatnonzero(self.lanes) // WARP).tolist()

    def told(self, warps: list[int] | None = None) -> Known:
        """What is known where its threads, or those of some of its warps, arrive somewhere."""
        told, mine = dict(self.known), self.warps
        if warps is not None:
            mine = [warp for warp in mine if warp in warps]
        for strand, (epoch, _) in self.own.items():
            add(told, {(strand, warp): epoch for warp in mine})
        return told


class Knowledge:
    """Part of a strand.

    seen: what all know.  shares: what some know besides.  met: (blocks,), where only some blocks came to a barrier, the
    epoch up to which each has.  warps_met: as well, (blocks, warps), for barriers of warps.
    """

    seen: Known
    shares: list[Share]
    partly_known = False  # is something known of some warps of a strand only?
    warp_epoch = 0
    met: Array | None = None
    warps_met: Array | None = None

    def new_epoch(self) -> None:
        """Accesses from here on are not ordered with what other strands do next."""
        self.epoch = self.machine.epochs.next(self.number)

    def lanes_of_block(self, chosen: Array | None = None) -> Array:
        """The strand's threads, or some of them, as booleans over those of the block."""
        lanes = np.zeros(self.machine.threads, np.bool_)
        lanes[self.threads if chosen is None else self.threads[chosen]] = True
        return lanes

    def known_by(self, warps: list[int] | None = None) -> Known:
        """What the threads of some warps of the block, or one of all threads, know."""
        if not self.shares:
            return self.seen
        known = dict(self.seen)
        for share in self.shares:
            if warps is None or any(warp in warps for warp in share.warps):
                add(known, share.told(warps))
        return known

    def _release(self, known: Known, warps: list[int] | None = None) -> None:
        """Tell a barrier what is done before this arrival.  warps: those that arrive; None: all of the strand."""
        add(known, self.known_by(warps))
        if warps is None:
            known[self.number] = self.epoch
        else:
            known.update({(self.number, warp): self.epoch for warp in warps})
        self.new_epoch()

    def _acquire(self, known: Known, mask: Array | None = None) -> None:
        """mask: of those who have waited, where not all have."""
        self.partly_known = self.partly_known or any(type(key) is tuple for key in known)
        chosen = None if mask is None else np.broadcast_to(mask, (self.B, self.T)).any(0)
        if chosen is None or chosen.all():
            add(self.seen, known)
            return
        self._share(Share(self.lanes_of_block(chosen), dict(known)))

    def _share(self, more: Share) -> None:
        """Some threads know something; one share for each set of threads."""
        for share in self.shares:
            if (share.lanes == more.lanes).all():
                add(share.known, more.known)
                share.own.update(more.own)
                share.warp_epoch = max(share.warp_epoch, more.warp_epoch)
                return
        self.shares.append(more)

    def _order_own(self, blocks: Array | None = None) -> None:
        """All threads of this strand have met; blocks: of the blocks of which that is so, where it is not of all."""
        if blocks is not None:
            if self.met is None:
                self.met = np.full(self.B, self.seen.get(self.number, 0))
            self.met[blocks], self._open = self.epoch, None
            self.new_epoch()
            return
        for share in self.shares:
            add(self.seen, share.told())
            add(self.seen, {strand: epoch for strand, (epoch, whole) in share.own.items() if whole})
            self.partly_known = self.partly_known or not all(whole for _, whole in share.own.values())
        self.shares, self.met, self._open = [], None, None
        self.seen[self.number] = self.epoch
        self.new_epoch()

    def first_open(self, codes: Array) -> Array:
        """The first epoch of the strand that its own accesses are not ordered with, for the threads of some codes, as
        in records.

        The codes are all of one thread each, or all of several.
        """
        if self.met is None:
            return self.seen.get(self.number, 0) + 1 << EPOCH_SHIFT
        first, last = int(self.block_ids[0]), int(self.block_ids[-1])
        if self._open is None:
            bounds = self.met + 1 << EPOCH_SHIFT
            if last - first + 1 > self.B:
                bounds = bounds[np.minimum(np.searchsorted(self.block_ids, np.arange(first, last + 1)), self.B - 1)]
            self._open = bounds, np.repeat(bounds, self.machine.threads)
        if len(codes) and codes[0] & MANY:
            return self._open[0].take((codes & (MANY - 1)) - first, mode="clip")
        return self._open[1].take(codes - (first * self.machine.threads + 1), mode="clip")

    _open: tuple[Array, Array] | None = None  # of `met`, by block and by thread

    # ---- forks ----
    def give_knowledge(self, child: Any) -> None:
        """A part of the threads goes its own way: it knows what it knew, and of the others no more."""
        child.seen, child.partly_known, child.warp_epoch = dict(self.seen), self.partly_known, self.warp_epoch
        lanes = child.lanes_of_block()
        child.shares = [Share(lanes, {}, {self.number: (self.epoch, False)}, self.warp_epoch)]
        for share in self.shares:
            common = share.lanes & lanes
            if common.any():
                own = {strand: (epoch, False) for strand, (epoch, _) in share.own.items()}
                child._share(Share(common, dict(share.known), own, share.warp_epoch))

    def take_knowledge(self, child: Any) -> None:
        """A part of the threads is back."""
        self.partly_known = self.partly_known or child.partly_known
        lanes = child.lanes_of_block()
        self._share(Share(lanes, dict(child.seen), {child.number: (child.epoch, True)}, child.warp_epoch))
        for share in child.shares:
            own = {strand: held for strand, held in share.own.items() if strand not in (self.number, child.number)}
            if own or share.known:
                self._share(Share(share.lanes, share.known, own, share.warp_epoch))

    # ---- which earlier accesses are ordered ----
    def knows(self, epochs: Array, owners: Array, theirs: Array, mine: Array) -> Array:
        """Which accesses are known to be over; theirs: their threads; mine: those of the next ones; -1 for several."""
        result = self._in(self.seen, epochs, owners, theirs)
        for share in self.shares:
            if result.all():
                break
            if share.known:
                holds = (mine < 0) | share.lanes[np.maximum(mine, 0)]
                result |= holds & self._in(share.known, epochs, owners, theirs)
        return result

    def met_in_warps(self, epochs: Array, theirs: Array, mine: Array, at: Array) -> Array:
        """Which accesses a barrier of the warp orders before the next one.  at: positions of the blocks of both."""
        same = (theirs >= 0) & (mine >= 0) & (theirs // WARP == mine // WARP)
        bounds = np.full(len(epochs), self.warp_epoch)
        if self.warps_met is not None:
            bounds = np.maximum(bounds, self.warps_met[at, np.maximum(mine, 0) // WARP])
        for share in self.shares:
            if share.warp_epoch > self.warp_epoch:
                both = share.lanes[np.maximum(mine, 0)] & share.lanes[np.maximum(theirs, 0)]
                bounds = np.where(both, np.maximum(bounds, share.warp_epoch), bounds)
        ordered: Array = same & (epochs <= bounds)
        return ordered

    def _in(self, known: Known, epochs: Array, owners: Array, theirs: Array) -> Array:
        one, which = np.unique(owners, return_inverse=True)
        result = epochs <= np.array([known.get(owner, 0) for owner in one.tolist()])[which.reshape(-1)]
        if self.partly_known and not result.all():
            result |= epochs <= of_warps(known, owners, theirs, self.machine.threads)
        return result
