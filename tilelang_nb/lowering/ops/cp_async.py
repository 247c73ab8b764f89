"""T.ptx_cp_async: neighbours of one row from global to shared memory, by each executing thread.

Operands: two regions of 4, 8 or 16 bytes and of one type, and the condition under which the source is read; otherwise
zeros arrive.  As a loop over the elements that need not be over when the next statement runs; start-copies makes it
one instruction.
"""

from __future__ import annotations

from typing import Any

from tvm import tirx as tir

from tilelang_nb.language.tile_program import RegionOperand, TileCall

from ..rewrite import constant, dtype_of
from .copy import ASYNCHRONOUS


def expand(call: TileCall, launch: Any) -> Any:
    """A vector, in a loop of one turn that carries the mark."""
    target, source, condition = call["target"], call["source"], call["predicate"]
    count = constant(target.extent[-1]) or 1
    lane = tir.Var("lane", dtype_of(target.begin[-1]))

    def indices(side: RegionOperand) -> list[Any]:
        last = side.begin[-1]
        return [*side.begin[:-1], last if count == 1 else last + lane]

    value = tir.BufferLoad(source.buffer, indices(source))
    if condition is not None:
        dtype = dtype_of(source.buffer)
        zero = tir.const(0, dtype)
        value = tir.if_then_else(condition, value, zero)
    store: Any = tir.BufferStore(target.buffer, value, indices(target), call.span)
    if count > 1:
        zero = tir.const(0, dtype_of(lane))
        extent = tir.const(count, dtype_of(lane))
        store = tir.For(lane, zero, extent, tir.ForKind.VECTORIZED, store, span=call.span)
    turn = tir.Var("copied", "int32")
    once = tir.const(0, "int32"), tir.const(1, "int32")
    return tir.For(turn, *once, tir.ForKind.SERIAL, store, annotations={ASYNCHRONOUS: 1}, span=call.span)
