"""Views made by T.reshape and T.view, and per-thread arrays of several dimensions.

A view of a fragment with the same element type, or of a per-thread array, becomes index arithmetic on its source; the
elements of a per-thread array are reinterpreted where the view has another type, which is of the same width.  Views of
shared and global memory stay: the memory plan gives them the place of their source, and over the edge of a view of
global memory the guards need its shape.  A fragment that is viewed with another element type has no registers to
reinterpret across threads: it is demoted to shared memory.
"""

from __future__ import annotations

import math
from typing import Any

import tvm
import tvm_ffi
from tvm import tirx as tir

from .context import FRAGMENT
from .rewrite import Load, dtype_of, map_children, nothing, scope, size, walk

PRIVATE = ("local", "local.var")


def view_source(declared: Any) -> Any:
    """The buffer that a DeclBuffer looks into."""
    found: list[Any] = []
    walk(declared.data, (tvm.ir.Var, found.append))
    return found[0] if found else None


def views(body: Any) -> dict[Any, Any]:
    """view -> the buffer it looks into, which may be a view itself."""
    found: dict[Any, Any] = {}
    walk(body, (tir.DeclBuffer, lambda node: found.update({node.buffer: view_source(node)})))
    return found


def root(buffer: Any, sources: dict[Any, Any]) -> Any:
    """The buffer that owns the memory."""
    while buffer in sources:
        buffer = sources[buffer]
    return buffer


def reinterpreted_fragments(body: Any) -> set[Any]:
    """Fragments viewed with another element type."""
    sources = views(body)
    return {
        root(view, sources)
        for view in sources
        if scope(view) == FRAGMENT and dtype_of(view) != dtype_of(root(view, sources))
    }


def flat_index(buffer: Any, indices: Any) -> Any:
    """Row-major element number."""
    result: Any = None
    for extent, index in zip(buffer.shape, indices):
        result = index if result is None else result * extent + index
    return tir.const(0, "int32") if result is None else result


def unflatten(buffer: Any, flat: Any) -> list[Any]:
    """The indices of a row-major element number."""
    shape = [size(extent) for extent in buffer.shape]
    result = []
    for dim in range(len(shape)):
        inner = math.prod(shape[dim + 1 :])
        index = flat // inner if inner > 1 else flat
        result.append(index % shape[dim] if dim else index)
    return result


def resolve_views(body: Any) -> Any:
    """After: views of per-thread arrays, and of fragments with their type, are gone; per-thread arrays are flat."""
    sources = views(body)
    targets: dict[Any, Any] = {}  # buffer -> the buffer whose elements it is
    flat: dict[Any, Any] = {}  # per-thread array -> its one-dimensional form

    def collect(node: Any) -> None:
        buffer = node.buffer
        if scope(buffer) in PRIVATE and (len(buffer.shape) != 1 or scope(buffer) == "local.var"):
            count = math.prod(size(extent) for extent in buffer.shape)
            flat[buffer] = tir.decl_buffer((count,), dtype_of(buffer), buffer.name, scope="local", layout=None)

    walk(body, (tir.AllocBuffer, collect))
    for view in sources:
        owner = root(view, sources)
        if scope(owner) in PRIVATE or (scope(owner) == FRAGMENT and dtype_of(owner) == dtype_of(view)):
            targets[view] = owner
    if not targets and not flat:
        return body

    def place(buffer: Any, indices: Any) -> tuple[Any, list[Any]]:
        owner = targets.get(buffer, buffer)
        if owner in flat:
            return flat[owner], [flat_index(buffer, indices)]
        if owner is buffer:
            return buffer, list(indices)
        return owner, unflatten(owner, flat_index(buffer, indices))

    def load(node: Any) -> Any:
        if node.source in targets or node.source in flat:
            element = tir.BufferLoad(*place(node.source, node.indices))
            dtype = dtype_of(node.source)
            return element if dtype_of(element.source) == dtype else tir.reinterpret(dtype, element)
        return node

    def store(node: Any) -> Any:
        if node.buffer in targets or node.buffer in flat:
            buffer, indices = place(node.buffer, node.indices)
            value, dtype = node.value, dtype_of(buffer)
            if dtype_of(node.buffer) != dtype:
                value = tir.reinterpret(dtype, value)
            return tir.BufferStore(buffer, value, indices, node.span)
        return node

    def definition(node: Any) -> Any:
        if isinstance(node, tir.DeclBuffer) and node.buffer in targets:
            return nothing(node.span)
        if isinstance(node, tir.AllocBuffer) and node.buffer in flat:
            return tir.AllocBuffer(flat[node.buffer], None, node.span)
        return map_children(node, definition)

    body = definition(body)
    return tvm_ffi.structural_map(body, [(Load, load), (tir.BufferStore, store)])
