"""Copies that land later: cp.async with commit and wait groups.

The bytes are read when the copy starts and land when the threads wait for its group, as late as the program allows: a
kernel that forgets a wait reads old data here every time.  Until then the target belongs to the copy: whoever touches
it is reported.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

Array = Any
UNITS = {4: np.uint32, 8: np.uint64, 16: np.complex128}


@dataclass
class Flight:
    """One copy statement under way: target in units of its size, data, and what the shadow is told at landing.

    lanes: those that copy, (blocks, threads), in whose order the copies are; readers: those of them that read.
    landed: a barrier that counts the copies has been waited for.  shadow, origins, records: of the array that is read,
    where the launch writes it: the cells, and who had written them when the copy started.
    """

    unit: Any
    target: Array
    data: Array
    cells: Array | None
    codes: Array | None
    site: int
    lanes: Array
    readers: Array | None = None
    landed: bool = False
    shadow: Any = None
    origins: Array | None = None
    records: Array | None = None
    read_site: int = 0
    parts: list[Flight] = field(default_factory=list)  # that it was divided into

    def with_lanes(self, lanes: Array, readers: Array | None) -> Flight:
        """The same copies, or some of them, which land instead of these."""
        part = replace(self, lanes=lanes, readers=readers, parts=[])
        self.parts.append(part)
        return part

    def leaves(self) -> Iterator[Flight]:
        """What is left of it: itself, or what it was divided into."""
        if not self.parts:
            yield self
        for part in self.parts:
            yield from part.leaves()

    def of(self, lanes: Array) -> Flight | None:
        """The copies of some lanes; None if there are none."""
        kept = lanes[self.lanes]
        if kept.all():
            return self
        if not kept.any():
            return None
        part = self.with_lanes(self.lanes & lanes, None)
        part.target, part.data = self.target[kept], self.data[kept]
        if self.cells is not None and self.codes is not None:
            part.cells, part.codes = _rows(self.cells, kept), _rows(self.codes, kept)
        if self.origins is not None and self.records is not None and self.readers is not None:
            reading = lanes[self.readers]
            part.origins, part.records = _rows(self.origins, reading), _rows(self.records, reading)
            part.readers = self.readers & lanes
        return part


def _rows(values: Array, kept: Array) -> Array:
    """The values of some copies, each of which has the same number of them."""
    return values.reshape(len(kept), -1)[kept].reshape(-1)


def _divided(flights: list[Flight], lanes: Array) -> tuple[list[Flight], list[Flight]]:
    """The copies of some lanes, and the others."""
    mine = [part for flight in flights if not flight.landed and (part := flight.of(lanes)) is not None]
    rest = [part for flight in flights if not flight.landed and (part := flight.of(~lanes)) is not None]
    return mine, rest


@dataclass
class Group:
    """Copies that were committed together.  lanes: those that committed, (blocks, threads); None for all."""

    flights: list[Flight]
    lanes: Array | None = None


@dataclass
class Arrivals:
    """Arrivals at an mbarrier that count when copies have landed: of so many threads, with their copies."""

    flights: list[Flight]
    lanes: int
    site: int
    bytes: int = 0


class AsynchronousCopies:
    """Part of a strand.

    open_copies: since the last commit.  groups: committed, oldest first.  cut: lanes of the strand that this one is of.
    """

    open_copies: list[Flight]
    groups: list[Group]

    def cp_async(
        self, dtype: Any, target: tuple[Array, int, Any], array: Any, source: tuple[Array, int, Any], size: int,
        count: Array | None, mask: Array, sites: tuple[int, int],
    ) -> None:  # fmt: skip
        """Start copies of `size` bytes from elements of a global array to elements of shared memory.

        target, source: (array part, uniform part, bounds) of the address.  count: bytes that are read, None for all;
        the rest of the target gets zeros.  sites: of the write and of the read.
        """
        to = self._element(target, mask, sites[0]) * np.dtype(dtype).itemsize
        reading = mask
        if count is not None:
            some = np.broadcast_to(np.asarray(count) > 0, (self.B, self.T))
            reading = some if mask is None else mask & some
            if self.machine.checks:
                self.kept_out(some, max(size // array.data.itemsize, 1), mask, sites[1])
        step = array.data.itemsize
        index = source[1] if source[0] is None else source[0] + source[1]
        index, ok = self._safe(index, source[2], reading, sites[1])
        if ok is not None:
            reading = ok if reading is None else reading & ok
        start = np.broadcast_to(np.asarray(index) * step, (self.B, self.T))
        needed = np.broadcast_to(size if count is None else np.minimum(count, size), (self.B, self.T))
        beyond = start + needed > array.data.nbytes
        if reading is not None:
            beyond = beyond & reading
        if beyond.any():
            self.outside_copy(sites[1], beyond, size)
            reading = ~beyond if reading is None else reading & ~beyond
        if reading is not None:
            reading = np.broadcast_to(reading, (self.B, self.T))
        lanes = np.broadcast_to(True if mask is None else mask, (self.B, self.T))
        for site, address, who in ((sites[0], to, lanes), (sites[1], start, lanes if reading is None else reading)):
            odd = (np.broadcast_to(address, (self.B, self.T)) % size != 0) & who
            if odd.any():
                self.misaligned(site, size, odd)
                lanes = lanes & ~odd
        to = np.broadcast_to(to, (self.B, self.T))[lanes]
        flat = to + np.broadcast_to(self.window_column * self.machine.stride, (self.B, self.T))[lanes]
        data = self._bytes_read(array, start[lanes], size, needed[lanes], None if reading is None else reading[lanes])
        unit = UNITS[size]
        flight = Flight(unit, flat // size, data.view(unit)[:, 0], None, None, sites[0], lanes)
        if self.machine.checks and len(to):
            self._departed(flight, array, start, size, reading, lanes, sites)
        self.open_copies.append(flight)

    def _element(self, address: tuple[Array, int, Any], mask: Array, site: int) -> Array:
        index = address[1] if address[0] is None else address[0] + address[1]
        return np.asarray(self._safe(index, address[2], mask, site)[0])

    @staticmethod
    def _bytes_read(array: Any, start: Array, size: int, needed: Array, reading: Array | None) -> Array:
        """(copies, size) bytes, zeros where nothing is read."""
        raw = array.data.view(np.uint8)
        if len(raw) < size:
            raw = np.concatenate([raw, np.zeros(size, np.uint8)])
        unit = UNITS[size]
        whole = raw[: len(raw) // size * size].view(unit)
        units = start // size
        keep = None
        if reading is not None and not reading.all():
            units, keep = np.where(reading, units, 0), np.where(reading, needed, 0)
        elif (needed < size).any():
            keep = needed
        data = np.ascontiguousarray(whole[np.minimum(units, len(whole) - 1)]).view(np.uint8).reshape(-1, size)
        ends = start + size > len(whole) * size
        if ends.any():  # the last bytes of an array that is no multiple of the size
            index = np.minimum(start[ends][:, None] + np.arange(size), len(raw) - 1)
            data[ends] = raw[index]
        if keep is not None:
            data[np.arange(size) >= keep[:, None]] = 0
        return data

    def _departed(
        self, flight: Flight, array: Any, start: Array, size: int, reading: Array, lanes: Array, sites: tuple[int, int]
    ) -> None:
        """Count both sides and tell the shadows that a copy is under way."""
        shape = (self.B, self.T)
        mask = None if lanes.all() else lanes
        self.counters.copy_requests(self, "global", np.broadcast_to(start, shape), reading, size, sites[1])
        to = np.zeros(shape, np.int64)
        to[lanes] = flight.target * size
        self.counters.copy_requests(self, "shared", to, mask, size, sites[0])
        codes = self.codes[lanes]
        if array.shadow is not None and array.shadow.reads_matter:
            who = np.ones(shape, np.bool_) if reading is None else np.broadcast_to(reading, shape)
            step = array.data.itemsize
            cells = (start[who] // step)[:, None] + np.arange(max(size // step, 1)) + array.first
            last = array.first + array.data.size - 1
            each = np.repeat(self.codes[who], cells.shape[1])
            if len(cells):
                origins = np.minimum(cells, last).reshape(-1)
                array.shadow.read(self, origins, each, sites[1])
                flight.shadow, flight.origins, flight.read_site = array.shadow, origins, sites[1]
                flight.readers = who
                flight.records = array.shadow.writes[origins]
        granules = size // self.machine.granule
        cells = (flight.target[:, None] * granules + np.arange(granules)).reshape(-1)
        flight.cells, flight.codes = cells, np.repeat(codes, granules)
        self.machine.shared_shadow.copy_departed(self, cells, flight.codes, sites[0])

    def _some(self, mask: Array) -> Array | None:
        """The lanes of a mask, (blocks, threads); None for all."""
        if mask is None:
            return None
        lanes = self._coming(mask)
        return None if lanes.all() else lanes

    def commit_copies(self, mask: Array = None) -> None:
        """cp.async.commit_group"""
        lanes = self._some(mask)
        if lanes is None:
            self.groups.append(Group(self.open_copies))
            self.open_copies = []
        else:
            mine, self.open_copies = _divided(self.open_copies, lanes)
            self.groups.append(Group(mine, lanes))

    def wait_copies(self, allowed: int, mask: Array = None) -> None:
        """cp.async.wait_group: of each thread, all but the last `allowed` groups land."""
        lanes = self._some(mask)
        landing: list[list[Flight]] = []
        if lanes is None and all(group.lanes is None for group in self.groups):
            reached = max(len(self.groups) - allowed, 0)
            landing, self.groups = [group.flights for group in self.groups[:reached]], self.groups[reached:]
        else:
            every = np.ones((self.B, self.T), np.bool_)
            waiting, newer, kept = every if lanes is None else lanes, np.zeros((self.B, self.T), np.int64), []
            for group in reversed(self.groups):
                held = every if group.lanes is None else group.lanes
                reaching = held & waiting & (newer >= allowed)
                newer += held
                if reaching.any():
                    mine, rest = _divided(group.flights, reaching)
                    landing.insert(0, mine)
                    group = Group(rest, held & ~reaching)
                if group.lanes is None or group.lanes.any():
                    kept.append(group)
            self.groups = kept[::-1]
        if self.machine.watched and landing:
            self.machine.much_changed()
        for flight in [flight for flights in landing for flight in flights if not flight.landed]:
            flight.landed = True  # a barrier that counts it as well brings nothing
            self._source_unchanged(flight)
            self.machine.view(flight.unit)[flight.target] = flight.data
            if flight.cells is not None:
                self.machine.shared_shadow.copy_landed(self, flight.cells, flight.codes, flight.site)

    # ---- forks ----
    def give_copies(self, child: Any, cut: slice) -> None:
        """A part of the threads goes its own way, with the copies that it has started."""
        child.cut = cut
        if not self.groups and not self.open_copies:
            return
        lanes = np.zeros((self.B, self.T), np.bool_)
        lanes[:, cut] = True

        def cut_out(flights: list[Flight]) -> list[Flight]:
            return [
                one.with_lanes(one.lanes[:, cut], None if one.readers is None else one.readers[:, cut])
                for one in flights
            ]

        mine, self.open_copies = _divided(self.open_copies, lanes)
        child.open_copies = cut_out(mine)
        for group in self.groups:
            mine, group.flights = _divided(group.flights, lanes)
            held = None if group.lanes is None else group.lanes[:, cut]
            child.groups.append(Group(cut_out(mine), held))
            group.lanes = ~lanes if group.lanes is None else group.lanes & ~lanes
        self.groups = [group for group in self.groups if group.lanes is None or group.lanes.any()]

    def take_copies(self, child: Any) -> None:
        """A part of the threads is back."""

        def widened(lanes: Array | None) -> Array:
            wide = np.zeros((self.B, self.T), np.bool_)
            wide[:, child.cut] = True if lanes is None else lanes
            return wide

        def back(flights: list[Flight]) -> list[Flight]:
            return [
                one.with_lanes(widened(one.lanes), None if one.readers is None else widened(one.readers))
                for one in flights
                if not one.landed
            ]

        self.open_copies += back(child.open_copies)
        self.groups += [Group(back(group.flights), widened(group.lanes)) for group in child.groups]

    def _source_unchanged(self, flight: Flight) -> None:
        """Report a store into what the copy may still have been reading."""
        if flight.shadow is None:
            return
        records = flight.shadow.writes[flight.origins]
        changed = records != flight.records
        if changed.any():
            record = int(records[int(np.flatnonzero(changed)[0])])
            flight.shadow.report_overwritten(self, record, flight.read_site, "an asynchronous copy", int(changed.sum()))

    def arrive_after_copies(self, address: Array, mask: Array, site: int) -> None:
        """cp.async.mbarrier.arrive.noinc: an arrival when all copies that the threads started so far have landed."""
        coming, flights = self._some(mask), []
        if coming is not None:  # the copies of the other lanes are flights of their own from here on
            self.open_copies = [one for part in _divided(self.open_copies, coming) for one in part]
            for group in self.groups:
                group.flights = [one for part in _divided(group.flights, coming) for one in part]
        for flight in [one for group in self.groups for one in group.flights] + self.open_copies:
            if not flight.landed and (coming is None or coming[flight.lanes].all()):
                flights.append(flight)
        for block, lanes, at in self.members(mask, address):
            barrier = self._mbarrier(block, at, site)
            self._release(barrier.known, self._warps(mask, block))
            barrier.flying.append(Arrivals(flights, lanes, site))

    def land_copies(self, arrivals: Arrivals, barrier: Any) -> None:
        """Somebody waits for the barrier."""
        for flight in [leaf for one in arrivals.flights for leaf in one.leaves()]:
            if flight.landed:
                continue
            flight.landed = True
            self._source_unchanged(flight)
            self.machine.view(flight.unit)[flight.target] = flight.data
            if flight.cells is not None:
                epoch = self.machine.epochs.next(barrier.engine)
                self.machine.shared_shadow.copy_landed_at(epoch, flight.cells, flight.codes, flight.site)
        if self.machine.checks:
            barrier.known[barrier.engine] = self.machine.epochs.next(barrier.engine)
        barrier.pending -= arrivals.lanes

    def wait_all_copies(self, mask: Array = None) -> None:
        """cp.async.wait_all: also those that no group holds."""
        self.commit_copies(mask)
        self.wait_copies(0, mask)
