"""Blocks that stay: as many as the device has multiprocessors, each of which does the work of several of the text's.

The copying role then fills tiles of the next work while the others still store results.  Works are dealt out in bands
of some rows of blocks, walked column by column and back again in the next band, so that those under way at one time
share rows and columns in the second-level cache.  The indices of blocks keep their meaning; what there is to see of it
is the size of the grid.  The host says how many multiprocessors there are when it launches.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tvm import tirx as tir
from tvm.ir import Range

from tilelang_nb.language.tile_program import read, statement_name

from ..context import LaunchContext
from ..launches import THREAD_EXTENT
from ..pipelines import Pipeline
from ..rewrite import Load, constant, dtype_of, has, nothing, sequence, statements, variables
from .followed import work_of

BLOCKS = "tl.persistent_blocks"  # the option: how many blocks stay, 0 for none; without it as the device has
MULTIPROCESSORS = 132  # of most devices that this is for, and of the simulated one
BAND = 16  # rows of blocks
AXES = ("blockIdx.x", "blockIdx.y")
COUNT = "tl.multiprocessors"  # attribute of a launch: its parameter that the host gives their number


@dataclass(frozen=True)
class Persistent:
    """blocks: that stay, at most; a number, or the parameter that the host fills in.  axes: AttrStmts of the grid;
    single: variables of those that have one block.  band: rows.
    """

    blocks: Any
    axes: tuple[Any, ...]
    single: tuple[Any, ...]
    band: int
    rows_along_y: bool
    turn: Any = field(default_factory=lambda: tir.Var("turn", "int32"))
    block: Any = field(default_factory=lambda: tir.Var("block", "int32"))

    @property
    def works(self) -> Any:
        """How many there are: a number where it is known."""
        total: Any = 1
        for axis in self.axes:
            total = total * _number(axis.value)
        return total

    @property
    def most_turns(self) -> int | None:
        """Works of a block on a device with as many multiprocessors as most have; None where arguments decide."""
        works, blocks = self.works, self.blocks if isinstance(self.blocks, int) else MULTIPROCESSORS
        return -(-works // blocks) if isinstance(works, int) else None

    @property
    def order(self) -> str:
        """In which order they do works, for people to read; "" for bands."""
        return ""

    def axis(self) -> tuple[Any, Any]:
        """The one axis of the launch, and its extent."""
        extent = tir.const(self.blocks, "int32") if isinstance(self.blocks, int) else tir.min(self.blocks, self._works)
        return tir.IterVar(Range(0, extent), self.block, tir.IterVar.ThreadIndex, AXES[0]), extent

    @property
    def _works(self) -> Any:
        works = self.works
        return tir.const(works, "int32") if isinstance(works, int) else works

    def loop(self, body: Any, turn: Any, rename: Any, span: Any) -> Any:
        """The body once for each work of a block.  rename: what a variable of the text is called in it."""
        count = tir.floordiv(self._works - 1 - self.block, self.blocks) + 1
        work = tir.Var("work", "int32")
        parts = [tir.Bind(work, self.block + turn * self.blocks, span)]
        for axis, index in zip(self.axes, self._indices(work)):
            parts.append(tir.Bind(rename(axis.node.var), index, span))
        for variable in self.single:
            parts.append(tir.Bind(rename(variable), tir.const(0, dtype_of(variable)), span))
        inner = sequence([*parts, body], span)
        return tir.For(turn, tir.const(0, "int32"), count, tir.ForKind.SERIAL, inner, annotations={}, span=span)

    def variables(self) -> list[Any]:
        """Those of the grid, in the text."""
        return [*(axis.node.var for axis in self.axes), *self.single]

    def _indices(self, work: Any) -> list[Any]:
        if len(self.axes) == 1:
            return [work]
        x, y = (_number(axis.value) for axis in self.axes)
        across, along = (x, y) if self.rows_along_y else (y, x)
        number = tir.floordiv(work, across * self.band)
        inside = tir.floormod(work, across * self.band)
        height: Any = self.band
        if not isinstance(along, int) or along % self.band:
            height = tir.min(tir.const(self.band, "int32"), along - number * self.band)
        forward = tir.floordiv(inside, height)
        column = tir.Select(tir.EQ(tir.floormod(number, 2), 0), forward, across - 1 - forward)
        row = number * self.band + tir.floormod(inside, height)
        return [column, row] if self.rows_along_y else [row, column]


def _number(extent: Any) -> Any:
    known = constant(extent)
    return extent if known is None else known


def grid_axes(body: Any, kept: str = "") -> tuple[dict[str, Any], tuple[Any, ...]]:
    """(AttrStmts of the axes of a launch by their tags, variables of those that have one block).

    kept: the tag of an axis that is among the first ones even with one block.
    """
    axes: dict[str, Any] = {}
    single: list[Any] = []
    while isinstance(body, tir.AttrStmt) and body.attr_key == THREAD_EXTENT:
        tag = str(body.node.thread_tag)
        if tag.startswith("blockIdx"):
            if constant(body.value) == 1 and tag != kept:
                single.append(body.node.var)
            else:
                axes[tag] = body
        body = body.body
    return axes, tuple(single)


def persistent(function: Any, plans: tuple[Pipeline, ...], launch: LaunchContext) -> Persistent | None:
    """How blocks stay; None where the grid is small, or works differ in their loops.

    plans: of loops that stand directly in the launch.
    """
    option = launch.options.get(BLOCKS)
    axes, single = grid_axes(function.body)
    if not axes or any(tag not in AXES for tag in axes):
        return None
    if any(dtype_of(axis.node.var) != "int32" or dtype_of(axis.value) != "int32" for axis in axes.values()):
        return None
    mine = {axis.node.var for axis in axes.values()}
    top = statements(work_of(function.body))
    for plan in plans:
        if not any(one.same_as(plan.loop) for one in top) or mine & variables(plan.loop.extent):
            return None
        if has(plan.loop.extent, Load):
            return None
    band, rows_along_y = BAND, True
    for one in top:
        if statement_name(one) == "use_swizzle":
            hint = read(one.value, one.span)
            if hint.boolean("enable"):
                band, rows_along_y = max(hint.integer("panel_size"), 1), hint["order"] == "row"
    blocks: Any = tir.Var(launch.fresh("multiprocessors"), "int32") if option is None else int(option)
    found = Persistent(blocks, tuple(axes[tag] for tag in AXES if tag in axes), single, band, rows_along_y)
    works = found.works
    if blocks == 0 or (isinstance(works, int) and works <= (MULTIPROCESSORS if option is None else blocks)):
        return None
    if option is not None and not isinstance(works, int):
        return None  # a fixed grid might be larger than the works
    if option is None:
        launch.facts[COUNT] = blocks
    return found


def pass_count(function: Any, launch: LaunchContext) -> Any:
    """A lowered launch; one whose blocks stay takes the number of multiprocessors as a parameter after its others."""
    count = launch.facts.get(COUNT)
    if count is None:
        return function
    parameters = [*function.params, count]
    made = tir.PrimFunc(parameters, function.body, function.ret_type, function.attrs, function.span)
    return made.with_attr(COUNT, count)


def count_of(function: Any) -> Any:
    """The parameter of a launch for the number of multiprocessors; None where it has none."""
    return function.attrs[COUNT] if function.attrs is not None and COUNT in function.attrs else None


def without_count(function: Any) -> Any:
    """The launch as passes take it, to which an attribute with variables is strange; its parameters stay."""
    return function if count_of(function) is None else function.without_attr(COUNT)


def without_hint(node: Any) -> Any:
    """Works are in their order: nothing is left for T.use_swizzle to say."""
    return nothing(node.span) if statement_name(node) == "use_swizzle" else node
