"""Blocks that stay where works differ in length, as those of an attention with a causal mask: the longest start first.

A block that has made one work then begins the next at once: its tiles have arrived, and no block has to start.  Works
are dealt out by length, and of some rows of the grid at a time: those share what they read (the heads of an attention
their keys).  How many rows is chosen so that all blocks have about as much to do; where no number does that, blocks
stay those of the text, which the device deals out as others end.  On an H200 causal attention gains 7 %.  Works of one
length stay blocks of their own, too: that is as fast.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from tvm import tirx as tir

from tilelang_nb.language.tile_program import operation_name

from ..block_lengths import growth, lengths, placed_by_length
from ..context import LaunchContext
from ..pipelines import Pipeline
from ..rewrite import constant, dtype_of, each_statement, statements
from .followed import work_of
from .persistent import BLOCKS, COUNT, MULTIPROCESSORS, Persistent, grid_axes

TOGETHER = range(2, 17)  # rows of the grid
FEWEST = 4  # works for each block
MOST_WORKS = 1 << 17
WIDEST = 512  # blocks along the first axis
START = 1.5  # turns of a loop that the start and the end of a work take as long as
# How much more than the mean a block may have to do, and how much on devices with other numbers of multiprocessors.
UNEVEN, ELSEWHERE, OTHERS = 1.02, 1.12, (114, 78)
TAGS = ("blockIdx.x", "blockIdx.y", "blockIdx.z")


@dataclass(frozen=True)
class LongestFirst(Persistent):
    """change: 1 where the last blocks along the first axis have the most turns, -1 where the first ones have.
    together: rows of the grid.
    """

    change: int = 1
    together: int = 1

    @property
    def order(self) -> str:
        return f"the longest first, those of {self.together} rows of the grid together"

    def _indices(self, work: Any) -> list[Any]:
        width, *others = (int(axis.value) for axis in self.axes)
        first, row = placed_by_length(work, width, math.prod(others), self.together, self.change)
        return [first, row] if len(others) == 1 else [first, tir.floormod(row, others[0]), tir.floordiv(row, others[0])]


def longest_first(function: Any, plans: tuple[Pipeline, ...], launch: LaunchContext) -> LongestFirst | None:
    """How blocks of different lengths stay; None where they do not differ, are few, or meet others by atomics."""
    option = launch.options.get(BLOCKS)
    axes, single = grid_axes(function.body, kept=TAGS[0])
    node = work_of(function.body)
    found = [axes[tag] for tag in TAGS if tag in axes]
    if len(found) < 2 or TAGS[0] not in axes or any(constant(axis.value) is None for axis in found):
        return None
    if any(dtype_of(axis.node.var) != "int32" for axis in found) or option == 0:
        return None
    if not all(any(one.same_as(plan.loop) for one in statements(node)) for plan in plans) or _meets_others(node):
        return None
    width, *others = (int(axis.value) for axis in found)
    change = growth(node, found[0].node.var, width)
    rows = math.prod(others)
    fewest = FEWEST * MULTIPROCESSORS if option is None else int(option)
    if change == 0 or width > WIDEST or not fewest < width * rows <= MOST_WORKS:
        return None
    turns = lengths([plan.loop for plan in plans], node, found[0].node.var, width)
    if turns is None:
        return None
    count = MULTIPROCESSORS if option is None else int(option)
    together = min(TOGETHER, key=lambda number: _unevenness(turns, rows, number, count))
    if option is None:
        if _unevenness(turns, rows, together, count) > UNEVEN:
            return None
        if any(_unevenness(turns, rows, together, other) > ELSEWHERE for other in OTHERS):
            return None
    blocks: Any = tir.Var(launch.fresh("multiprocessors"), "int32") if option is None else int(option)
    if option is None:
        launch.facts[COUNT] = blocks
    return LongestFirst(blocks, tuple(found), single, together, True, change=change, together=together)


def _unevenness(turns: list[int], rows: int, together: int, blocks: int) -> float:
    """What the busiest block has to do, by the mean.  turns: of works, by their place along the first axis."""
    longest = sorted(turns, reverse=True)
    together = min(together, rows)
    heights = [together] * (rows // together) + ([rows % together] if rows % together else [])
    work = np.concatenate([np.repeat(longest, height) for height in heights]) + START
    padded = np.zeros(-(-len(work) // blocks) * blocks)
    padded[: len(work)] = work
    done = padded.reshape(-1, blocks).sum(axis=0)
    return float(done.max() / done.mean())


def _meets_others(body: Any) -> bool:
    for node in each_statement(body):
        if isinstance(node, tir.While):
            return True
        value = getattr(node, "value", None)
        name = operation_name(value) if value is not None else None
        if name is not None and (name.startswith("atomic") or name == "sync_grid"):
            return True
    return False
