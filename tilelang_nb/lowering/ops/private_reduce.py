"""T.reduce_* of per-thread arrays: every thread reduces its own, nothing is exchanged."""

from __future__ import annotations

from typing import Any

from tvm import tirx as tir

from tilelang_nb.language.tile_program import TileCall

from ..context import LaunchContext
from ..rewrite import constant, dtype_of, sequence
from .combining import accumulator, combine, finished, identity, prepared
from .elementwise import at


def expand(call: TileCall, launch: LaunchContext) -> tir.Stmt:
    """Serial loops over the result and, inside, over the reduced dimension.  Operands as for `reduce`."""
    source, target = call["source"], call["target"]
    operation, dim, nan = call["operation"], call.integer("dim"), call.boolean("nan_propagate")
    dtype = accumulator(operation, str(source.buffer.dtype), str(target.buffer.dtype))
    total = launch.local(1, dtype, "total")
    kept = [d for d in range(len(source.extent)) if d != dim]
    loops = [tir.Var("ijkl"[n] if n < 4 else f"i{n}", "int32") for n in range(len(kept))]
    turn, element = tir.Var("r", "int32"), tir.Var("element", dtype)
    offsets: list[Any] = [turn] * len(source.extent)
    for d, var in zip(kept, loops):
        offsets[d] = var
    held = tir.BufferLoad(total, [0])
    value = tir.BufferLoad(source.buffer, at(source, range(len(offsets)), offsets))
    inner = tir.SeqStmt(
        [
            tir.Bind(element, prepared(operation, value, dtype)),
            tir.BufferStore(total, combine(operation, held, element, nan), [0]),
        ]
    )
    # The target has the kept dimensions, perhaps one of extent 1 in place of the reduced one.
    places: list[Any] = list(loops)
    if len(target.extent) > len(kept):
        places.insert(dim if kept else 0, tir.const(0, "int32"))
    index = at(target, range(len(places)), places)
    result: Any = held
    if not call.boolean("clear"):
        old = tir.BufferLoad(target.buffer, index)
        result = combine(operation, old if dtype_of(old) == dtype else tir.Cast(dtype, old), held, nan)
    body: Any = tir.SeqStmt(
        [
            tir.BufferStore(total, identity(operation, dtype), [0]),
            tir.For(turn, 0, constant(source.extent[dim]), tir.ForKind.SERIAL, inner),
            tir.BufferStore(target.buffer, finished(operation, result, str(target.buffer.dtype)), index),
        ]
    )
    for var, d in zip(reversed(loops), reversed(kept)):
        body = tir.For(var, 0, constant(source.extent[d]), tir.ForKind.SERIAL, body)
    return sequence([tir.AllocBuffer(total), body], call.span)
