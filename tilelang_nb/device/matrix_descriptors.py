"""Descriptors of the matrices of one tile, in the form that takes one addition each.

A descriptor of warp-group products holds an address in units of 16 bytes.  Made from the address of each matrix it is
a chain of four instructions in front of its product; the descriptor of the tile's start is the same for all of them,
and what is added to its low word folds into the instruction.

All threads of a warp group give the same descriptor, as the instruction asks for.  Where it depends on the thread, the
number of the warp group takes the place of the thread, and is made in a way that shows that a warp agrees on it: such
values stay in the registers from which products take descriptors.

A place that is a row and a column has a division and a remainder by the width of the tile.  Where both together are one
step for each turn of a loop, as for tiles of three boxes, the step takes their place.
"""

from __future__ import annotations

from itertools import pairwise
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
MOST_TURNS = 64  # of a loop whose turns are compared one by one


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
        self.turns: dict[Any, int] = {}  # variable of a loop from 0 -> how many turns it has
        along = axes.get("threadIdx.x")
        extent = None if along is None else constant(along.value)
        others = [axis for tag, axis in axes.items() if tag in ("threadIdx.y", "threadIdx.z")]
        if extent is not None and extent % GROUP == 0 and all(constant(axis.value) == 1 for axis in others):
            self.thread = along.node.var
            self.analyzer.bind(self.group, Range(0, extent // GROUP), True)

    def rewritten(self, body: Any) -> Any:
        tvm_ffi.structural_walk(body, (tir.For, self._note))
        body = tvm_ffi.structural_map(body, (tvm.ir.Call, self._short))
        if not self.grouped:
            return body
        number = tir.call_extern("int32", AGREED, tir.floordiv(self.thread, GROUP))
        return sequence([tir.Bind(self.group, number), body])

    def _note(self, node: Any) -> None:
        turns = constant(node.extent)
        if constant(node.min) == 0 and turns is not None and 1 < turns <= MOST_TURNS:
            self.turns[node.loop_var] = turns

    def _in_steps(self, place: Any) -> Any:
        """The place as a sum of steps, where divisions of the variable of a loop come to the same in every turn."""
        for var in [one for one in _divided(place) if one in self.turns]:
            at = [
                self.analyzer.simplify(substitute(place, {var: tir.const(n, dtype_of(var))}))
                for n in range(self.turns[var])
            ]
            step = self.analyzer.simplify(at[1] - at[0])
            if constant(step) is None:
                continue
            if all(constant(self.analyzer.simplify(b - a)) == constant(step) for a, b in pairwise(at)):
                place = at[0] + var * step
        return place

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
        units = self._in_steps(self.analyzer.simplify(tir.floordiv(place, UNIT)))
        return tir.call_pure_extern("uint64", AT, start, units, *call.args[2:])


def _divided(place: Any) -> list[Any]:
    """The variables of the dividends in a place, in order."""
    found: dict[Any, None] = {}

    def note(node: Any) -> None:
        found.update(dict.fromkeys(sorted(variables(node.a), key=lambda one: one.name)))

    tvm_ffi.structural_walk(place, ((tir.FloorDiv, tir.FloorMod), note))
    return list(found)
