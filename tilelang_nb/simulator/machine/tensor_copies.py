"""Bulk copies of boxes of a tensor between global and shared memory (TMA).

A load lands when somebody waits for its barrier, as late as the program allows; until then its target belongs to the
copy.  A store reads its tile when the threads that started it wait for its group, or at the end of the launch.  A
program that forgets a wait therefore computes with the wrong data every time.

Out of range, loads give zeros and count all bytes of the box; stores leave those elements out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .arithmetic import strided
from .asynchronous import Arrivals

Array = Any
CHUNK = 16  # bytes that a swizzle moves together
ALIGNMENT = 128  # bytes, of the target of a copy; a swizzle repeats after 8 of its lines


class TensorView:
    """A tensor map as the simulated device holds it.

    array: the global array.  dims, box: the fastest dimension first.  strides: bytes, from the second dimension on.
    swizzle: 0, 32, 64 or 128 bytes.
    """

    def __init__(self, array: Any, dims: list[int], strides: list[int], box: tuple[int, ...], swizzle: int):
        self.array, self.box, self.swizzle = array, box, swizzle
        self.itemsize = array.data.dtype.itemsize
        self.dims = dims
        self.steps = [1, *(stride // self.itemsize for stride in strides)]
        self.shape = box[::-1]
        self.bytes = int(np.prod(box)) * self.itemsize

    def region(self, coordinates: tuple[int, ...]) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
        """The parts of the tensor and of the box where the two overlap, slowest dimension first."""
        whole, part = [], []
        for start, extent, box in reversed(list(zip(coordinates, self.dims, self.box, strict=True))):
            low, high = max(start, 0), max(min(start + box, extent), max(start, 0))
            whole.append(slice(low, high))
            part.append(slice(low - start, high - start))
        return tuple(whole), tuple(part)

    def elements(self) -> Array:
        """The tensor as a view of the array's memory."""
        steps = [step * self.itemsize for step in reversed(self.steps)]
        return strided(self.array.data, self.dims[::-1], steps)

    def cells(self, whole: tuple[slice, ...]) -> Array:
        """Numbers of elements in the array."""
        total: Array = 0
        for part, step in zip(whole, reversed(self.steps), strict=True):
            total = np.add.outer(total, np.arange(part.start, part.stop) * step)
        return np.asarray(total).reshape(-1)


def swizzled(address: Array, span: int) -> Array:
    """Where the byte at an address of a swizzled tile lies: bits 4 to 6 change with bits 7 to 9, or fewer of them."""
    if not span:
        return address
    bits = (span // CHUNK) - 1
    return address ^ ((address >> 7 & bits) << 4)


@dataclass
class TensorLoad:
    """A load under way.

    bytes: that its barrier will count.  data: of the box.  chunks: of shared memory, 16 bytes each, in the order of the
    box.  cells, codes: what the shadow is told at landing.
    """

    view: TensorView
    coordinates: tuple[int, ...]
    chunks: Array
    cells: Array | None
    codes: Array | None
    site: int
    block: int
    times: int
    origins: Array | None = None  # of an array that the launch writes: the cells, and who had written them
    records: Array | None = None
    read_site: int = 0

    @property
    def bytes(self) -> int:
        return self.view.bytes * self.times

    def fetched(self, strand: Any) -> Array:
        """The bytes of the box, now."""
        if self.origins is not None:
            records = self.view.array.shadow.writes[self.origins]
            changed = records != self.records
            if changed.any():
                record = int(records[int(np.flatnonzero(changed)[0])])
                reader = "a bulk copy"
                self.view.array.shadow.report_overwritten(strand, record, self.read_site, reader, int(changed.sum()))
        box = np.zeros(self.view.shape, self.view.array.data.dtype)
        whole, part = self.view.region(self.coordinates)
        box[part] = self.view.elements()[whole]
        return box.reshape(-1).view(np.uint8)


@dataclass
class TensorStore:
    """A store under way.

    records: who had written its tile when it started.  box: what was read of it, None before that.
    """

    view: TensorView
    coordinates: tuple[int, ...]
    chunks: Array
    cells: Array | None
    records: Array | None
    sites: tuple[int, int]
    block: int
    box: Array | None = None


@dataclass
class Stores:
    """Of one thread.  open: since the last commit.  groups: committed, oldest first; `read` of them have been read."""

    open: list[TensorStore] = field(default_factory=list)
    groups: list[list[TensorStore]] = field(default_factory=list)
    read: int = 0


class TensorCopies:
    """Part of a strand.

    stores: by (position of the block, number of the thread in it), of the threads that ever stored.
    """

    stores: dict[tuple[int, int], Stores]

    # ---- loads ----
    def tensor_load(
        self, target: Array, view: TensorView, coordinates: tuple[Array, ...], barrier: Array, mask: Array,
        sites: tuple[int, int, int], blocks: int = 0,
    ) -> None:  # fmt: skip
        """Start a copy of a box.

        target, barrier: byte addresses in the window of the block.  coordinates: of the first element of the box.
        sites: of the write, the barrier and the read.  blocks: bits of the blocks of the cluster that get it, 0 for the
        own.
        """
        for block, lanes, at, bar, *where in self.members(mask, target, barrier, *coordinates):
            for window in self.windows_of(block, blocks, sites[0]):
                self._load_into(window, block, lanes, at, view, where, bar, mask, sites)

    def _load_into(
        self, window: int, block: int, lanes: int, at: int, view: TensorView, where: list[int], bar: int, mask: Array,
        sites: tuple[int, int, int],
    ) -> None:  # fmt: skip
        waiting = self._mbarrier_at(window, bar, sites[1])
        chunks = self._chunks(block, at, view, mask, sites[0], window)
        load = TensorLoad(view, tuple(where), chunks, None, None, sites[0], block, lanes, read_site=sites[2])
        if self.machine.checks:
            load.cells = self._cells_of(chunks)
            code = self.machine.shared_shadow.many_of(self)[block]
            load.codes = np.broadcast_to(code, load.cells.shape)
            self.check_overwritten(load.cells, load.codes, sites[0])
            self.machine.shared_shadow.copy_departed(self, load.cells, load.codes, sites[0])
            self._note_global_read(load)
            self.counters.count("tensor load", lanes)
        waiting.flying.append(load)

    def _chunks(self, block: int, at: int, view: TensorView, mask: Array, site: int, window: int = -1) -> Array:
        """The chunks of a box at an address in a window of shared memory, that of the block if it is not given."""
        alignment = max(8 * view.swizzle, ALIGNMENT)
        if at % ALIGNMENT or (view.swizzle and at % alignment):
            lanes = np.zeros((self.B, self.T), np.bool_)
            lanes[block] = True if mask is None else np.broadcast_to(mask, (self.B, self.T))[block]
            self.misaligned(site, alignment, lanes)
            at -= at % alignment
        room = self.machine.stride
        addresses = swizzled(np.arange(at, at + view.bytes, CHUNK), view.swizzle)
        if view.bytes + at > room:
            self.outside_copy(site, np.broadcast_to(True, (self.B, self.T)), view.bytes)
            addresses = addresses % room
        return (addresses + (block + self.first if window < 0 else window) * room) >> 4

    def _cells_of(self, chunks: Array) -> Array:
        granules = CHUNK // self.machine.granule
        return (chunks[:, None] * granules + np.arange(granules)).reshape(-1)

    def _note_global_read(self, load: TensorLoad) -> None:
        array = load.view.array
        if array.shadow is None or not array.shadow.reads_matter:
            return
        cells = load.view.cells(load.view.region(load.coordinates)[0]) + array.first
        if len(cells):
            code = array.shadow.many_of(self)[load.block]
            array.shadow.read(self, cells, np.broadcast_to(code, cells.shape), load.read_site)
            load.origins, load.records = cells, array.shadow.writes[cells]

    def land(self, barrier: Any) -> None:
        """All copies that a barrier waits for arrive now."""
        machine = self.machine
        if machine.watched and barrier.flying:
            machine.much_changed()
        while barrier.flying:
            load = barrier.flying.pop(0)
            if isinstance(load, Arrivals):
                self.land_copies(load, barrier)
                continue
            machine.view(np.complex128)[load.chunks] = load.fetched(self).view(np.complex128)
            if load.cells is not None:
                epoch = machine.epochs.next(barrier.engine)
                machine.shared_shadow.copy_landed_at(epoch, load.cells, load.codes, load.site)
                barrier.known[barrier.engine] = epoch
            barrier.bytes -= load.bytes
        barrier.settle()

    # ---- stores ----
    def tensor_store(
        self, view: TensorView, coordinates: tuple[Array, ...], source: Array, mask: Array, sites: tuple[int, int]
    ) -> None:
        """Start a copy of a box to global memory.  sites: of the write and of the read."""
        shape = self.B, self.T
        columns = [np.broadcast_to(value, shape) for value in (source, *coordinates)]
        for block, lane in np.argwhere(np.broadcast_to(True if mask is None else mask, shape)).tolist():
            at, *where = (int(column[block, lane]) for column in columns)
            chunks = self._chunks(block, at, view, mask, sites[1])
            store = TensorStore(view, tuple(where), chunks, None, None, sites, block)
            if self.machine.checks:
                shadow = self.machine.shared_shadow
                store.cells = self._cells_of(chunks)
                codes = np.broadcast_to(shadow.many_of(self)[block], store.cells.shape)
                shadow.read(self, store.cells, codes, sites[1], True)
                self.check_proxy(store.cells, sites[1])
                store.records = shadow.writes[store.cells]
                self.counters.count("tensor store", 1)
            self.stores.setdefault((block, int(self.threads[lane])), Stores()).open.append(store)

    def _storing(self, mask: Array) -> list[Stores]:
        """Those of the threads that take part."""
        if mask is None:
            return list(self.stores.values())
        lanes, first = np.broadcast_to(mask, (self.B, self.T)), int(self.threads[0])
        return [mine for (block, thread), mine in self.stores.items() if lanes[block, thread - first]]

    def commit_stores(self, mask: Array) -> None:
        """cp.async.bulk.commit_group"""
        for mine in self._storing(mask):
            mine.groups.append(mine.open)
            mine.open = []

    def wait_stores(self, allowed: int, read: bool, mask: Array) -> None:
        """cp.async.bulk.wait_group: of each thread, all but the last `allowed` groups have been read, or are over."""
        for mine in self._storing(mask):
            reached = max(len(mine.groups) - allowed, 0)
            for group in mine.groups[mine.read : reached]:
                for store in group:
                    self._read_box(store)
            mine.read = max(mine.read, reached)
            if not read:
                for group in mine.groups[:reached]:
                    for store in group:
                        self._write_tensor(store)
                del mine.groups[:reached]
                mine.read -= reached

    def finish_stores(self) -> None:
        """The end of the launch: shared memory is gone then, so that every store must have read its tile."""
        for mine in self.stores.values():
            late = [store for group in (*mine.groups[mine.read :], mine.open) for store in group]
            for store in late:
                if self.machine.checks:
                    self.findings.never_read(store.sites[1], 1)
                self._read_box(store)
            for store in [store for group in mine.groups[: mine.read] for store in group] + late:
                self._write_tensor(store)
        self.stores = {}

    def _read_box(self, store: TensorStore) -> None:
        view, machine = store.view, self.machine
        raw = machine.view(np.complex128)[store.chunks].view(np.uint8)
        store.box = raw.view(view.array.data.dtype).reshape(view.shape)
        if store.cells is not None:
            self.check_unchanged(store.cells, store.records, store.sites[1], "a tensor store")

    def _write_tensor(self, store: TensorStore) -> None:
        view, array = store.view, store.view.array
        whole, part = view.region(store.coordinates)
        assert store.box is not None
        if self.machine.watched:
            self.machine.much_changed()
        data = store.box[part]
        if store.cells is None or array.shadow is None:
            view.elements()[whole] = data
            return
        at = view.cells(whole)
        codes = np.broadcast_to(array.shadow.many_of(self)[store.block], at.shape)
        self._write(array.shadow, array.data, at, at + array.first, data.reshape(-1), codes, store.sites[0], 1)

    def give_stores(self, child: Any) -> None:
        """A part of the threads goes its own way, with what it has stored."""
        taken = [key for key in self.stores if key[1] in child.threads]
        child.stores |= {key: self.stores.pop(key) for key in taken}

    def check_unchanged(self, cells: Array, records: Array, site: int, reader: str) -> None:
        """Report what was overwritten while it was still being read."""
        shadow = self.machine.shared_shadow
        changed = shadow.writes[cells] != records
        if changed.any():
            position = int(np.flatnonzero(changed)[0])
            record = int(shadow.writes[cells[position]])
            shadow.report_overwritten(self, record, site, reader, int(changed.sum()))
