"""Descriptors of the matrices of one tile, in the form that takes one addition each.

A descriptor of warp-group products holds an address in units of 16 bytes.  Made from the address of each matrix it is
a chain of four instructions in front of its product; the descriptor of the tile's start is the same for all of them,
and what is added to its low word folds into the instruction.

All threads of a warp group give the same descriptor, as the instruction asks for.  Where it depends on the thread, the
number of the warp group takes the place of the thread, and is made in a way that shows that a warp agrees on it: such
values stay in the registers from which products take descriptors.
"""

from __future__ import annotations

from typing import Any

import tvm
import tvm_ffi
from tvm import tirx as tir
from tvm.ir import Range

from tilelang_nb.lowering.gemm.wgmma import DESCRIPTOR
from tilelang_nb.lowering.rewrite import (
    Load,
    constant,
    dtype_of,
    map_children,
    sequence,
    substitute,
    variables,
    with_body,
)

from .vector_accesses import item_bytes

AT = "tl_wgmma_descriptor_at"
AGREED = "tl_warp_uniform"
UNIT = 16  # bytes
GROUP = 128  # threads


def matrix_descriptors(function: Any) -> Any:
    """The pass.  Before: buffers have one index."""
    body = _rewritten(function.body, {})
    return function if body.same_as(function.body) else function.with_body(body)


def _rewritten(node: Any, axes: dict[str, Any]) -> Any:
    """axes: of the launch that the statement stands in, by their tags."""
    if not isinstance(node, tir.AttrStmt) or node.attr_key != "thread_extent":
        return map_children(node, lambda one: _rewritten(one, axes))
    axes = {**axes, str(node.node.thread_tag): node}
    inside = node.body
    if isinstance(inside, tir.AttrStmt) and inside.attr_key == "thread_extent":
        return with_body(node, _rewritten(inside, axes))
    return with_body(node, _Descriptors(axes).rewritten(inside))


class _Descriptors:
    def __init__(self, axes: dict[str, Any]):
        self.analyzer = tvm.sym.Analyzer()
        self.group = tir.Var("warp_group", "int32")
        self.grouped = False
        self.thread: Any = None
        along = axes.get("threadIdx.x")
        extent = None if along is None else constant(along.value)
        others = [axis for tag, axis in axes.items() if tag in ("threadIdx.y", "threadIdx.z")]
        if extent is not None and extent % GROUP == 0 and all(constant(axis.value) == 1 for axis in others):
            self.thread = along.node.var
            self.analyzer.bind(self.group, Range(0, extent // GROUP), True)

    def rewritten(self, body: Any) -> Any:
        body = tvm_ffi.structural_map(body, (tvm.ir.Call, self._short))
        if not self.grouped:
            return body
        number = tir.call_extern("int32", AGREED, tir.floordiv(self.thread, GROUP))
        return sequence([tir.Bind(self.group, number), body])

    def _short(self, call: Any) -> Any:
        if getattr(call.op, "name", "") != "tirx.call_pure_extern" or call.args[0].value != DESCRIPTOR:
            return call
        load = call.args[1].args[0]
        if not isinstance(load, Load) or len(load.indices) != 1:
            return call
        place = load.indices[0]
        grouped = self.thread is not None and self.thread in variables(place)
        if grouped:
            place = substitute(place, {self.thread: self.group * GROUP})
        place = place * item_bytes(dtype_of(load.source))
        known = self.analyzer.modular_set(place)
        if int(known.coeff) % UNIT or int(known.base) % UNIT:
            return call
        self.grouped = self.grouped or grouped
        start = tir.address_of(tir.BufferLoad(load.source, [tir.const(0, "int32")]))
        units = self.analyzer.simplify(tir.floordiv(place, UNIT))
        return tir.call_pure_extern("uint64", AT, start, units, *call.args[2:])
