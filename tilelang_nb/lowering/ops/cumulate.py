"""T.cumsum, T.cummax: running sum or maximum along one dimension of a shared tile.

source, target: regions of shared memory with the same extents, perhaps the same region. The lines along the
dimension are dealt to the threads, every line is one thread's; narrow floats are accumulated in float32 and rounded
at every element. NaN propagates, as in NumPy.
"""

from __future__ import annotations

from typing import Any

from tvm import tirx as tir

from tilelang_nb.language.tile_program import TileCall

from ..context import LaunchContext
from ..rewrite import constant, sequence
from .all_reduce import PARALLEL
from .combining import accumulator, combine, finished, identity, prepared
from .elementwise import at


def lower(call: TileCall, launch: LaunchContext) -> tir.Stmt:
    """Lines in parallel, elements of a line one after another."""
    source, target = call["source"], call["target"]
    operation, dim = call["operation"], call.integer("dim")
    extents = [constant(extent) or 1 for extent in source.extent]
    length, others = extents[dim], [d for d in range(len(extents)) if d != dim]
    lines = 1
    for d in others:
        lines *= extents[d]
    dtype = accumulator(operation, str(source.buffer.dtype), str(target.buffer.dtype))
    total = launch.local(1, dtype, "total")
    turn, step = tir.Var("turn", "int32"), tir.Var("step", "int32")
    turns = -(-lines // launch.thread_count)
    line = launch.thread if turns == 1 else turn * launch.thread_count + launch.thread
    position: Any = (length - 1) - step if call.boolean("reverse") else step
    offsets: list[Any] = [position] * len(extents)
    inner = 1
    for d in reversed(others):
        index = line if inner == 1 else tir.floordiv(line, inner)
        offsets[d] = index if d == others[0] else tir.floormod(index, extents[d])
        inner *= extents[d]
    dims = range(len(extents))
    element = tir.Var("element", dtype)
    value = prepared(operation, tir.BufferLoad(source.buffer, at(source, dims, offsets)), dtype)
    joined = combine(operation, tir.BufferLoad(total, [0]), element)
    result = finished(operation, tir.BufferLoad(total, [0]), str(target.buffer.dtype))
    along = tir.For(
        step,
        0,
        length,
        tir.ForKind.SERIAL,
        tir.SeqStmt(
            [
                tir.Bind(element, value),
                tir.BufferStore(total, joined, [0]),
                tir.BufferStore(target.buffer, result, at(target, dims, offsets)),
            ]
        ),
        annotations=PARALLEL,
    )
    body: Any = tir.SeqStmt([tir.BufferStore(total, identity(operation, dtype), [0]), along])
    if lines != turns * launch.thread_count:
        body = tir.IfThenElse(tir.LT(line, tir.const(lines, "int32")), body, None)
    if turns > 1:
        body = tir.For(turn, 0, turns, tir.ForKind.SERIAL, body, annotations=PARALLEL)
    return sequence([tir.AllocBuffer(total), body], call.span)
