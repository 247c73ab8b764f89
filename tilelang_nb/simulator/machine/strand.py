"""A strand: threads of all blocks in flight that run in lockstep, and the masks that tell which of them take part.

The grid in flight starts as one strand; a fork makes one per role.  Masks are None (all lanes), False (none) or an
array of booleans that broadcasts to (..., blocks, threads).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .asking import Questions
from .asynchronous import AsynchronousCopies
from .barriers import Barriers
from .block_order import BlockOrder
from .clusters import Clusters
from .edges import Edges
from .knowledge import Knowledge, Known
from .matrices import MatrixInstructions
from .memory import MemoryAccess
from .messages import Messages
from .named_barriers import NamedBarriers
from .proxies import Proxies
from .registers import Registers
from .repetition import Repetition
from .tensor_copies import TensorCopies
from .undefined import UndefinedArithmetic
from .warpgroups import WarpGroups
from .warps import Warps

Mask = Any


class Strand(
    Registers, MemoryAccess, Warps, MatrixInstructions, AsynchronousCopies, TensorCopies, Proxies, WarpGroups,
    Knowledge, Barriers, NamedBarriers, BlockOrder, Questions, Clusters, Messages, UndefinedArithmetic, Edges,
):  # fmt: skip
    """block_ids: linear numbers of the blocks.  threads: linear numbers inside a block, ascending and contiguous.

    first: which window of shared memory is that of the first block; those of the others follow it.  number: that of an
    earlier strand of the same threads, 0 for none.
    """

    def __init__(self, machine: Any, block_ids: np.ndarray, threads: np.ndarray, first: int = 0, number: int = 0):
        self.machine, self.findings, self.counters = machine, machine.findings, machine.counters
        self.block_ids, self.threads = block_ids, threads
        self.B, self.T = len(block_ids), len(threads)
        self.block_column = np.arange(self.B, dtype=np.intp)[:, None]
        self.first, self.window_column = first, self.block_column + first
        self.thread_row = np.arange(self.T, dtype=np.intp)
        # a number of each thread over the whole grid, from 1: what the shadow memories remember
        self.codes = block_ids.astype(np.int64)[:, None] * machine.threads + threads + 1
        self.number = number or machine.new_strand()
        machine.all_strands.append(self)
        self.seen: Known = {}
        self.shares = []
        self.open_copies, self.groups = [], []
        self.stores = {}
        self.noted = None
        self.open_products, self.product_groups = [], []
        self.parent, self.children = None, []
        self.new_epoch()

    # ---- indices ----
    def thread_index(self, axis: str) -> np.ndarray:
        x, y = self.machine.block.get("x", 1), self.machine.block.get("y", 1)
        t = self.threads
        return {"x": t % x, "y": t // x % y, "z": t // (x * y)}[axis].astype(np.int32)[None, :]

    def block_index(self, axis: str) -> np.ndarray:
        x, y = self.machine.grid.get("x", 1), self.machine.grid.get("y", 1)
        b = self.block_ids
        return {"x": b % x, "y": b // x % y, "z": b // (x * y)}[axis].astype(np.int32)[:, None]

    def shape_of(self, *parts: Any) -> tuple[int, ...]:
        """The common shape of parts that each broadcast to the lanes."""
        return np.broadcast_shapes((self.B, self.T), *(np.shape(part) for part in parts))

    def lane_count(self, mask: Mask) -> int:
        """How many lanes take part, over all vector axes of the mask."""
        if mask is None:
            return self.B * self.T
        total = int(np.prod(self.shape_of(mask)))
        return int(np.count_nonzero(mask)) * (total // mask.size)

    # ---- masks ----
    def both(self, mask: Mask, condition: Any) -> Mask:
        if mask is not None:
            condition = mask & condition
        if condition.all():
            return None
        return condition if condition.any() else False

    def without(self, mask: Mask, condition: Any) -> Mask:
        return self.both(mask, np.logical_not(condition))

    def lanes_with(self, mask: Mask, condition: Any) -> Mask:
        """As `both`, for expressions, which have no suite to skip: an empty mask stays an array."""
        if not isinstance(condition, np.ndarray):
            return mask if condition else self.machine.nobody
        result = self.both(mask, condition)
        return self.machine.nobody if result is False else result

    def lanes_without(self, mask: Mask, condition: Any) -> Mask:
        return self.lanes_with(mask, np.logical_not(condition) if isinstance(condition, np.ndarray) else not condition)

    def plus(self, lanes: Mask, mask: Mask) -> Mask:
        if lanes is None or mask is None:
            return None
        return mask if lanes is False else lanes | mask

    def minus(self, mask: Mask, lanes: Mask) -> Mask:
        if mask is False or lanes is None:
            return False
        return mask if lanes is False else self.both(mask, ~lanes)

    def most_turns(self, turns: np.ndarray, mask: Mask) -> int:
        """The largest trip count of the lanes that take part."""
        return int(np.max(turns if mask is None else np.where(mask, turns, 0), initial=0))

    # ---- steps ----
    def take_step(self, site: int) -> None:
        self.machine.take_steps(1, site)

    def take_steps(self, count: int, site: int) -> None:
        self.machine.take_steps(count, site)

    def turns_of(self, site: int) -> Repetition:
        """What watches the turns of a loop that only its own registers can end."""
        return Repetition(site)

    def take_turn(self, loop: int, done: int, turns: int) -> None:
        """A turn of an outer loop begins."""
        if self.machine.progress is not None:
            self.machine.progress(loop, done / max(turns, 1))

    def count_operations(self, tally: int, repeats: int, mask: Mask) -> None:
        lanes = self.lane_count(mask)
        if mask is not None and mask.ndim > 2:  # the mask has the vector axes itself
            repeats = max(repeats // int(np.prod(mask.shape[:-2])), 1)
        self.counters.tallies[tally] += lanes * repeats
