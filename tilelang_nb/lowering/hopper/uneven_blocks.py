"""Blocks that stay where works differ in length, as those of an attention with a causal mask: the longest start first.

A block that has made one work then begins the next at once: its tiles have arrived, and no block has to start.  Works
are dealt out by length, so that all blocks have about as much to do, and of some rows of the grid at a time: those
share what they read (the heads of an attention their keys).  On an H200 causal attention gains 7 %.  Works of one
length stay blocks of their own: the device starts the next where one has ended, which is as fast.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tvm import tirx as tir

from tilelang_nb.language.tile_program import operation_name

from ..block_lengths import growth
from ..context import LaunchContext
from ..launches import THREAD_EXTENT
from ..pipelines import Pipeline
from ..rewrite import constant, dtype_of, each_statement, statements
from .persistent import BLOCKS, COUNT, MULTIPROCESSORS, Persistent

TOGETHER = 8  # rows of the grid
FEWEST = 4  # works for each block
TAGS = ("blockIdx.x", "blockIdx.y", "blockIdx.z")


@dataclass(frozen=True)
class LongestFirst(Persistent):
    """change: 1 where the last blocks along the first axis have the most turns, -1 where the first ones have."""

    change: int = 1

    def _indices(self, work: Any) -> list[Any]:
        width, *others = (int(axis.value) for axis in self.axes)
        rows = 1
        for extent in others:
            rows *= extent
        together = min(TOGETHER, rows)
        group, inside = tir.floordiv(work, width * together), tir.floormod(work, width * together)
        height: Any = together
        if rows % together:
            height = tir.min(tir.const(together, "int32"), rows - group * together)
        step, row = tir.floordiv(inside, height), group * together + tir.floormod(inside, height)
        first = width - 1 - step if self.change > 0 else step
        return [first, row] if len(others) == 1 else [first, tir.floormod(row, others[0]), tir.floordiv(row, others[0])]


def longest_first(function: Any, plans: tuple[Pipeline, ...], launch: LaunchContext) -> LongestFirst | None:
    """How blocks of different lengths stay; None where they do not differ, are few, or meet others by atomics."""
    option = launch.options.get(BLOCKS)
    axes: dict[str, Any] = {}
    single: list[Any] = []
    node = function.body
    while isinstance(node, tir.AttrStmt) and node.attr_key == THREAD_EXTENT:
        tag = str(node.node.thread_tag)
        if tag.startswith("blockIdx"):
            if constant(node.value) == 1 and tag != TAGS[0]:
                single.append(node.node.var)
            else:
                axes[tag] = node
        node = node.body
    found = [axes[tag] for tag in TAGS if tag in axes]
    if len(found) < 2 or TAGS[0] not in axes or any(constant(axis.value) is None for axis in found):
        return None
    if any(dtype_of(axis.node.var) != "int32" for axis in found) or option == 0:
        return None
    if not all(any(one.same_as(plan.loop) for one in statements(node)) for plan in plans) or _meets_others(node):
        return None
    change = growth(node, found[0].node.var, int(found[0].value))
    blocks: Any = tir.Var(launch.fresh("multiprocessors"), "int32") if option is None else int(option)
    made = LongestFirst(blocks, tuple(found), tuple(single), TOGETHER, True, change=change)
    fewest = FEWEST * MULTIPROCESSORS if option is None else int(option)
    if change == 0 or made.works <= fewest:
        return None
    if option is None:
        launch.facts[COUNT] = blocks
    return made


def _meets_others(body: Any) -> bool:
    for node in each_statement(body):
        if isinstance(node, tir.While):
            return True
        value = getattr(node, "value", None)
        name = operation_name(value) if value is not None else None
        if name is not None and (name.startswith("atomic") or name == "sync_grid"):
            return True
    return False
