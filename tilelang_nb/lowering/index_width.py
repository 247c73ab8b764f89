"""widen-indices: 64-bit index arithmetic where an address may pass 2^31 elements.

Before: indices are int32, and so would be the offset computed from them. After: the indices of a global buffer that
has, or may have, 2^31 elements or more are int64 in every dimension where a step of the index moves by enough for
the offset to pass that bound. Extents known only at run time may have any int32 value, so a buffer with such an
extent is widened in all dimensions but those whose inner extents are constants with a small product. An index of a
dimension that itself has 2^31 elements is computed in int64 from its variables on.
"""

from __future__ import annotations

from typing import Any

import tvm
import tvm_ffi
from tvm import tirx as tir

from .context import LaunchContext
from .rewrite import constant, scope

_BOUND = 2**31
_ARITHMETIC = (tir.Add, tir.Sub, tir.Mul, tir.FloorDiv, tir.FloorMod, tir.Min, tir.Max, tir.Div, tir.Mod)


def widen_indices(func: tir.PrimFunc, launch: LaunchContext) -> tir.PrimFunc:
    """The stage.  Shared and local memory never need it."""
    wide = {buffer: dims for buffer, dims in ((b, wide_dims(b)) for b in _buffers(func)) if dims}
    if not wide:
        return func

    def indices(buffer: Any, old: Any) -> list[Any]:
        dims = wide[buffer]
        return [
            index if dim not in dims else widened(index, constant(buffer.ty.shape[dim]))
            for dim, index in enumerate(old)
        ]

    def load(node: Any) -> Any:
        return tir.BufferLoad(node.source, indices(node.source, node.indices)) if node.source in wide else node

    def store(node: Any) -> Any:
        if node.buffer not in wide:
            return node
        return tir.BufferStore(node.buffer, node.value, indices(node.buffer, node.indices), node.span)

    return func.with_body(tvm_ffi.structural_map(func.body, [(tvm.ir.TensorLoad, load), (tir.BufferStore, store)]))


def _buffers(func: tir.PrimFunc) -> list[Any]:
    """Global memory and views of it."""
    found = [p for p in func.params if isinstance(p.ty, tir.BufferType)]
    tvm_ffi.structural_walk(func.body, (tir.DeclBuffer, lambda node: found.append(node.buffer)))
    return [buffer for buffer in found if scope(buffer) == "global"]


def wide_dims(buffer: Any) -> set[int]:
    """The dimensions whose index has to be int64."""
    shape = [constant(extent) for extent in buffer.ty.shape]
    strides = [constant(stride) for stride in buffer.ty.strides] if buffer.ty.strides else None
    if strides is not None:
        return {
            dim
            for dim, (extent, stride) in enumerate(zip(shape, strides))
            if extent is None or stride is None or extent * stride >= _BOUND
        }
    wide: set[int] = set()
    inner: int | None = 1  # elements that one step of the index moves by; None: not known
    for dim in reversed(range(len(shape))):
        extent = shape[dim]
        if inner is None:
            wide.add(dim)
        elif extent is None:
            if inner > 1:
                wide.add(dim)
            inner = None
        else:
            inner *= extent
            if inner >= _BOUND:
                wide.add(dim)
    return wide


def widened(index: Any, extent: int | None = None) -> Any:
    """The index as int64; where the dimension has 2^31 elements or more, from its variables on."""
    if str(index.ty.dtype) == "int64":
        return index
    if isinstance(index, tir.IntImm):
        return tir.const(int(index.value), "int64")
    if extent is not None and extent >= _BOUND and isinstance(index, _ARITHMETIC):
        return type(index)(widened(index.a, extent), widened(index.b, extent))
    return tir.Cast("int64", index)
