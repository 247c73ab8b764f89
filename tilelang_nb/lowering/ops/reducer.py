"""Reducers: every thread contributes to a copy of its own, finalize_reducer combines the copies.

tl.reducer names the operation. A start value (T.fill) counts once: for sums, exclusive or and the like only the
first thread starts with it, the others with the identity. finalize_reducer leaves the result in every thread's
copy, or in a target fragment of any layout.
"""

from __future__ import annotations

import math
from typing import Any

from tvm import tirx as tir

from tilelang_nb.language.tile_program import TileCall
from tilelang_nb.layout.fragment import Digit, uniform

from ..context import Inference, LaunchContext
from ..rewrite import nothing, sequence
from .all_reduce import Columns, all_reduce, unrolled
from .combining import accumulator, combine, finished, identity, prepared
from .elementwise import converted
from .reduce import flat, inside

_REPEATABLE = ("max", "min", "bitand", "bitor")  # combining a value with itself changes nothing


def constrain(call: TileCall, inference: Inference) -> None:
    """Every thread has all of a reducer; a target without a layout gets the same."""
    fields = {"reducer": ("buffer",), "fill": ("target",), "finalize_reducer": ("buffer", "target")}[call.name]
    for field in fields:
        if call[field] is not None and inference.layout(call[field].buffer) is None:
            buffer = call[field].buffer
            shape = tuple(int(extent) for extent in buffer.ty.shape)
            inference.settle(buffer, uniform(shape, inference.threads), call.span)


def lower(call: TileCall, launch: LaunchContext) -> tir.Stmt:
    """tl.reducer, tl.fill of a reducer, tl.finalize_reducer."""
    operations = launch.facts.setdefault("reducer operations", {})
    if call.name == "reducer":
        operations[call["buffer"].buffer] = call["operation"]
        return nothing(call.span)
    buffer = call["target" if call.name == "fill" else "buffer"].buffer
    operation = operations.get(buffer, "sum")
    return (
        _start(call, buffer, operation, launch) if call.name == "fill" else _finalize(call, buffer, operation, launch)
    )


def _start(call: TileCall, buffer: Any, operation: str, launch: LaunchContext) -> tir.Stmt:
    registers, dtype = launch.registers[buffer], str(buffer.dtype)
    value = converted(call["value"], dtype)
    if operation not in _REPEATABLE and not _is_identity(value, operation, dtype):
        first = tir.EQ(launch.thread, tir.const(0, "int32"))
        value = tir.Select(first, value, identity(operation, dtype))
    count = launch.layouts[buffer].register_count
    return unrolled("k", count, lambda k: tir.BufferStore(registers, value, [k]))


def _is_identity(value: Any, operation: str, dtype: str) -> bool:
    known = identity(operation, dtype)
    return isinstance(value, tir.IntImm | tir.FloatImm) and value.value == known.value


def _finalize(call: TileCall, buffer: Any, operation: str, launch: LaunchContext) -> tir.Stmt:
    registers, count = launch.registers[buffer], launch.layouts[buffer].register_count
    dtype = accumulator(operation, str(buffer.dtype), str(buffer.dtype))
    part = launch.local(count, dtype, "part")
    two = launch.thread_count & -launch.thread_count
    digits = [Digit(two, "thread", 1)] if two > 1 else []
    if launch.thread_count > two:
        digits.append(Digit(launch.thread_count // two, "thread", two))
    statements = [
        tir.AllocBuffer(part),
        unrolled(
            "k",
            count,
            lambda k: tir.BufferStore(part, prepared(operation, tir.BufferLoad(registers, [k]), dtype), [k]),
        ),
        all_reduce(
            part, count, digits, lambda old, new: combine(operation, old, new), Columns(count, lambda k: k), launch
        ),
    ]
    if call["target"] is None:
        statements.append(unrolled("k", count, lambda k: _give(registers, k, part, k, operation)))
        return sequence(statements, call.span)
    target = call["target"].buffer
    wanted = launch.layouts[target]
    shape = launch.layouts[buffer].shape
    size = math.prod(shape)

    def take(k: Any) -> Any:
        index = wanted.inverse(launch.thread, k)
        statement = _give(launch.registers[target], k, part, flat(shape, index) if size > 1 else 0, operation)
        valid = inside(wanted, index)
        return statement if valid is None else tir.IfThenElse(valid, statement, None)

    statements.append(unrolled("k", wanted.register_count, take))
    return sequence(statements, call.span)


def _give(registers: Any, register: Any, part: Any, index: Any, operation: str) -> tir.Stmt:
    value = finished(operation, tir.BufferLoad(part, [index]), str(registers.dtype))
    return tir.BufferStore(registers, value, [register])
