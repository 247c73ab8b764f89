"""Barriers and forks of strands.

A block barrier costs nothing in lockstep.  After a fork strands are generators that yield a `Wait`.

Order of accesses: a strand counts epochs, and knows for each other strand which of its epochs are ordered before its
own next access (`knowledge.py`).  Barriers carry this knowledge from those who arrive to those who wait.  Where only
some warps of a strand arrive, what the others did since the strand last met is not told: the knowledge is of (strand,
warp) then.  The threads of a warp arrive for each other.

Asynchronous operations ask for more: a proxy fence between an ordinary access and them.  What was known when a thread
came to such a fence is known a second time, under the negative number of the strand, and carried on in the same way.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .arithmetic import Bounds
from .knowledge import Known, Share
from .waits import MISSING_BYTES, SURPLUS, UNKNOWN_BYTES, Deadlock, Lack, Wait, in_turns, wait_of_all

WARPGROUP = 128  # strands of a fork are cut here
Mask = Any


@dataclass
class MBarrier:
    """A barrier object in shared memory.

    bytes: announced and not here yet.  flying: copies that will count at this barrier, oldest first.  engine: the
    strand that counts as the writer of what they bring.
    ended: what those who arrived knew, for the last two phases by parity.
    """

    count: int
    pending: int = 0
    phase: int = 0
    bytes: int = 0
    known: Known = field(default_factory=dict)
    ended: dict[int, Known] = field(default_factory=dict)
    flying: list[Any] = field(default_factory=list)
    engine: int = 0
    surplus: int = 0  # the most arrivals that came in one phase beyond its count

    def arrive(self, threads: int) -> None:
        """So many arrive, in this phase and perhaps in later ones."""
        self.surplus = max(self.surplus, threads - self.pending)
        self.pending -= threads
        self.settle()

    def settle(self) -> None:
        """End the phase if nothing is missing; arrivals beyond it count for the next one."""
        while self.pending <= 0 and self.bytes == 0:
            self.ended[self.phase] = dict(self.known)
            self.phase ^= 1
            self.pending += self.count


class Barriers:
    """Part of a strand."""

    def _warps(self, mask: Mask, block: int) -> list[int] | None:
        """The warps of a block that have an active lane; None if all of the strand have."""
        if mask is None:
            return None
        lanes = np.broadcast_to(mask, (self.B, self.T))[block]
        warps, every = self.threads[lanes] // 32, self.threads // 32
        coming = np.unique(warps)
        return None if len(coming) == len(np.unique(every)) else coming.tolist()

    # ---- barriers of the block ----
    def block_barrier(self, mask: Mask, site: int) -> None:
        if mask is not None:
            lanes = np.broadcast_to(mask, (self.B, self.T))
            some, every = lanes.any(1), lanes.all(1)
            if (some & ~every).any():
                missing = np.broadcast_to((some & ~every)[:, None] & ~lanes, (self.B, self.T))
                self.findings.divergent(site, self.coordinates(self.first_lane(missing)[0]), int(missing.sum()))
        if self.machine.checks:
            self.counters.count("barrier", self.lane_count(mask) // max(self.T, 1))
            partly = mask is not None and not some.all()
            self._order_own(np.flatnonzero(some) if partly else None)
            self.threads_have_met(True, mask)

    def warp_barrier(self, mask: Mask) -> None:
        """__syncwarp: orders accesses inside each warp."""
        coming = None if mask is None else self._coming(mask)
        if coming is None or coming.all():
            self.warp_epoch, self.warps_met = self.epoch, None
        else:
            if self.warps_met is None:
                self.warps_met = np.zeros((self.B, -(-self.machine.threads // 32)), np.int64)
            partly = np.zeros(self.T, np.bool_)
            for warp in np.unique(self.threads // 32).tolist():
                lanes = self.threads // 32 == warp
                whole = coming[:, lanes].all(1)
                self.warps_met[whole, warp] = self.epoch
                partly[lanes] = coming[~whole][:, lanes].any(0)
            if partly.any():
                self._share(Share(self.lanes_of_block(partly), {}, {}, self.epoch))
        if self.machine.checks:
            self.threads_have_met(False, mask)
        self.new_epoch()

    # ---- who takes part ----
    def members(self, mask: Mask, *values: Any) -> Iterator[tuple[int, ...]]:
        """(block, lanes, *values) for each distinct combination over the active lanes."""
        arrays = [np.broadcast_to(value, (self.B, self.T)) for value in values]
        lanes = np.broadcast_to(True if mask is None else mask, (self.B, self.T))
        for block in range(self.B):
            active = np.flatnonzero(lanes[block])
            if not len(active):
                continue
            columns = [array[block, active] for array in arrays]
            if all((column == column[0]).all() for column in columns):
                yield (block, len(active), *[int(column[0]) for column in columns])
            else:
                rows, counts = np.unique(np.stack(columns), axis=1, return_counts=True)
                for row, number in zip(rows.T, counts, strict=True):
                    yield (block, int(number), *map(int, row))

    # ---- mbarriers ----
    def _mbarrier(self, block: int, address: int, site: int) -> MBarrier:
        return self._mbarrier_at(block + self.first, address, site)

    def _mbarrier_at(self, window: int, address: int, site: int) -> MBarrier:
        barrier = self.machine.mbarriers.get((window, address))
        if barrier is None:
            raise Deadlock(Lack(f"the barrier `{self.machine.sites[site].buffer}` was never initialised"), site)
        return barrier

    def mbarrier_init(self, address: Any, count: Any, mask: Mask, site: int) -> None:
        for block, _, at, number in self.members(mask, address, count):
            self.machine.mbarriers[block + self.first, at] = MBarrier(number, number, engine=self.machine.engine_of(at))

    def mbarrier_expect(self, address: Any, count: Any, mask: Mask, site: int) -> None:
        for block, lanes, at, number in self.members(mask, address, count):
            self._mbarrier(block, at, site).bytes += number * lanes

    def mbarrier_arrive_expect(self, address: Any, count: Any, mask: Mask, site: int) -> None:
        self.mbarrier_expect(address, count, mask, site)
        self.mbarrier_arrive(address, 1, mask, site)

    def mbarrier_arrive(self, address: Any, count: Any, mask: Mask, site: int) -> None:
        for block, lanes, at, number in self.members(mask, address, count):
            barrier = self._mbarrier(block, at, site)
            self._release(barrier.known, self._warps(mask, block))
            barrier.arrive(lanes * number)

    def mbarrier_wait(self, address: Any, parity: Any, mask: Mask, site: int) -> Generator[Wait, None, None]:
        """Yields until the phase with this parity has ended for every active block."""
        waits = [
            (self._mbarrier(block, at, site), at, bit & 1) for block, _, at, bit in self.members(mask, address, parity)
        ]

        def ready() -> bool:
            for barrier, _, bit in waits:
                if barrier.phase == bit and barrier.flying:
                    self.land(barrier)
            return all(barrier.phase != bit for barrier, _, bit in waits)

        def said() -> Lack:
            barrier, bit = next((barrier, bit) for barrier, _, bit in waits if barrier.phase == bit)
            lack = _missing(barrier, self.machine.sites[site].buffer)
            return Lack(f"{lack.text}, in its phase of parity {bit}", lack.kinds)

        while not ready():
            yield Wait(ready, said, site)
        for barrier, _, bit in waits:
            self._acquire(barrier.ended.get(bit, {}), mask)  # the phase before the first has no arrivals

    # ---- forks ----
    def fork(self, branches: tuple[tuple[Any, Any, tuple[Any, ...]], ...]) -> Generator[Wait, None, None]:
        """Run each branch with its threads as strands of their own until all have ended.

        branches: (generator function, condition over the threads, names it uses from outside).
        """
        children: list[tuple[Any, Generator[Wait, None, None]]] = []
        if self.noted is not None:
            self.noted.append(None)  # what the children read is not known
        for function, condition, arguments in branches:
            chosen = np.broadcast_to(condition, (1, self.T))[0]
            if chosen.all() and len(np.unique(self.threads // WARPGROUP)) == 1:
                yield from function(self, *arguments)  # the strand goes this way as a whole
                return
            for cut in _runs(chosen, self.threads):
                key = self.number, cut.start, cut.stop
                number = self.machine.forked.setdefault(key, 0)
                child = type(self)(self.machine, self.block_ids, self.threads[cut], self.first, number)
                self.machine.forked[key] = child.number
                self.give_knowledge(child)
                self.give_stores(child)
                self.give_copies(child, cut)
                child.parent = self
                # slices, not copies: the registers of the parent are those of the child
                passed = [self._cut(argument, cut) for argument in arguments]
                children.append((child, function(child, *passed)))
        self.new_epoch()

        def ended(child: Any) -> None:
            self.take_knowledge(child)
            child.give_stores(self)
            self.take_copies(child)
            self.take_products(child)

        for blocked in in_turns(children, self.machine.backwards, ended):
            yield wait_of_all(blocked)

    def run_apart(self, function: Any, conditions: tuple[Any, ...], size: int, arguments: tuple[Any, ...]) -> Any:
        """Run a function as a fork whose branches are the classes of threads for whom the same conditions hold.

        size: so many neighbouring threads stay together.
        """
        held = np.stack([np.broadcast_to(condition, (1, self.T))[0] for condition in conditions])
        units = self.threads // size
        signs = [held[:, units == unit] for unit in np.unique(units)]
        kinds = [one[:, :1].tobytes() if (one == one[:, :1]).all() else one.tobytes() + b"mixed" for one in signs]
        numbers = [kinds.index(kind) for kind in kinds]
        of_thread = np.array(numbers)[np.searchsorted(np.unique(units), units)]
        return self.fork(tuple((function, of_thread == one, arguments) for one in dict.fromkeys(numbers)))

    def _cut(self, argument: Any, cut: slice) -> Any:
        if isinstance(argument, Bounds):
            return argument.cut(lambda part: self._cut(part, cut))
        whole = isinstance(argument, np.ndarray) and argument.ndim and argument.shape[-1] == self.T and self.T > 1
        return argument[..., cut] if whole else argument


def _missing(barrier: MBarrier, name: str) -> Lack:
    """What keeps a phase from ending."""
    if barrier.bytes < 0:
        text = f"the barrier `{name}`, which {-barrier.bytes} bytes more have reached than were announced to it"
        return Lack(text, frozenset((UNKNOWN_BYTES,)))
    if barrier.bytes and barrier.pending <= 0:
        text = f"{barrier.bytes} bytes at the barrier `{name}` that no copy brings"
        return Lack(text, frozenset((MISSING_BYTES,)))
    missing = f"{barrier.pending} of {barrier.count} arrivals"
    if barrier.bytes:
        missing += f" and {barrier.bytes} bytes"
    if not barrier.surplus:
        return Lack(f"{missing} at the barrier `{name}`")
    more = f"where {barrier.surplus + barrier.count} arrived at once in a phase that counts {barrier.count}"
    return Lack(f"{missing} at the barrier `{name}`, {more}", frozenset((SURPLUS,)))


def _runs(chosen: np.ndarray, threads: np.ndarray) -> list[slice]:
    """Contiguous runs of chosen lanes, cut at warpgroups."""
    lanes = np.flatnonzero(chosen)
    if not len(lanes):
        return []
    groups = threads[lanes] // WARPGROUP
    breaks = np.flatnonzero((np.diff(lanes) != 1) | (np.diff(groups) != 0)) + 1
    return [slice(int(part[0]), int(part[-1]) + 1) for part in np.split(lanes, breaks)]
