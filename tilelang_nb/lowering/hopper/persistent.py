"""Blocks that stay: as many as the device has multiprocessors, each of which does the work of several of the text's.

The copying role then fills tiles of the next work while the others still store results.  Works are dealt out in bands
of some rows of blocks, walked column by column and back again in the next band, so that those under way at one time
share rows and columns in the second-level cache.  The indices of blocks keep their meaning; what there is to see of it
is the size of the grid.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tvm import tirx as tir
from tvm.ir import Range

from tilelang_nb.language.tile_program import operation_name, read

from ..launches import THREAD_EXTENT
from ..pipelines import Pipeline
from ..rewrite import Load, constant, dtype_of, has, nothing, sequence, statements, variables

BLOCKS = "tl.persistent_blocks"  # the option: how many blocks stay, 0 for none
MULTIPROCESSORS = 132
BAND = 16  # rows of blocks
AXES = ("blockIdx.x", "blockIdx.y")


@dataclass(frozen=True)
class Persistent:
    """blocks: that stay.  turn: variable of the loop over works.  across, along: axes (AttrStmt) of columns and rows of
    a band, or None where the grid has one axis.  band: rows.
    """

    blocks: int
    axes: tuple[Any, ...]
    band: int
    rows_along_y: bool
    turn: Any = field(default_factory=lambda: tir.Var("turn", "int32"))
    block: Any = field(default_factory=lambda: tir.Var("block", "int32"))

    @property
    def works(self) -> int:
        total = 1
        for axis in self.axes:
            total *= int(axis.value)
        return total

    def axis(self) -> tuple[Any, Any]:
        """The one axis of the launch, and its extent."""
        extent = tir.const(self.blocks, "int32")
        return tir.IterVar(Range(0, extent), self.block, tir.IterVar.ThreadIndex, AXES[0]), extent

    def loop(self, body: Any, turn: Any, rename: Any, span: Any) -> Any:
        """The body once for each work of a block.  rename: what a variable of the text is called in it."""
        count = tir.floordiv(tir.const(self.works - 1, "int32") - self.block, self.blocks) + 1
        work = tir.Var("work", "int32")
        parts = [tir.Bind(work, self.block + turn * self.blocks, span)]
        for axis, index in zip(self.axes, self._indices(work)):
            parts.append(tir.Bind(rename(axis.node.var), index, span))
        inner = sequence([*parts, body], span)
        return tir.For(turn, tir.const(0, "int32"), count, tir.ForKind.SERIAL, inner, annotations={}, span=span)

    def _indices(self, work: Any) -> list[Any]:
        if len(self.axes) == 1:
            return [work]
        x, y = (int(axis.value) for axis in self.axes)
        across, along = (x, y) if self.rows_along_y else (y, x)
        number = tir.floordiv(work, across * self.band)
        inside = tir.floormod(work, across * self.band)
        height: Any = self.band
        if along % self.band:
            height = tir.min(tir.const(self.band, "int32"), along - number * self.band)
        forward = tir.floordiv(inside, height)
        column = tir.Select(tir.EQ(tir.floormod(number, 2), 0), forward, across - 1 - forward)
        row = number * self.band + tir.floormod(inside, height)
        return [column, row] if self.rows_along_y else [row, column]


def persistent(function: Any, plans: tuple[Pipeline, ...], options: Any) -> Persistent | None:
    """How blocks stay; None where the grid is small or known at the launch only, or works differ in their loops.

    plans: of loops that stand directly in the launch.
    """
    blocks = int(options.get(BLOCKS, MULTIPROCESSORS))
    axes: dict[str, Any] = {}
    node = function.body
    while isinstance(node, tir.AttrStmt) and node.attr_key == THREAD_EXTENT:
        if str(node.node.thread_tag).startswith("blockIdx") and constant(node.value) != 1:
            axes[str(node.node.thread_tag)] = node
        node = node.body
    extents = [constant(axis.value) for axis in axes.values()]
    if not axes or any(tag not in AXES for tag in axes) or any(extent is None for extent in extents):
        return None
    if any(dtype_of(axis.node.var) != "int32" for axis in axes.values()):
        return None
    mine = {axis.node.var for axis in axes.values()}
    top = statements(node)
    for plan in plans:
        if not any(one.same_as(plan.loop) for one in top) or mine & variables(plan.loop.extent):
            return None
        if has(plan.loop.extent, Load):
            return None
    band, rows_along_y = BAND, True
    for one in top:
        if isinstance(one, tir.Evaluate) and operation_name(one.value) == "use_swizzle":
            hint = read(one.value, one.span)
            if hint.boolean("enable"):
                band, rows_along_y = max(hint.integer("panel_size"), 1), hint["order"] == "row"
    found = Persistent(blocks, tuple(axes[tag] for tag in AXES if tag in axes), band, rows_along_y)
    return found if 0 < blocks < found.works else None


def without_hint(node: Any) -> Any:
    """Works are in their order: nothing is left for T.use_swizzle to say."""
    hint = isinstance(node, tir.Evaluate) and operation_name(node.value) == "use_swizzle"
    return nothing(node.span) if hint else node
