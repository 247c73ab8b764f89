"""T.tvm_thread_allreduce: one value of each thread, combined over the threads that differ along some axes.

value: a number of the target's type; target: one element of local memory. digits: the axes, "extent:stride" each in
the index of the thread. All threads of the block take part; afterwards each holds the total of its own row.
"""

from __future__ import annotations

from typing import Any

from tvm import tirx as tir

from tilelang_nb.language.tile_program import TileCall
from tilelang_nb.layout.fragment import Digit, Fragment
from tilelang_nb.source import catalogue as say

from ..context import LaunchContext
from ..rewrite import nothing, sequence
from .all_reduce import Columns, all_reduce
from .combining import accumulator, combine, finished, prepared


def lower(call: TileCall, launch: LaunchContext) -> tir.Stmt:
    """By shuffles and through shared memory, whatever the axes are."""
    if launch.thread_count != launch.threads:
        message = say.LaunchConfiguration(
            problem="`T.tvm_thread_allreduce` in some of the warp groups", remedy="move it out of `with T.ws(...)`"
        )
        launch.report(message, call.span)
        return nothing(call.span)
    target, operation = call["target"], call["operation"]
    dtype = accumulator(operation, str(target.buffer.dtype), str(target.buffer.dtype))
    digits = _digits(call["digits"]) if call["digits"] else []
    part = launch.local(1, dtype, "part")
    total = finished(operation, tir.BufferLoad(part, [0]), str(target.buffer.dtype))
    statements = [
        tir.AllocBuffer(part),
        tir.BufferStore(part, prepared(operation, call["value"], dtype), [0]),
        all_reduce(part, 1, digits, lambda a, b: combine(operation, a, b), _columns(digits, launch), launch),
        tir.BufferStore(target.buffer, total, list(target.begin)),
    ]
    return sequence(statements, call.span)


def _digits(text: str) -> list[Digit]:
    pairs = [pair.split(":") for pair in text.split(",")]
    return [Digit(int(extent), "thread", int(stride)) for extent, stride in pairs]


def _columns(digits: list[Digit], launch: LaunchContext) -> Columns:
    """A column of staging memory for every set of threads that combine: the index of a thread without the digits."""
    column: Any = tir.const(0, "int32")
    count, reached = 1, 1
    for digit in [*sorted(digits, key=lambda digit: digit.stride), None]:
        until = launch.threads if digit is None else digit.stride
        if until > reached:
            between = Digit(until // reached, "thread", reached)
            column = column + Fragment.part(launch.thread, between, launch.thread_count) * count
            count *= between.extent
        reached = until if digit is None else digit.stride * digit.extent
    return Columns(count, lambda k: column)
