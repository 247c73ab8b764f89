"""Bulk copies of a box between a global array and a shared tile in the layout of `hopper/tensor_tiles.py`.

tensor_load: source, target: regions; barrier: one element of "shared.barrier" memory, which counts the bytes.  One
thread executes it.  Elements over the edge of the array read as 0 and count all the same.
tma_copy: the same, executed by all threads, of which one announces the bytes and copies.
tensor_store: the other way; one thread, which commits the group and waits for it.
The tile is `launch.facts["tensor tiles"]`; tensor maps go to `launch.facts["tensor maps"]`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import tvm
from tvm import tirx as tir
from tvm.script.tirx import ptx

from tilelang_nb.language.tile_program import RegionOperand, TileCall

from ..context import LaunchContext
from ..hopper.tensor_maps import MAPS, TensorMap, map_variable
from ..hopper.tensor_tiles import TensorTile
from ..rewrite import constant, dtype_of, nothing, sequence
from ..shared_memory import TILES
from . import mbarriers

_LOAD = "cp.async.bulk.tensor.{rank}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
_STORE = "cp.async.bulk.tensor.{rank}d.global.shared::cta.tile.bulk_group"


def lower(call: TileCall, launch: LaunchContext) -> tir.Stmt:
    """One instruction for each box of the tile."""
    if call.name == "tma_copy":
        return _by_one_thread(call, launch)
    source, target = call["source"], call["target"]
    loading = call.name != "tensor_store"
    array, shared = (source, target) if loading else (target, source)
    tile: TensorTile = launch.facts[TILES][shared.buffer]
    tensor = tensor_map(array, tile, launch)
    parts: list[Any] = []
    for box in range(tile.boxes):
        element = box * tile.box_bytes // tile.itemsize
        row, column = (tir.const(part, "int32") for part in divmod(element, tile.columns))
        start = tir.BufferLoad(shared.buffer, [*shared.begin[:-2], row, column])
        begin = [*array.begin[:-1], array.begin[-1] + box * tile.piece if box else array.begin[-1]]
        if loading:
            barrier = call["barrier"]
            parts.append(load_box(tensor, begin, start, tir.BufferLoad(barrier.buffer, list(barrier.begin)), call.span))
        else:
            parts.append(store_box(tensor, begin, start, call.span))
    return sequence(parts, call.span)


def _by_one_thread(call: TileCall, launch: LaunchContext) -> tir.Stmt:
    """The first of the threads that execute it announces the bytes and copies."""
    tile = launch.facts[TILES].get(call["target"].buffer)
    if tile is None:  # it has been said why
        return nothing(call.span)
    size = tir.const(tile.bytes, "int32")
    announced = mbarriers.lower(
        TileCall("barrier_expect_tx", {"barrier": call["barrier"], "bytes": size}, call.span), launch
    )
    copied = lower(replace(call, name="tensor_load"), launch)
    return tir.IfThenElse(tir.EQ(launch.thread, 0), sequence([announced, copied]), None, call.span)


def load_box(tensor: TensorMap, begin: Sequence[Any], start: Any, barrier: Any, span: Any) -> tir.Stmt:
    """One box from `begin` on, in the order of the array's dimensions, to the element `start` of shared memory."""
    where = [_number(index) for index in reversed(begin)]
    load = ptx[_LOAD.format(rank=len(where))]
    arguments = [tir.address_of(start), tir.address_of(tensor.variable), *where, tir.address_of(barrier)]
    return tir.Evaluate(load(*arguments), span)


def store_box(tensor: TensorMap, begin: Sequence[Any], start: Any, span: Any) -> tir.Stmt:
    """One box from the element `start` of shared memory on, to `begin` in the order of the array's dimensions."""
    where = [_number(index) for index in reversed(begin)]
    store = ptx[_STORE.format(rank=len(where))]
    return tir.Evaluate(store(tir.address_of(tensor.variable), *where, tir.address_of(start)), span)


def _number(index: Any) -> Any:
    index = tir.const(index, "int32") if isinstance(index, int) else index
    return index if dtype_of(index) == "int32" else tir.Cast("int32", index)


def tensor_map(array: RegionOperand, tile: TensorTile, launch: LaunchContext) -> TensorMap:
    """The map that shows the array in boxes of the region; one for each array and box."""
    buffer = array.buffer
    itemsize = max(tvm.DataType(dtype_of(buffer)).bits // 8, 1)
    shape = list(buffer.shape)
    strides: list[Any] = []
    step: Any = itemsize
    for extent in reversed(shape[1:]):
        step = step * _size(extent)
        strides.append(step)
    box = [constant(extent) or 1 for extent in reversed(array.extent)]
    box[0] = tile.piece
    maps = launch.facts.setdefault(MAPS, {})
    key = buffer, tuple(box), tile.swizzle
    if key not in maps:
        variable = map_variable(launch.fresh(f"{buffer.name}_map"))
        dims = tuple(_size(extent) for extent in reversed(shape))
        maps[key] = TensorMap(variable, buffer, dims, tuple(strides), tuple(box), tile.swizzle)
    return maps[key]


def _size(extent: Any) -> Any:
    known = constant(extent)
    return extent if known is None else known
