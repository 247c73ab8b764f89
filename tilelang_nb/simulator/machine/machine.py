"""What the strands of the blocks in flight share: shared memory, barriers, shadow memories, limits."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

import numpy as np

from ..translation.inspection import evaluate
from ..translation.values import Site
from .asking import Alarms, places_of
from .barriers import WARPGROUP
from .block_order import Meetings
from .requests import Counting
from .shadow import SITE, Epochs, Shadow
from .waits import Deadlock, Lack, Wait, in_turns, joined

REGISTERS = 65536  # of a multiprocessor
MOST_REGISTERS = 255  # of a thread
BANK_LINE = 1024  # the shared window of a block is a multiple of this, so that every view of it is aligned


class Stopped(Exception):
    """The launch has ended early because an assertion failed; that is among the findings."""


class StepLimit(Exception):
    """More loop turns than the limit."""

    def __init__(self, site: int):
        super().__init__("step limit")
        self.site = site


class GlobalArray:
    """A global array as flat memory.

    data: 1-D view in elements.  shadow: who wrote and read what, shared by the batches of a launch, or None.
    """

    def __init__(self, name: str, data: np.ndarray, shadow: Shadow | None, first: int = 0):
        self.name, self.data, self.shadow, self.first = name, data, shadow, first


class Machine:
    """The blocks in flight.

    threads: of one block.  block, grid: extents by axis.  granule: bytes per entry of the shared shadow.
    ranks: blocks of a cluster; windows of shared memory are those of all first blocks, then of all second ones.
    backwards: the last parts of a fork run first.
    progress: told the number of an outer loop and which part of its turns is done.
    """

    def __init__(
        self,
        *,
        block: dict[str, int],
        grid: dict[str, int],
        blocks: int,
        shared_bytes: int,
        granule: int,
        sites: list[Site],
        details: dict[int, Any],
        checks: bool,
        findings: Any,
        counters: Counting,
        steps: int,
        epochs: Epochs,
        meetings: Meetings,
        printed: list[str],
        sizes: dict[Any, int],
        ranks: int = 1,
        backwards: bool = False,
        watched: bool = False,
        progress: Callable[[int, float], None] | None = None,
    ):
        self.block, self.grid, self.sites, self.details, self.checks = block, grid, sites, details, checks
        self.threads = int(np.prod(list(block.values()), initial=1))
        self.findings, self.counters, self.epochs, self.granule = findings, counters, epochs, granule
        self.meetings = meetings
        self.atomic_sites = np.array([site.atomic for site in sites] or [False])
        if len(self.atomic_sites) > SITE:  # those beyond have one number
            self.atomic_sites[SITE] = self.atomic_sites[SITE:].all()
        self.watched, self.changes = watched, 0  # stores that changed memory, counted where somebody may wait for one
        self.alarms = Alarms()
        self.stride = max(-(-shared_bytes // BANK_LINE) * BANK_LINE, BANK_LINE)
        self.memory = np.zeros(blocks * self.stride, np.uint8)
        self.views: dict[Any, np.ndarray] = {}
        self.shared_shadow = Shadow(blocks * self.stride // granule, False) if checks and shared_bytes else None
        self.mbarriers: dict[tuple[int, int], Any] = {}
        self.named: dict[tuple[int, int], Any] = {}
        self.clusters: dict[int, Any] = {}  # number of a cluster in flight -> its barrier
        self.engines: dict[int, int] = {}  # address of an mbarrier -> the strand that its copies count as
        self.registers: dict[int, dict[int, int]] = {}  # block -> warp group -> registers of each of its threads
        self.nobody = np.zeros((1, 1), np.bool_)
        self.strands = 0
        self.forked: dict[tuple[int, int, int], int] = {}  # strand and lanes -> the strand that they were last
        self.all_strands: list[Any] = []
        self.steps, self.printed, self.sizes = steps, printed, sizes
        self.stopped, self.progress = Stopped(), progress
        self.ranks, self.in_flight = ranks, blocks // ranks  # blocks of a cluster; clusters
        self.backwards = backwards

    def changed(self, memory: np.ndarray, index: Any) -> None:
        """Elements of a memory have other values now."""
        self.changes += 1
        if self.alarms:
            self.alarms.ring(places_of(memory, index))

    def much_changed(self) -> None:
        """Nobody says which elements have other values now."""
        self.changes += 1
        self.alarms.ring_all()

    def new_strand(self) -> int:
        self.strands += 1
        return self.strands

    def engine_of(self, address: int) -> int:
        """The strand that stands for the copies which count at an mbarrier."""
        if address not in self.engines:
            self.engines[address] = self.new_strand()
        return self.engines[address]

    def is_engine(self, strand: int) -> bool:
        """Does a strand stand for copies?"""
        return strand in self.engines.values()

    @property
    def register_pool(self) -> int:
        """Registers that a block starts with, over all of its threads."""
        each = min(REGISTERS // max(self.threads, 1), MOST_REGISTERS) // 8 * 8
        return each * self.threads

    @property
    def registers_at_first(self) -> int:
        """Of each thread."""
        return self.register_pool // max(self.threads, 1)

    @property
    def registers_to_spare(self) -> bool:
        """Are there more than the threads of a block can have?"""
        return REGISTERS // max(self.threads, 1) > MOST_REGISTERS

    def registers_of(self, block: int) -> dict[int, int]:
        """Registers of each thread by warp group."""
        groups = -(-self.threads // WARPGROUP)
        each = self.registers_at_first
        return self.registers.setdefault(block, dict.fromkeys(range(groups), each))

    def view(self, dtype: Any) -> np.ndarray:
        """All shared memory as one flat array of a type."""
        if dtype not in self.views:
            self.views[dtype] = self.memory.view(dtype)
        return self.views[dtype]

    def extent(self, expression: Any) -> int:
        """An extent of a buffer as a number."""
        return evaluate(expression, self.sizes)

    def take_steps(self, count: int, site: int) -> None:
        self.steps -= count
        if self.steps < 0:
            raise StepLimit(site)

    def end(self) -> None:
        """The launch is over: stores that nobody waited for end, loads must have landed."""
        for strand in self.all_strands:
            strand.finish_stores()
        for barrier in self.mbarriers.values():
            for load in barrier.flying:
                self.findings.never_landed(load.site, 1)

    def run_together(self, strands: list[tuple[Any, Generator[Wait, None, None]]]) -> None:
        """Drive blocks that wait for each other, each rank or block as a strand, until all have ended."""
        for blocked in in_turns(strands, self.backwards, lambda _: None, self.alarms):
            raise Deadlock(joined(blocked, lambda strand, text, told: strand.of_block(text, told)), blocked[0][1].site)

    def run(self, generator: Generator[Wait, None, None]) -> None:
        """Drive the first strand; what it waits for can only come from itself."""
        for wait in generator:
            if not wait.ready():
                lack = wait.said()
                raise Deadlock(lack if wait.told else Lack(f"all wait for {lack.text}", lack.kinds), wait.site)
