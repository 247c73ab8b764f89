"""Launches that copy with `T.tma_copy` by themselves: which tiles such copies move, and why they do not.

A tile lies row by row, unless `operand_tiles.py` finds that warp groups multiply it, or it is too wide for that.
Registers are divided as `T.set_max_nreg` says, in `T.ws`.
"""

from __future__ import annotations

from typing import Any

import tvm
from tvm import tirx as tir

from tilelang_nb.language.tile_program import RegionOperand, TileCall, read, statement_name
from tilelang_nb.source import catalogue as say

from ..architecture import capability
from ..context import LaunchContext, ThreadSet
from ..launches import THREAD_EXTENT
from ..nests import WARP_GROUPS, threads_of_part
from ..ops.mbarriers import BY_HAND
from ..ops.registers import divides_registers
from ..ops.synchronisation import number_barriers
from ..rewrite import constant, each_statement, map_children, with_body
from ..shared_memory import MAPPED, TILES
from .bulk_loads import MOST_RANK, aligned
from .clusters import prepare_clusters
from .copies_ahead import start_ahead
from .first_threads import with_first_threads
from .followed import Followed
from .operand_tiles import Products, TileUses
from .roles import ONE_BLOCK
from .tensor_tiles import PLAIN_ALIGNMENT, TensorTile, boxes_of, plain_tile, tensor_tile

FIRST = 90  # the architecture that has bulk copies


def prepare(function: Any, launch: LaunchContext) -> Any:
    """The launch, with `launch.facts["tensor tiles"]` for the targets of its bulk copies; TL302 where one cannot be."""
    number_barriers(function, launch)
    function = prepare_clusters(function, launch)
    if not _asked(function.body):
        return function
    function = with_first_threads(start_ahead(function, launch), launch)
    found = _Found(launch)
    found.statement(function.body, launch.set)
    if found.copies:
        _lay_out(found, function, launch)
    if not found.registers:
        return function
    return function.with_body(_with_bound(function.body))


def _asked(body: Any) -> bool:
    """Does the launch copy in bulk or divide registers by itself?"""
    return any(statement_name(node) in ("tma_copy", "set_max_nreg") for node in each_statement(body))


class _Found:
    """copies: `T.tma_copy`.  registers: is `T.set_max_nreg` carried out?"""

    def __init__(self, launch: LaunchContext):
        self.launch = launch
        self.copies: list[TileCall] = []
        self.registers = False

    def statement(self, node: Any, threads: ThreadSet) -> None:
        if isinstance(node, tir.AttrStmt) and node.attr_key == WARP_GROUPS:
            threads = threads_of_part(node, self.launch) or threads
        name = statement_name(node)
        if name == "tma_copy":
            self.copies.append(read(node.value, node.span))
        elif name == "set_max_nreg":
            self.registers |= divides_registers(self.launch, threads)

        def visit(child: Any) -> Any:
            self.statement(child, threads)
            return child

        map_children(node, visit)


def _with_bound(node: Any) -> Any:
    """The device compiler is told how many registers there are to divide."""
    if isinstance(node, tir.AttrStmt) and node.attr_key == THREAD_EXTENT:
        return with_body(node, _with_bound(node.body))
    return tir.AttrStmt(tir.const(0, "int32"), ONE_BLOCK, tir.const(1, "int32"), node, node.span)


def _lay_out(found: _Found, function: Any, launch: LaunchContext) -> None:
    if any(call["barrier"] is not None for call in found.copies):
        launch.facts[BY_HAND] = True
    tiles: dict[Any, TensorTile] = {}
    swizzled = _swizzled(found, function, launch)
    for call in found.copies:
        shared = _shared(call)
        problem = None if capability(launch.arch) >= FIRST else f"it needs sm_90, and the kernel is for {launch.arch}"
        tile = swizzled.get(shared.buffer) or plain_tile(shared.buffer)
        problem = problem or _problem(call, tile, launch)
        if problem is not None:
            message = say.TargetUnavailable(problem=f"`T.tma_copy`: {problem}", remedy=_remedy(call, tile))
            launch.report(message, call.span)
            continue
        assert tile is not None
        tiles[shared.buffer] = tile
    launch.facts[TILES] = tiles


def _swizzled(found: _Found, function: Any, launch: LaunchContext) -> dict[Any, TensorTile]:
    """Tiles that would take too many boxes row by row, such as wide ones, in the fewer boxes of swizzled pieces."""
    wide = {side.buffer for side in map(_shared, found.copies) if _in_too_many_boxes(side)}
    if not wide:
        return {}
    uses, addressed = TileUses(function.body), Products(function, launch).addressed
    tiles = {
        buffer: tile
        for buffer in wide - addressed - uses.cut.keys() - launch.orders.keys()
        if (tile := tensor_tile(buffer, None)) is not None
    }
    launch.facts[MAPPED] = uses.touched & tiles.keys()
    return tiles


def _in_too_many_boxes(shared: RegionOperand) -> bool:
    tile, known = plain_tile(shared.buffer), all(constant(extent) is not None for extent in shared.extent)
    return tile is not None and known and not boxes_of(tile, shared)


def _remedy(call: TileCall, tile: TensorTile | None) -> str:
    """What to write where no bulk copy does it; rows of unknown length may be said to fit."""
    length = (call["target"] if call["barrier"] is None else call["source"]).buffer.shape[-1]
    if tile is None or not isinstance(length, tvm.ir.Var):
        return "use `T.copy`"
    return f"use `T.copy`, or say that the rows fit: `T.assume({length.name} % {16 // tile.itemsize} == 0)`"


def _shared(call: TileCall) -> RegionOperand:
    """The side of a copy that is in shared memory."""
    side: RegionOperand = call["source" if call["barrier"] is None else "target"]
    return side


def _problem(call: TileCall, tile: TensorTile | None, launch: LaunchContext) -> str | None:
    """Why no bulk copy does it; None where one does."""
    shared = _shared(call)
    array_side: RegionOperand = call["target" if call["barrier"] is None else "source"]
    array, name = array_side.buffer, shared.buffer.name
    if tile is None:
        return f"no bulk copy moves a tile of the shape of `{name}`"
    extents = [constant(extent) for extent in shared.extent]
    rows = extents[-2] if len(extents) > 1 else 1
    if any(extent != 1 for extent in extents[:-2]) or rows is None or extents[-1] != tile.columns:
        return f"it moves whole rows of a tile: of `{name}`, or of one of its last two dimensions"
    if constant(shared.begin[-1]) != 0:
        return f"it moves whole rows of `{name}`"
    first = constant(shared.begin[-2]) if len(extents) > 1 else 0
    if first is not None and first * tile.span % PLAIN_ALIGNMENT:
        return f"row {first} of `{name}` begins at no multiple of {PLAIN_ALIGNMENT} bytes"
    if rows != tile.rows and rows * tile.span % PLAIN_ALIGNMENT:
        return f"{rows} rows of `{name}` are no multiple of {PLAIN_ALIGNMENT} bytes"
    if not boxes_of(tile, shared):
        return f"no bulk copy moves a tile of the shape of `{name}`"
    order = launch.orders.get(shared.buffer)
    if order is not None and order.swizzle is None:
        return f"`{name}` has an order of its own"
    if array not in launch.function.params:
        return f"`{array.name}` is no parameter of the kernel"
    taken = [constant(extent) for extent in array_side.extent]
    if len(taken) > MOST_RANK:
        return f"`{array.name}` has more than {MOST_RANK} dimensions"
    wanted = [extent for extent in (rows, tile.columns) if extent != 1]
    if [extent for extent in taken if extent != 1] != wanted or taken[-1] != tile.columns:
        return f"the region of `{array.name}` is no box of the shape of `{name}`"
    return _apart(array, tile.itemsize, launch)


def _apart(array: Any, itemsize: int, launch: LaunchContext) -> str | None:
    """Why the rows of an array are not ones that tensor maps show; None where they are."""
    steps = [constant(stride) for stride in array.ty.strides or ()]
    if steps:
        apart = all(step is not None and step > 0 and step * itemsize % 16 == 0 for step in steps[:-1])
        if steps[-1] != 1 or not apart:
            return f"the strides of `{array.name}` are no constant multiples of 16 bytes"
    elif len(array.shape) > 1 and not aligned(array, itemsize, launch, Followed(launch.function, launch)):
        return f"the rows of `{array.name}` are not known to be multiples of 16 bytes"
    return None
