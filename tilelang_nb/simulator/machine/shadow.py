"""Shadow memory: who wrote and who read each cell last, to find accesses that no barrier orders.

A cell is an element of a global array or a granule of shared memory.  Its record is one integer: epoch, site and
thread.  An earlier access is ordered before this one if it is the same thread's, if its epoch is known to the strand,
or, inside a warp, if a warp barrier came after it.  Threads of different blocks are never ordered by barriers, but by
atomic operations (`block_order.py`).
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from .knowledge import CODE_BITS, EPOCH_SHIFT, MANY, SITE_BITS
from .read_records import ReadRecords

CODE = (1 << CODE_BITS) - 1
SITE = (1 << SITE_BITS) - 1
# A code with the bit MANY stands for several threads of one block, whose number is in the low bits.
EVERYBODY = CODE  # threads of several blocks
LAST_EPOCH = (1 << (63 - EPOCH_SHIFT)) - 1  # of a write that has not landed: nothing orders it before anything
Array = Any


class Epochs:
    """Numbers of epochs over all strands of a launch, and which strand each belongs to."""

    def __init__(self) -> None:
        self._owners = np.zeros(1024, np.int32)
        self.last = 0
        self.exhausted = False

    def next(self, strand: int) -> int:
        if self.last >= LAST_EPOCH:  # records have no room for more; from here on nothing counts as unordered
            self.exhausted = True
            return self.last
        self.last += 1
        if self.last >= len(self._owners):
            self._owners = np.concatenate([self._owners, np.zeros_like(self._owners)])
        self._owners[self.last] = strand
        return self.last

    def owner(self, epochs: Array) -> Array:
        return self._owners[np.minimum(epochs, self.last)]


class Shadow:
    """Records of one memory.

    across_blocks: cells can be reached from several blocks, and need not be initialised by the kernel (global memory).
    reads_matter: False for memory that is only written.
    """

    def __init__(self, cells: int, across_blocks: bool, reads_matter: bool = True):
        self.across_blocks, self.reads_matter = across_blocks, reads_matter
        self.writes = np.zeros(cells, np.int64)
        self.reads = ReadRecords(cells)  # by strand; its negative number: of those by asynchronous operations
        self.same: tuple[Array, Array] | None = None  # first and last thread of a store of one value by many
        self._known: dict[int, tuple[tuple[Any, ...], Any]] = {}
        self.version = 0

    def forget(self, epoch: int) -> None:
        """As if nothing had been accessed since an epoch."""
        for records in (self.writes, *self.reads.arrays()):
            records[records >> EPOCH_SHIFT > epoch] = 0
        self.same, self.version, self._known = None, self.version + 1, {}

    # ---- reads that are certainly as before ----
    def known_read(self, site: int, key: tuple[Any, ...], index: Any) -> bool:
        """The same addresses were read here before, and nothing was written since."""
        known = self._known.get(site)
        return known is not None and known[0] == (*key, self.version) and known[1]() is index

    def remember_read(self, site: int, key: tuple[Any, ...], index: Any) -> None:
        self._known[site] = (*key, self.version), weakref.ref(index)

    def many_of(self, strand: Any) -> Array:
        """Code of all threads of each block, (blocks, 1)."""
        return (strand.block_ids[:, None].astype(np.int64)) | MANY

    # ---- order ----
    def unordered(self, strand: Any, records: Array, codes: Array, atomic: bool = False) -> Array | None:
        """Which records are accesses of other threads that nothing orders before the next one; None if none.

        atomic: the next one is an atomic operation, which does not race with other such ones.
        """
        machine = strand.machine
        if machine.epochs.exhausted:
            return None
        if machine.strands == 1 and not self.across_blocks:  # all that is older than the last barrier is ordered
            recent = records >= strand.first_open(codes)
        else:
            recent = records != 0
        if not recent.any():
            return None
        differ = (((records ^ codes) & CODE) != 0) | ((codes & MANY) != 0)
        hit = recent & differ
        if atomic:
            hit &= ~strand.machine.atomic_sites[(records >> CODE_BITS) & SITE]
        if not hit.any():
            return None
        at = np.flatnonzero(hit)
        hit[at] = self._candidates(strand, records[at], codes[at])
        return hit if hit.any() else None

    def _candidates(self, strand: Any, records: Array, codes: Array) -> Array:
        """The exact question for the few records that are left."""
        threads = strand.machine.threads
        epochs = records >> EPOCH_SHIFT
        owners = strand.machine.epochs.owner(epochs)
        others = records & CODE
        theirs, mine = _block(others, threads), _block(codes, threads)
        their_threads, my_threads = _thread(others, threads), _thread(codes, threads)
        unordered = ~strand.knows(epochs, owners, their_threads, my_threads)
        if unordered.any() and (
            strand.warp_epoch or strand.shares or strand.met is not None or strand.warps_met is not None
        ):
            at = np.searchsorted(strand.block_ids, np.clip(mine, strand.block_ids[0], strand.block_ids[-1]))
            inside = (mine >= 0) & (theirs == mine)
            unordered &= ~(inside & strand.met_in_warps(epochs, their_threads, my_threads, at))
            if strand.met is not None:
                unordered &= ~(inside & (owners == strand.number) & (epochs <= strand.met[at]))
        if self.across_blocks:
            unordered |= theirs != mine
        if strand.machine.meetings.used and unordered.any():
            at = np.flatnonzero(unordered)
            who = theirs[at], their_threads[at], mine[at], my_threads[at]
            unordered[at] = ~strand.machine.meetings.ordered(epochs[at], owners[at], *who)
        return unordered

    # ---- accesses ----
    def read(self, strand: Any, cells: Array, codes: Array, site: int, bulk: bool = False) -> None:
        """bulk: by an asynchronous operation."""
        records = self.writes[cells]
        if not self.across_blocks and not records.all():
            self._report_uninitialised(strand, records, codes, site)
        hit = self.unordered(strand, records, codes, strand.machine.sites[site].atomic)
        if hit is not None and self.same is not None:
            first, last = self.same
            low, high = _extremes(codes, strand.machine.threads)
            landed = (records & MANY != 0) & (records >> EPOCH_SHIFT != LAST_EPOCH)
            among = landed & (first[cells] <= low) & (high <= last[cells])
            hit = hit & ~among  # this thread is one of those that stored the value
        if hit is not None and hit.any():
            self._report(strand, "read", "write", site, records, codes, hit)
        self._record_read(strand, cells, codes, site, -strand.number if bulk else strand.number)

    def _record_read(self, strand: Any, cells: Array, codes: Array, site: int, reader: int) -> None:
        reads = self.reads
        stamp = (strand.epoch << EPOCH_SHIFT) | (min(site, SITE) << CODE_BITS)
        mine = codes | stamp
        before = reads.of(reader, cells)
        reads.put(reader, cells, mine)
        lost = reads.of(reader, cells) != mine  # several threads in this statement
        lost |= (before >= strand.epoch << EPOCH_SHIFT) & (((before ^ mine) & CODE) != 0)
        threads = strand.machine.threads
        if lost.any():
            reads.put(reader, cells[lost], stamp | MANY | _block(codes[lost], threads))
        if self.across_blocks:
            elsewhere = _block(reads.of(reader, cells) & CODE, threads) != _block(codes, threads)
            elsewhere |= (before != 0) & (_block(before & CODE, threads) != _block(codes, threads))
            if elsewhere.any():
                reads.put(reader, cells[elsewhere], np.full(np.count_nonzero(elsewhere), stamp | EVERYBODY))

    def before_write(self, strand: Any, cells: Array, codes: Array, site: int, unchanged: Callable[[], Array]) -> Array:
        """Compare a store with earlier accesses.  unchanged: which lanes store what is there already."""
        self.version += 1
        records = self.writes[cells]
        hit = self.unordered(strand, records, codes)
        if hit is not None:
            hit = hit & ~unchanged()
            if hit.any():
                self._report(strand, "write", "write", site, records, codes, hit)
        self._against_reads(strand, cells, codes, site)
        stamp = codes | (strand.epoch << EPOCH_SHIFT) | (min(site, SITE) << CODE_BITS)
        self.writes[cells] = stamp
        return stamp

    def after_write(
        self, strand: Any, cells: Array, codes: Array, stamp: Array, site: int, unchanged: Callable[[], Array]
    ) -> None:
        """Several lanes of one store may have met: then they must have stored the same."""
        lost = self.writes[cells] != stamp
        if not lost.any():
            return
        wrong = lost & ~unchanged()
        if wrong.any():
            self._report(strand, "write", "write", site, self.writes[cells], codes, wrong)
        self._mark_many(strand, cells, codes, stamp, lost)

    def _mark_many(self, strand: Any, cells: Array, codes: Array, stamp: Array, lost: Array) -> None:
        shared = np.isin(cells, cells[lost])
        at, who = cells[shared], codes[shared]
        if self.same is None:
            self.same = np.full(len(self.writes), CODE, np.int64), np.zeros(len(self.writes), np.int64)
        first, last = self.same
        first[at], last[at] = CODE, 0
        np.minimum.at(first, at, who)
        np.maximum.at(last, at, who)
        threads = strand.machine.threads
        blocks = _block(first[at], threads)
        many = np.where(blocks == _block(last[at], threads), MANY | blocks, EVERYBODY)
        self.writes[at] = (stamp[shared] & ~np.int64(CODE)) | many

    def copy_departed(self, strand: Any, cells: Array, codes: Array, site: int) -> None:
        """An asynchronous copy may write from now on."""
        self.version += 1
        records = self.writes[cells]
        hit = self.unordered(strand, records, codes)
        if hit is not None:
            self._report(strand, "write", "write", site, records, codes, hit)
        self._against_reads(strand, cells, codes, site)
        flying = (LAST_EPOCH << EPOCH_SHIFT) | (min(site, SITE) << CODE_BITS) | MANY
        self.writes[cells] = flying | _block(codes, strand.machine.threads)

    def copy_landed(self, strand: Any, cells: Array, codes: Array, site: int) -> None:
        """The threads that started the copy have waited for it: it counts as their write of this moment."""
        self.version += 1
        self.writes[cells] = codes | (strand.epoch << EPOCH_SHIFT) | (min(site, SITE) << CODE_BITS)

    def copy_landed_at(self, epoch: int, cells: Array, codes: Array, site: int) -> None:
        """A copy that no thread waits for by itself has landed, in an epoch of its own."""
        self.version += 1
        self.writes[cells] = codes | (epoch << EPOCH_SHIFT) | (min(site, SITE) << CODE_BITS)

    def note_bulk_read(self, strand: Any, cells: Array, codes: Array, site: int) -> None:
        """An asynchronous read that has been compared with earlier writes goes on until now."""
        self._record_read(strand, cells, codes, site, -strand.number)

    def atomic(self, strand: Any, cells: Array, codes: Array, site: int) -> None:
        """An atomic read-modify-write: unordered with plain accesses only."""
        self.version += 1
        records = self.writes[cells]
        if not self.across_blocks and not records.all():
            self._report_uninitialised(strand, records, codes, site)
        hit = self.unordered(strand, records, codes, True)
        if hit is not None:
            self._report(strand, "atomic", "write", site, records, codes, hit)
        self._against_reads(strand, cells, codes, site, atomic=True)
        stamp = codes | (strand.epoch << EPOCH_SHIFT) | (min(site, SITE) << CODE_BITS)
        self.writes[cells] = stamp
        lost = self.writes[cells] != stamp
        if lost.any():
            threads = strand.machine.threads
            at = cells[lost]
            same = _block(codes[lost], threads) == _block(self.writes[at] & CODE, threads)
            many = np.where(same, MANY | _block(codes[lost], threads), EVERYBODY)
            self.writes[at] = (stamp[lost] & ~np.int64(CODE)) | many

    def _against_reads(self, strand: Any, cells: Array, codes: Array, site: int, atomic: bool = False) -> None:
        for records, at in self.reads.earlier(cells):
            hit = self.unordered(strand, records, codes[at], atomic)
            if hit is not None:
                self._report(strand, "atomic" if atomic else "write", "read", site, records, codes[at], hit)
        if not atomic:
            self.reads.forget(cells)

    # ---- reports ----
    def _report(
        self, strand: Any, kind: str, earlier: str, site: int, records: Array, codes: Array, hit: Array
    ) -> None:
        flying = hit & (records >> EPOCH_SHIFT == LAST_EPOCH)
        if flying.any():
            position = int(np.flatnonzero(flying)[0])
            who = _who(strand, int(codes[position]), strand.machine.threads)
            other = int(records[position] >> CODE_BITS) & SITE
            committed = any(flight.site == other for group in strand.groups for flight in group.flights)
            strand.findings.in_flight(site, other, kind, who, int(flying.sum()), committed)
            hit = hit & ~flying
            if not hit.any():
                return
        other_sites = (records[hit] >> CODE_BITS) & SITE
        for other in np.unique(other_sites):
            position = int(np.flatnonzero(hit)[int(np.flatnonzero(other_sites == other)[0])])
            count = int((other_sites == other).sum())
            threads = strand.machine.threads
            owner = int(strand.machine.epochs.owner(np.array([records[position] >> EPOCH_SHIFT]))[0])
            strand.findings.race(
                site,
                int(other),
                kind,
                earlier,
                _who(strand, int(codes[position]), threads),
                _who(strand, int(records[position]) & CODE, threads),
                count,
                roles=owner != strand.number,
            )

    def report_unfenced(
        self, strand: Any, records: Array, late: Array, site: int, earlier: str, overwrites: bool
    ) -> None:
        """Ordinary accesses that no fence lies behind, and an asynchronous one.

        earlier: "load" or "store".  overwrites: whether the asynchronous one writes.
        """
        sites = (records >> CODE_BITS) & SITE
        for other in np.unique(sites[late]):
            same = late & (sites == other)
            code = int(records[int(np.flatnonzero(same)[0])]) & CODE
            who = _who(strand, code, strand.machine.threads)
            strand.findings.no_proxy_fence(site, int(other), who, int(same.sum()), earlier, overwrites)

    def report_overwritten(self, strand: Any, record: int, site: int, reader: str, count: int) -> None:
        """A store into what an asynchronous operation was still reading."""
        other, threads = int(record >> CODE_BITS) & SITE, strand.machine.threads
        strand.findings.overwritten(other, site, reader, _who(strand, int(record) & CODE, threads), count)

    def _report_uninitialised(self, strand: Any, records: Array, codes: Array, site: int) -> None:
        missing = records == 0
        position = int(np.flatnonzero(missing)[0])
        code = int(codes[position])
        if code & MANY:
            code = (code & (MANY - 1)) * strand.machine.threads + 1
        strand.findings.uninitialised(site, strand.coordinates(code), int(missing.sum()))


def _block(codes: Array, threads: int) -> Array:
    """Number of the block of a code; -1 for several blocks."""
    block = np.where((codes & MANY) != 0, codes & (MANY - 1), (codes - 1) // threads)
    return np.where(codes == EVERYBODY, -1, block)


def _thread(codes: Array, threads: int) -> Array:
    """Number of the thread of a code inside its block; -1 for several."""
    return np.where((codes & MANY) != 0, -1, (codes - 1) % threads)


def _extremes(codes: Array, threads: int) -> tuple[Array, Array]:
    """First and last thread that a code stands for."""
    many = (codes & MANY) != 0
    block = codes & (MANY - 1)
    return np.where(many, block * threads + 1, codes), np.where(many, (block + 1) * threads, codes)


def _who(strand: Any, code: int, threads: int) -> tuple[Any, Any]:
    """(block, thread) coordinates; thread None for several threads, block None for several blocks."""
    if code == EVERYBODY:
        return None, None
    if code & MANY:
        return strand.coordinates((code & (MANY - 1)) * threads + 1)[0], None
    return strand.coordinates(code)
