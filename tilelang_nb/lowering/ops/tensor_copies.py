"""Bulk copies of a box between a global array and a shared tile in the layout of `hopper/tensor_tiles.py`.

tensor_load: source, target: regions; barrier: one element of "shared.barrier" memory, which counts the bytes.  One
thread executes it.  Elements over the edge of the array read as 0 and count all the same.
tensor_store: the other way; one thread, which commits the group and waits for it.
tma_copy: `T.tma_copy`, executed by all threads: the first one, or the first of every `scope` threads, copies.  With a
barrier it announces the bytes and loads.  Without one it stores and closes the group; before that all threads make what
they wrote visible to the copy.  store_arrive closes a group, and store_wait waits until groups have been read, or are
over.
The tile is `launch.facts["tensor tiles"]`; tensor maps go to `launch.facts["tensor maps"]`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tvm import tirx as tir
from tvm.script.tirx import ptx

from tilelang_nb.language.tile_program import RegionOperand, TileCall

from ..architecture import capability
from ..context import LaunchContext
from ..hopper.tensor_maps import MAPS, MOVED, Moved, TensorMap, map_variable
from ..hopper.tensor_tiles import Box, TensorTile, boxes_of, bytes_of, place_of
from ..rewrite import as_int32, constant, element_bytes, nothing, sequence
from ..shared_memory import TILES
from . import mbarriers
from .copy_groups import BULK

_LOAD = "cp.async.bulk.tensor.{rank}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
_STORE = "cp.async.bulk.tensor.{rank}d.global.shared::cta.tile.bulk_group"


def lower(call: TileCall, launch: LaunchContext) -> tir.Stmt:
    """One instruction for each box of the tile."""
    if call.name == "tma_copy":
        return _by_some_threads(call, launch)
    if call.name == "store_arrive":
        return _on_hopper(ptx["cp.async.bulk.commit_group"](), call, launch)
    if call.name == "store_wait":
        read = ".read" if call.boolean("read") else ""
        return _on_hopper(ptx[f"cp.async.bulk.wait_group{read}"](call.integer("pending")), call, launch)
    return _boxes(call, call.name != "tensor_store", launch)


def _on_hopper(instruction: Any, call: TileCall, launch: LaunchContext) -> tir.Stmt:
    return tir.Evaluate(instruction, call.span) if capability(launch.arch) >= BULK else nothing(call.span)


def _boxes(call: TileCall, loading: bool, launch: LaunchContext, mask: int = 0) -> tir.Stmt:
    """The instructions of one thread.  mask: blocks of the cluster that a load fills, 0 for the own one."""
    source, target = call["source"], call["target"]
    array, shared = (source, target) if loading else (target, source)
    tile: TensorTile = launch.facts[TILES][shared.buffer]
    parts: list[Any] = []
    for box in boxes_of(tile, shared):
        start = tir.BufferLoad(shared.buffer, place_of(tile, shared, box))
        begin = _moved(array, box.row, box.column)
        tensor = tensor_map(RegionOperand(array.buffer, tuple(begin), _sides(array, box)), tile, launch)
        if loading:
            barrier = call["barrier"]
            counting = tir.BufferLoad(barrier.buffer, list(barrier.begin))
            parts.append(load_box(tensor, begin, start, counting, call.span, mask))
        else:
            parts.append(store_box(tensor, begin, start, call.span))
    if parts:
        launch.facts.setdefault(MOVED, []).append(Moved(call.span, shared.buffer, tensor, len(parts), loading))
    return sequence(parts, call.span)


def _moved(region: RegionOperand, row: int, column: int) -> list[Any]:
    """The indices of an element of a region, counted from its start along its two dimensions."""
    begin = list(region.begin)
    begin[-1] = begin[-1] + column if column else begin[-1]
    if row:
        begin[_row_dim(region)] = begin[_row_dim(region)] + row
    return begin


def _sides(region: RegionOperand, box: Box) -> tuple[int, ...]:
    """The extents of a box in a region."""
    extents = [1] * len(region.extent)
    extents[-1] = box.columns
    if box.rows != 1:
        extents[_row_dim(region)] = box.rows
    return tuple(extents)


def _row_dim(region: RegionOperand) -> int:
    """The dimension whose indices are the rows of a region: the one beside the last that has several elements."""
    wide = [dim for dim, extent in enumerate(region.extent[:-1]) if constant(extent) != 1]
    return wide[0] if wide else max(len(region.extent) - 2, 0)


def _by_some_threads(call: TileCall, launch: LaunchContext) -> tir.Stmt:
    """The first of the threads that execute it copies, or of every `scope` ones."""
    loading = call["barrier"] is not None
    shared = call["target" if loading else "source"]
    tile = launch.facts[TILES].get(shared.buffer)
    if tile is None:  # it has been said why
        return nothing(call.span)
    thread = launch.thread if call["scope"] is None else launch.thread % call.integer("scope")
    lead = tir.EQ(thread, 0) if call["first"] is None else tir.EQ(launch.block_thread, call["first"])
    if not loading:
        commit = tir.Evaluate(ptx["cp.async.bulk.commit_group"](), call.span)
        stored = sequence([_boxes(call, False, launch), commit], call.span)
        fence = tir.Evaluate(ptx["fence.proxy.async.shared::cta"](), call.span)
        return tir.SeqStmt([fence, tir.IfThenElse(lead, stored, None, call.span)], call.span)
    size = tir.const(bytes_of(tile, shared), "int32")
    announced = mbarriers.lower(
        TileCall("barrier_expect_tx", {"barrier": call["barrier"], "bytes": size}, call.span), launch
    )
    loaded = _boxes(call, True, launch)
    if call["mask"] is not None:
        loaded = _for_blocks(call, loaded, launch)
    return tir.IfThenElse(lead, sequence([announced, loaded]), None, call.span)


def _for_blocks(call: TileCall, alone: tir.Stmt, launch: LaunchContext) -> tir.Stmt:
    """The first block that the mask names loads for all of them; one that it does not name loads for itself."""
    mask, rank = call.integer("mask"), launch.rank
    first = (mask & -mask).bit_length() - 1
    blocks = math.prod(launch.cluster)
    others = [block for block in range(blocks) if not mask >> block & 1]
    together = _boxes(call, True, launch, mask)
    if not others:
        return tir.IfThenElse(tir.EQ(rank, first), together, None, call.span)
    outside: Any = tir.EQ(rank, others[0])
    for block in others[1:]:
        outside = tir.Or(outside, tir.EQ(rank, block))
    return tir.IfThenElse(tir.EQ(rank, first), together, tir.IfThenElse(outside, alone, None, call.span), call.span)


def load_box(tensor: TensorMap, begin: Sequence[Any], start: Any, barrier: Any, span: Any, mask: int = 0) -> tir.Stmt:
    """One box from `begin` on, in the order of the array's dimensions, to the element `start` of shared memory.

    mask: bits of the blocks of the cluster that get it at this place, 0 for the own block.
    """
    where = [_number(index) for index in reversed(begin)]
    load = ptx[_LOAD.format(rank=len(where)) + (".multicast::cluster" if mask else "")]
    arguments = [tir.address_of(start), tir.address_of(tensor.variable), *where, tir.address_of(barrier)]
    if mask:
        arguments.append(tir.const(mask, "uint16"))
    return tir.Evaluate(load(*arguments), span)


def store_box(tensor: TensorMap, begin: Sequence[Any], start: Any, span: Any) -> tir.Stmt:
    """One box from the element `start` of shared memory on, to `begin` in the order of the array's dimensions."""
    where = [_number(index) for index in reversed(begin)]
    store = ptx[_STORE.format(rank=len(where))]
    return tir.Evaluate(store(tir.address_of(tensor.variable), *where, tir.address_of(start)), span)


def _number(index: Any) -> Any:
    return tir.const(index, "int32") if isinstance(index, int) else as_int32(index)


def tensor_map(array: RegionOperand, tile: TensorTile, launch: LaunchContext) -> TensorMap:
    """The map that shows the array in boxes of the region; one for each array and box."""
    buffer = array.buffer
    itemsize = element_bytes(buffer)
    shape = list(buffer.shape)
    strides: list[Any] = [int(stride) * itemsize for stride in reversed(list(buffer.ty.strides or ())[:-1])]
    step: Any = itemsize
    for extent in reversed(shape[1:] if not strides else []):
        step = step * _size(extent)
        strides.append(step)
    box = [constant(extent) or 1 for extent in reversed(array.extent)]
    box[0] = min(tile.piece, box[0])
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
