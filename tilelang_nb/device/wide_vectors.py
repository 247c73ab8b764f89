"""Vector accesses at 64-bit indices: `C[broadcast(row) + int64x8(ramp)]` as the ramp that it is.

A loop of lanes counts in 32 bits; where the index of an access needs 64, the counter is widened inside of it, and what
becomes of that in a vector is no ramp to the printer.
"""

from __future__ import annotations

from typing import Any

import tvm
import tvm_ffi
from tvm import tirx as tir
from tvm.ir.prim import expr as pe

from tilelang_nb.lowering.rewrite import Load, constant


def ramps_of_wide_indices(function: Any) -> Any:
    """The function with a ramp for every vector index that is a sum of one."""

    def load(node: Any) -> Any:
        indices = _ramps(node.indices)
        return node if indices is None else tir.BufferLoad(node.source, indices)

    def store(node: Any) -> Any:
        indices = _ramps(node.indices)
        return node if indices is None else tir.BufferStore(node.buffer, node.value, indices, node.span)

    return function.with_body(tvm_ffi.structural_map(function.body, [(Load, load), (tir.BufferStore, store)]))


def _ramps(indices: Any) -> list[Any] | None:
    """The indices with ramps; None if they stay as they are."""
    after = [_ramp(index) for index in indices]
    return None if all(one.same_as(other) for one, other in zip(after, indices)) else after


def _ramp(index: Any) -> Any:
    lanes = getattr(index.ty, "dtype", tvm.DataType("int32")).lanes
    if lanes == 1 or isinstance(index, tir.Ramp):
        return index
    found = _lanes(index)
    if found is None:
        return index
    first, step = found
    return tir.Ramp(first, step, tir.const(lanes, "int32"))


def _lanes(expr: Any) -> tuple[Any, Any] | None:
    """(value of the first lane, step from lane to lane); None if the lanes are no arithmetic sequence."""
    if isinstance(expr, tir.Ramp):
        return expr.base, expr.stride
    if isinstance(expr, tir.Broadcast):
        return expr.value, tir.const(0, expr.value.ty.dtype)
    if isinstance(expr, pe.Cast):
        inner = _lanes(expr.value)
        return None if inner is None else (_wide(inner[0]), _wide(inner[1]))
    if isinstance(expr, pe.Add | pe.Sub):
        left, right = _lanes(expr.a), _lanes(expr.b)
        if left is None or right is None:
            return None
        if isinstance(expr, pe.Add):
            return left[0] + right[0], left[1] + right[1]
        return left[0] - right[0], left[1] - right[1]
    return None


def _wide(value: Any) -> Any:
    known = constant(value)
    return tir.Cast("int64", value) if known is None else tir.const(known, "int64")
