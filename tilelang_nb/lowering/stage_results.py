"""stage-results: accumulators go to global memory through a shared tile, so that stores are wide.

Before: `T.copy` of an accumulator of tensor cores into global memory, where a thread has two neighbours of a row.
After: a copy into a shared tile, and one from there in vectors of 16 bytes, neighbouring threads beside each other.

It is done for elements of one or two bytes, for copies that the whole block makes once, and where the tile fits into
the shared memory that the launch needs anyway: it takes the place of tiles that are not used any more.
"""

from __future__ import annotations

from typing import Any

import tvm
from tvm import tirx as tir

from tilelang_nb.language.tile_program import RegionOperand, TileCall, operation, operation_name, read, region

from .architecture import capability
from .context import FRAGMENT, SHARED, LaunchContext
from .gemm.engine import choose
from .ops.elementwise import box
from .rewrite import constant, dtype_of, map_children, scope, sequence, statements, walk
from .shared_memory import needed_shared_memory

FIRST = 80  # architecture: below, products are not accumulated by tensor cores
WIDE = 16  # bytes of the widest store


def stage_results(function: Any, launch: LaunchContext) -> Any:
    """The stage."""
    roles = launch.facts.get("roles")
    if capability(launch.arch) < FIRST or not (roles is None or isinstance(roles, str)):
        return function
    accumulators = _accumulators(function.body, launch)
    if not accumulators:
        return function
    body = _of_block(function.body, accumulators, launch)
    if body.same_as(function.body) or needed_shared_memory(body) > needed_shared_memory(function.body):
        return function
    return function.with_body(body)


def _accumulators(body: Any, launch: LaunchContext) -> set[Any]:
    """The fragments that tensor cores add to."""
    found: set[Any] = set()

    def note(node: Any) -> None:
        if operation_name(node.value) == "gemm":
            call = read(node.value, node.span)
            if choose(call, launch).instruction is not None:
                found.add(call["c"].buffer)

    walk(body, (tir.Evaluate, note))
    return found


def _of_block(node: Any, accumulators: set[Any], launch: LaunchContext) -> Any:
    """The statements that the block runs once, one after the other."""
    if isinstance(node, tir.AttrStmt) and node.attr_key == "thread_extent":
        return map_children(node, lambda body: _of_block(body, accumulators, launch))
    before = statements(node)
    after = [_staged(one, accumulators, launch) for one in before]
    return node if all(a.same_as(b) for a, b in zip(after, before)) else sequence(after, node.span)


def _staged(node: Any, accumulators: set[Any], launch: LaunchContext) -> Any:
    if not isinstance(node, tir.Evaluate) or operation_name(node.value) != "copy":
        return node
    call = read(node.value, node.span)
    source, target = call["source"], call["target"]
    if source.buffer not in accumulators or scope(target.buffer) != "global" or not _gains(target):
        return node
    shape = [constant(source.extent[dim]) for dim in box(source)]
    if len(shape) != 2 or len(box(target)) != 2 or not _whole(source):
        return node
    tile = tir.decl_buffer(
        shape, dtype_of(target.buffer), launch.fresh(f"{source.buffer.name}_tile"), scope=SHARED, layout=None
    )
    inside = region(tile, [tir.const(0, "int32")] * 2, [tir.const(extent, "int32") for extent in shape])
    into = operation("copy", region(source.buffer, source.begin, source.extent), inside)
    out = operation("copy", inside, region(target.buffer, target.begin, target.extent), *_options(call))
    parts = [tir.AllocBuffer(tile, None, node.span), tir.Evaluate(into, node.span), tir.Evaluate(out, node.span)]
    return sequence(parts, node.span)


def _options(call: TileCall) -> list[Any]:
    return [call["coalesced_width"], call["disable_tma"]]


def _gains(target: RegionOperand) -> bool:
    """Are the elements narrow, and rows of whole vectors?"""
    size = tvm.DataType(dtype_of(target.buffer)).bits // 8
    row, width = constant(target.buffer.ty.shape[-1]), constant(target.extent[-1])
    if size not in (1, 2) or row is None or width is None:
        return False
    return row * size % WIDE == 0 and width * size % WIDE == 0


def _whole(source: RegionOperand) -> bool:
    return scope(source.buffer) == FRAGMENT and all(
        constant(begin) == 0 and constant(extent) == constant(size)
        for begin, extent, size in zip(source.begin, source.extent, source.buffer.ty.shape)
    )
