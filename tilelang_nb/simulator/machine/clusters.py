"""Clusters of blocks: their barrier, and accesses to the shared memory of another block.

Each rank of the clusters in flight is a strand, so that what one block does is ordered with what another one does by
barriers alone.  A copy into another block reads its source when the other block waits for it, as late as allowed.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .tensor_copies import CHUNK
from .waits import CLUSTER, Lack, Wait

Array = Any
NEVER = -1


@dataclass
class ClusterBarrier:
    """arrived: threads of this phase.  generation: phases that are over.  opened: what those who came to the last two
    phases knew, by parity.  phases: of each thread of each rank, the phase that it arrived in and has not waited for.
    """

    phases: Array
    arrived: int = 0
    generation: int = 0
    known: dict[int, int] = field(default_factory=dict)
    opened: dict[int, dict[int, int]] = field(default_factory=dict)


@dataclass
class BlockCopy:
    """A bulk copy into another block under way: as `TensorLoad`.  source: chunks; records: who had written them."""

    chunks: Array
    source: Array
    bytes: int
    cells: Array | None
    codes: Array | None
    from_cells: Array | None
    records: Array | None
    site: int
    read_site: int

    def fetched(self, strand: Any) -> Array:
        """The bytes of the source, now."""
        if self.from_cells is not None:
            strand.check_unchanged(self.from_cells, self.records, self.read_site, "a copy into another block")
        return strand.machine.view(np.complex128)[self.source].view(np.uint8)


class Clusters:
    """Part of a strand."""

    @property
    def rank(self) -> int:
        """The number of the strand's blocks in their clusters."""
        return int(self.first // self.machine.in_flight)

    def window_at(self, block: Array, rank: Array) -> Array:
        """The window of the block of a rank in the same cluster as the strand's block at a position."""
        return np.asarray(block) + np.asarray(rank) * self.machine.in_flight

    def windows_of(self, block: int, mask: int, site: int) -> list[int]:
        """Those of the blocks whose bits are set; the own one for none."""
        if not mask:
            return [block + self.first]
        return [int(self.window_at(block, rank)) for rank in range(self.machine.ranks) if mask >> rank & 1]

    def of_block(self, text: str, told: bool) -> str:
        """What the first of the strand's blocks waits for."""
        block = self.coordinates(int(self.codes[0, 0]))[0]
        return f"block {block}: {text if told else f'all wait for {text}'}"

    def _rank_inside(self, rank: int, site: int, block: int) -> bool:
        if 0 <= rank < self.machine.ranks:
            return True
        where = self.coordinates(int(self.codes[block, 0]))
        self.findings.outside_cluster(site, where, rank, self.machine.ranks)
        return False

    # ---- the barrier ----
    def _cluster(self, block: int) -> ClusterBarrier:
        found: ClusterBarrier | None = self.machine.clusters.get(block)
        if found is None:
            phases = np.full((self.machine.ranks, self.machine.threads), NEVER)
            found = self.machine.clusters[block] = ClusterBarrier(phases)
        return found

    def _taking_part(self, mask: Array) -> Array:
        return np.broadcast_to(True if mask is None else mask, (self.B, self.T))

    def _out_of_turn(self, block: int, threads: Array, site: int, again: bool) -> None:
        """Report threads that arrive again, or wait without having arrived."""
        if self.machine.checks and len(threads):
            code = int(self.block_ids[block]) * self.machine.threads + int(threads[0]) + 1
            self.findings.cluster_out_of_turn(site, self.coordinates(code), again, len(threads))

    def cluster_arrive(self, mask: Array, site: int) -> None:
        """barrier.cluster.arrive"""
        lanes = self._taking_part(mask)
        for block in range(self.B):
            mine = self.threads[lanes[block]]
            if not len(mine):
                continue
            barrier = self._cluster(block)
            self._release(barrier.known)
            again = barrier.phases[self.rank, mine] != NEVER
            self._out_of_turn(block, mine[again], site, True)
            mine = mine[~again]  # an arrival too many tells nobody anything
            barrier.phases[self.rank, mine] = barrier.generation
            barrier.arrived += len(mine)
            if barrier.arrived >= self.machine.ranks * self.machine.threads:
                barrier.opened[barrier.generation & 1] = dict(barrier.known)
                barrier.arrived = 0
                barrier.generation += 1

    def cluster_wait(self, mask: Array, site: int) -> Generator[Wait, None, None]:
        """barrier.cluster.wait: until the phase that the threads arrived in is over."""
        lanes = self._taking_part(mask)
        mine = []
        for block in range(self.B):
            threads = self.threads[lanes[block]]
            if not len(threads):
                continue
            barrier = self._cluster(block)
            phases = barrier.phases[self.rank, threads]
            self._out_of_turn(block, threads[phases == NEVER], site, False)
            barrier.phases[self.rank, threads] = NEVER
            mine.append((barrier, int(phases.max())))

        def ready() -> bool:
            return all(barrier.generation > phase for barrier, phase in mine)

        def said() -> Lack:
            barrier = next(barrier for barrier, phase in mine if barrier.generation <= phase)
            all_threads = self.machine.ranks * self.machine.threads
            text = f"the barrier of the cluster: {barrier.arrived} of {all_threads} threads have arrived"
            return Lack(text, frozenset((CLUSTER,)))

        while not ready():
            yield Wait(ready, said, site)
        for barrier, phase in mine:
            if phase != NEVER:
                self._acquire(barrier.opened[phase & 1])
        self._order_own()

    # ---- barriers of other blocks ----
    def arrive_at_block(self, address: Array, rank: Array, mask: Array, site: int, size: Array = 0) -> None:
        """mbarrier.arrive there.  size: bytes that are announced."""
        for block, lanes, at, to, count in self.members(mask, address, rank, size):
            if not self._rank_inside(to, site, block):
                continue
            barrier = self._mbarrier_at(int(self.window_at(block, to)), at, site)
            barrier.bytes += count * lanes
            self._release(barrier.known, self._warps(mask, block))
            barrier.arrive(lanes)

    # ---- memory of other blocks ----
    def store_at_block(self, dtype: Any, address: Array, value: Array, rank: Array, mask: Array, site: int) -> None:
        """An ordinary store there.  address: bytes in the window of the block."""
        machine, itemsize = self.machine, np.dtype(dtype).itemsize
        shape = self.shape_of(address, value, rank, *(() if mask is None else (mask,)))
        lanes = np.broadcast_to(True if mask is None else mask, shape)
        ranks = np.broadcast_to(rank, shape)
        beyond = lanes & ((ranks < 0) | (ranks >= machine.ranks))
        if beyond.any():
            position = tuple(int(axis[0]) for axis in np.nonzero(beyond))
            self._rank_inside(int(ranks[position]), site, position[-2])
            lanes = lanes & ~beyond
        window = np.broadcast_to(self.window_at(self.block_column, ranks), shape)
        at = (np.broadcast_to(address, shape) // itemsize + window * (machine.stride // itemsize))[lanes]
        values, memory = np.broadcast_to(value, shape)[lanes], machine.view(dtype)
        if not machine.checks:
            memory[at] = values
            return
        self.counters.count("store into another block", int(lanes.sum()))
        codes = np.broadcast_to(self.codes, shape)[lanes]
        self._write(machine.shared_shadow, memory, at, at, values, codes, site, itemsize // machine.granule)

    def copy_to_block(
        self, target: Array, source: Array, size: Array, barrier: Array, rank: Array, mask: Array,
        sites: tuple[int, int, int],
    ) -> None:  # fmt: skip
        """cp.async.bulk into the other block.  sites: of the write, the read and the barrier."""
        machine = self.machine
        for block, lanes, to, at, count, bar, where in self.members(mask, target, source, size, barrier, rank):
            if not self._rank_inside(where, sites[0], block):
                continue
            if to % CHUNK or at % CHUNK:
                self.misaligned(sites[0] if to % CHUNK else sites[1], CHUNK, np.broadcast_to(True, (self.B, self.T)))
            window = int(self.window_at(block, where))
            waiting = self._mbarrier_at(window, bar, sites[2])
            chunks = np.arange(to, to + count, CHUNK) + window * machine.stride >> 4
            read = np.arange(at, at + count, CHUNK) + (block + self.first) * machine.stride >> 4
            copy = BlockCopy(chunks, read, count * lanes, None, None, None, None, sites[0], sites[1])
            if machine.checks:
                shadow = machine.shared_shadow
                copy.from_cells = self._cells_of(read)
                code = shadow.many_of(self)[block]
                shadow.read(self, copy.from_cells, np.broadcast_to(code, copy.from_cells.shape), sites[1], True)
                self.check_proxy(copy.from_cells, sites[1])
                copy.records = shadow.writes[copy.from_cells]
                copy.cells = self._cells_of(chunks)
                copy.codes = np.broadcast_to(code, copy.cells.shape)
                self.check_overwritten(copy.cells, copy.codes, sites[0])
                shadow.copy_departed(self, copy.cells, copy.codes, sites[0])
                self.counters.count("copy into another block", lanes)
            waiting.flying.append(copy)
