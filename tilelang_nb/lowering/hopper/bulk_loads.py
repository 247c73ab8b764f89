"""Which copies of a launch can be bulk copies of a role that copies, and how their tiles lie then.

Tiles are swizzled in boxes of 128 bytes or less; one that no products take may also be stored row by row.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from tvm import tirx as tir

from tilelang_nb.language.tile_program import RegionOperand, TileCall

from ..context import LaunchContext
from ..rewrite import constant, dtype_of
from .followed import Followed
from .refusal import Refused
from .tensor_tiles import PLAIN_ALIGNMENT, TensorTile, boxes_of, misfit, plain_tile, tensor_tile

MOST_RANK = 5  # of an array that a tensor map shows


def aligned(array: Any, itemsize: int, launch: LaunchContext, followed: Followed) -> bool:
    """Are the rows of an array known to be multiples of 16 bytes, from their length or from `T.assume`?"""
    width, chunk = array.shape[-1], 16 // itemsize
    known = constant(width)
    if known is not None:
        return known > 0 and known % chunk == 0
    with ExitStack() as facts:
        for condition in followed.assumed:
            facts.enter_context(launch.analyzer.constraint_scope(condition))
        left = tir.floormod(width, tir.const(chunk, dtype_of(width)))
        return bool(launch.analyzer.can_prove(tir.EQ(left, tir.const(0, dtype_of(width)))))


def bulk_tile(call: TileCall, function: Any, launch: LaunchContext, operand: bool, followed: Followed) -> TensorTile:
    """The layout of the tile that a copy fills; Refused where no bulk copy does it.

    operand: products take the tile.
    """
    target: RegionOperand = call["target"]
    name = target.buffer.name
    if call["disable_tma"] is not None and call.boolean("disable_tma"):
        raise Refused(f"the copy into `{name}` is not to be a bulk copy", call.span)
    order = launch.orders.get(target.buffer)
    if order is not None and order.swizzle is None:
        raise Refused(f"`{name}` has a layout of the text", call.span)
    tile = tensor_tile(target.buffer)  # swizzled, as threads that read it also meet fewer conflicts then
    if tile is None and not operand:
        tile = plain_tile(target.buffer)
    wide = [extent for extent in target.buffer.shape if constant(extent) != 1]
    if tile is None or len(wide) > 2 or not boxes_of(tile, target) or tile.bytes % PLAIN_ALIGNMENT:
        why = misfit(target.buffer) if operand else ""
        raise Refused(why or f"no bulk copy fills a tile of the shape of `{name}`", call.span)
    source: RegionOperand = call["source"]
    array = source.buffer
    if dtype_of(array) != dtype_of(target.buffer):
        raise Refused(f"the copy into `{name}` converts its elements", call.span)
    extents = [constant(extent) for extent in source.extent]
    if len(extents) > MOST_RANK or tuple(array.ty.strides or ()):
        raise Refused(f"`{array.name}` has too many dimensions or strides of its own", call.span)
    wanted = [extent for extent in (tile.rows, tile.columns) if extent != 1]
    if [extent for extent in extents if extent != 1] != wanted or extents[-1] != tile.columns:
        raise Refused(f"the region of `{array.name}` is no box of the shape of `{name}`", call.span)
    if array not in function.params:
        raise Refused(f"`{array.name}` is no parameter", call.span)
    if len(extents) > 1 and not aligned(array, tile.itemsize, launch, followed):
        raise Refused(f"the rows of `{array.name}` are not known to be multiples of 16 bytes", call.span)
    for begin in source.begin:
        if dtype_of(begin) != "int32":
            raise Refused(f"an index of `{array.name}` has 64 bits", call.span)
        followed.expression(begin, f"the place of the copy into `{name}`")
    return tile
