"""Blocks with much to do start first, where the number of turns of a loop grows or shrinks along blockIdx.x.

Devices start blocks in the order of their numbers, and the last ones run while other multiprocessors have nothing left
to do: those should be short.  So the longest blocks start first, of several rows of the grid at a time: rows often
share what they read (the heads of an attention their keys), and all rows at a time would share too little.  Which block
does what changes; what all blocks do together does not.  Kernels with atomics keep their order: they may rely on it.
"""

from __future__ import annotations

from typing import Any

import tvm
import tvm_ffi
from tvm import tirx as tir
from tvm.ir import Range

from tilelang_nb.lowering.block_lengths import growth, placed_by_length
from tilelang_nb.lowering.rewrite import constant, dtype_of, has, statements

TOGETHER = 8  # rows of the grid
ORDERED = ("atom", "ptx.red", "grid")  # parts of names of calls that blocks may meet in


def longest_first(function: Any) -> Any:
    """The thread program with its blocks in this order; unchanged where they all do the same, or nothing is known."""
    axes: list[Any] = []
    inner = function.body
    while isinstance(inner, tir.AttrStmt) and inner.attr_key == "thread_extent":
        axes.append(inner)
        inner = inner.body
    found = {str(axis.node.thread_tag): axis for axis in axes}
    blocks = [found[tag] for tag in ("blockIdx.x", "blockIdx.y", "blockIdx.z") if tag in found]
    if len(blocks) < 2 or "blockIdx.x" not in found or any(dtype_of(one.node.var) != "int32" for one in blocks):
        return function
    extents = [constant(one.value) for one in blocks]
    first, rows = blocks[0], 1
    for extent in extents[1:]:
        rows *= extent or 0
    if not extents[0] or extents[0] < 2 or rows < 2 or _meets_others(function.body):
        return function
    change = growth(inner, first.node.var, extents[0])
    if change == 0:
        return function
    raw = {axis: tir.Var(f"{axis.node.var.name}_started", "int32") for axis in blocks}
    binds = _order(blocks, raw, extents[0], rows, change)
    body: Any = tir.SeqStmt([*binds, *statements(inner)])
    for axis in reversed(axes):
        node = axis.node
        if axis in raw:
            node = tir.IterVar(Range(0, axis.value), raw[axis], tir.IterVar.ThreadIndex, str(axis.node.thread_tag))
        body = tir.AttrStmt(node, axis.attr_key, axis.value, body, axis.span)
    return function.with_body(body)


def _order(blocks: list[Any], raw: dict[Any, Any], width: int, rows: int, change: int) -> list[Any]:
    """The names of the block, made from the number with which it starts."""
    binds: list[Any] = []

    def named(name: str, value: Any) -> Any:
        variable = tir.Var(name, "int32")
        binds.append(tir.Bind(variable, value))
        return variable

    number: Any = raw[blocks[-1]]
    for axis in reversed(blocks[:-1]):
        number = number * axis.value + raw[axis]
    first, row = placed_by_length(number, width, rows, TOGETHER, change, named)
    binds.append(tir.Bind(blocks[0].node.var, first, blocks[0].span))
    if len(blocks) == 2:
        binds.append(tir.Bind(blocks[1].node.var, row, blocks[1].span))
    else:
        row = named("row", row)
        binds.append(tir.Bind(blocks[1].node.var, tir.floormod(row, blocks[1].value), blocks[1].span))
        binds.append(tir.Bind(blocks[2].node.var, tir.floordiv(row, blocks[1].value), blocks[2].span))
    return binds


def _meets_others(body: Any) -> bool:
    def call(one: Any) -> Any:
        name = getattr(one.op, "name", "")
        if name == "tirx.call_extern":
            name = str(one.args[0].value)
        return tvm_ffi.VisitInterrupt(one) if any(part in name for part in ORDERED) else None

    return has(body, tir.While) or isinstance(
        tvm_ffi.structural_walk(body, (tvm.ir.Call, call)), tvm_ffi.VisitInterrupt
    )
