"""Nested loops over a box: what element-wise tile operations become in legalise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tvm import tirx as tir

from tilelang_nb.language.tile_program import RegionOperand

from ..rewrite import constant, dtype_of, scope

NAMES = "ijkl"
TILE = "tl.tile"  # the loops of a tile operation, which all threads do together


def loops_over(extents: Sequence[Any], body: Callable[[list[Any]], Any], span: Any, *buffers: Any) -> Any:
    """`for i, j, ... in T.Parallel(extents): body([i, j, ...])`; at least one loop, so that it is executed once.

    buffers: the operands.  Where one of them is memory of a single thread, every thread does all of it by itself.
    """
    own = any(scope(buffer) in ("local", "local.var") for buffer in buffers)
    kind = tir.ForKind.SERIAL if own else tir.ForKind.PARALLEL
    extents = list(extents) or [tir.const(1, "int32")]
    wide = any(dtype_of(extent) == "int64" for extent in extents if not isinstance(extent, int))
    dtype = "int64" if wide else "int32"
    loops = [tir.Var(NAMES[k] if k < len(NAMES) else f"i{k}", dtype) for k in range(len(extents))]
    statement = body(loops)
    for var, extent in zip(reversed(loops), reversed(extents)):
        extent = tir.const(extent, dtype) if isinstance(extent, int) else extent
        if dtype_of(extent) != dtype:
            extent = tir.Cast(dtype, extent)
        notes = {TILE: 1} if var.same_as(loops[0]) and not own else {}
        statement = tir.For(var, tir.const(0, dtype), extent, kind, statement, annotations=notes, span=span)
    return statement


def box(region: RegionOperand) -> tuple[int, ...]:
    """The dimensions of a region that have more than one element (or a number known only at run time)."""
    return tuple(dim for dim, extent in enumerate(region.extent) if constant(extent) != 1)


def at(region: RegionOperand, dims: Sequence[int], offsets: Sequence[Any]) -> list[Any]:
    """Indices of an element of a region: `offsets` along `dims`, the begin elsewhere."""
    index = list(region.begin)
    for dim, offset in zip(dims, offsets):
        index[dim] = offset if constant(index[dim]) == 0 else index[dim] + offset
    return index


def element(region: RegionOperand, dims: Sequence[int], offsets: Sequence[Any]) -> Any:
    """The element of a region at `offsets` along `dims`."""
    return tir.BufferLoad(region.buffer, at(region, dims, offsets))


def converted(value: Any, dtype: str) -> Any:
    """The value in the element type of the buffer that takes it."""
    if dtype_of(value) == dtype:
        return value
    if isinstance(value, tir.IntImm) and dtype.startswith(("float", "bfloat")) and abs(int(value.value)) <= 256:
        return tir.const(float(int(value.value)), dtype)
    return tir.Cast(dtype, value)
