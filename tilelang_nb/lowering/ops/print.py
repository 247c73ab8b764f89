"""T.print: a scalar is printed by every thread that executes the statement, a buffer once per block, in order of
its elements.

`tl_print(message, value, description, index...)`: each `{}` of the description stands for one index.
"""

from __future__ import annotations

from typing import Any

from tvm import tirx as tir
from tvm.ir import StringImm

from tilelang_nb.language.tile_program import RegionOperand, TileCall

from ..context import FRAGMENT, LaunchContext
from ..rewrite import scope, sequence
from .all_reduce import unrolled
from .elementwise import at
from .reduce import inside


def lower(call: TileCall, launch: LaunchContext) -> tir.Stmt:
    """message: text or None; value: a region, an expression or None."""
    message, value = call["message"] or "", call["value"]
    if value is None:
        return tir.Evaluate(tir.call_extern("void", "tl_print", StringImm(message)), call.span)
    if not isinstance(value, RegionOperand):
        return tir.Evaluate(tir.call_extern("void", "tl_print", StringImm(message), value, StringImm("")), call.span)
    memory = scope(value.buffer)
    if memory == FRAGMENT:
        stage = launch.scratch(tuple(int(n) for n in value.buffer.ty.shape), str(value.buffer.dtype), "printed")
        shown = RegionOperand(stage, value.begin, value.extent)
        statements = [_staged(value.buffer, stage, launch), _once(_elements(call, message, value, shown), launch)]
        return sequence(statements, call.span)
    printing = _elements(call, message, value, value)
    return printing if memory in ("local", "local.var") else _once(printing, launch)


def _once(statement: tir.Stmt, launch: LaunchContext) -> tir.Stmt:
    return tir.IfThenElse(tir.EQ(launch.thread, tir.const(0, "int32")), statement, None)


def _elements(call: TileCall, message: str, named: RegionOperand, shown: RegionOperand) -> tir.Stmt:
    """Print the elements of `shown` under the name of `named`."""
    loops = [tir.Var("ijkl"[d] if d < 4 else f"i{d}", "int32") for d in range(len(shown.extent))]
    index = at(shown, range(len(loops)), loops)
    description = f"{named.buffer.name}[{', '.join('{}' for _ in loops)}]"
    load = tir.BufferLoad(shown.buffer, index)
    statement: Any = tir.Evaluate(
        tir.call_extern("void", "tl_print", StringImm(message), load, StringImm(description), *index), call.span
    )
    for var, extent in zip(reversed(loops), reversed(shown.extent)):
        statement = tir.For(var, 0, extent, tir.ForKind.SERIAL, statement, span=call.span)
    return statement


def _staged(fragment: Any, stage: Any, launch: LaunchContext) -> tir.Stmt:
    """Every element of a fragment into shared memory, by one of the threads that hold it."""
    layout, registers = launch.layouts[fragment], launch.registers[fragment]

    def give(k: Any) -> Any:
        index = layout.inverse(launch.thread, k)
        statement = tir.BufferStore(stage, tir.BufferLoad(registers, [k]), list(index))
        valid = inside(layout, index)
        return statement if valid is None else tir.IfThenElse(valid, statement, None)

    giving = unrolled("k", layout.register_count, give, unordered=True)
    if not layout.is_replicated:
        return giving
    return tir.IfThenElse(tir.EQ(layout.replica(launch.thread), tir.const(0, "int32")), giving, None)
