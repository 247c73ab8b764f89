"""Combining the registers of threads that differ in some digits of the thread index.

Within a warp by shuffles, over warps (and for parts of the thread count that are no power of two) through shared
memory. Afterwards all these threads hold the result, bit for bit the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tvm import tirx as tir

from tilelang_nb.layout.fragment import Digit, Fragment

from ..context import LaunchContext
from ..rewrite import sequence

PARALLEL = {"tl.parallel": 1}  # turns have no order: no barrier is needed between them
WARP = 32


def unrolled(name: str, extent: int, body: Callable[[Any], Any], unordered: bool = False) -> Any:
    """`for name in unroll(extent): body(name)`; no loop for one turn."""
    if extent == 1:
        return body(tir.const(0, "int32"))
    var = tir.Var(name, "int32")
    annotations = PARALLEL if unordered else None
    return tir.For(var, 0, extent, tir.ForKind.UNROLLED, body(var), annotations=annotations)


@dataclass(frozen=True)
class Columns:
    """Where the registers of a thread go in a row of staging memory.

    count: columns in all; column: of a register; valid: whether a register holds anything (None: always).
    writes: which of the threads with equal values writes them (None: any).
    """

    count: int
    column: Callable[[Any], Any]
    valid: Callable[[Any], Any] | None = None
    writes: Any = None


def split_digits(digits: Sequence[Digit]) -> tuple[list[int], list[Digit]]:
    """The distances of shuffles, and the digits that are left for shared memory."""
    steps: list[int] = []
    rest: list[Digit] = []
    for digit in digits:
        if digit.extent & (digit.extent - 1) or digit.stride & (digit.stride - 1) or digit.stride >= WARP:
            rest.append(digit)
            continue
        inner = min(digit.extent, WARP // digit.stride)
        steps += [digit.stride << bit for bit in range(inner.bit_length() - 1)]
        if inner < digit.extent:
            rest.append(Digit(digit.extent // inner, "thread", digit.stride * inner))
    return steps, rest


def shuffle_mask(launch: LaunchContext) -> Any:
    """The lanes that take part: all of a warp, or those that exist where the threads do not fill the last one."""
    count = launch.thread_count
    if count % WARP == 0:
        return tir.const(0xFFFFFFFF, "uint32")
    partial = tir.const((1 << count % WARP) - 1, "uint32")
    if count < WARP:
        return partial
    return tir.Select(launch.thread < count // WARP * WARP, tir.const(0xFFFFFFFF, "uint32"), partial)


def all_reduce(
    part: Any,
    registers: int,
    digits: Sequence[Digit],
    join: Callable[[Any, Any], Any],
    columns: Columns,
    launch: LaunchContext,
) -> Any:
    """Combine `part[0:registers]` over the threads that differ in `digits`; join(old load, new value) combines two."""
    steps, rest = split_digits(digits)
    statements = []
    for step in reversed(steps):

        def shuffle(k: Any, step: int = step) -> Any:
            mine = tir.BufferLoad(part, [k])
            theirs = tir.call_extern(
                str(part.dtype), "__shfl_xor_sync", shuffle_mask(launch), mine, tir.const(step, "int32")
            )
            return _update(part, k, join, theirs)

        statements.append(unrolled("k", registers, shuffle))
    if rest:
        statements.append(_through_shared(part, registers, steps, digits, rest, join, columns, launch))
    return sequence(statements)


def _update(part: Any, k: Any, join: Callable[[Any, Any], Any], value: Any) -> Any:
    """`part[k] = join(part[k], value)`, the value computed once."""
    name = tir.Var("other", value.ty)
    return tir.SeqStmt([tir.Bind(name, value), tir.BufferStore(part, join(tir.BufferLoad(part, [k]), name), [k])])


def _through_shared(
    part: Any,
    registers: int,
    steps: list[int],
    digits: Sequence[Digit],
    rest: list[Digit],
    join: Callable[[Any, Any], Any],
    columns: Columns,
    launch: LaunchContext,
) -> Any:
    rows = 1
    row: Any = tir.const(0, "int32")
    for digit in rest:
        row = row + Fragment.part(launch.thread, digit, launch.thread_count) * rows
        rows *= digit.extent
    stage = launch.scratch((rows, columns.count), str(part.dtype), "partial")
    first = columns.writes  # one of the threads that hold equal values
    for digit in digits:
        for step in steps:
            if digit.stride <= step < digit.stride * digit.extent:
                bit = Fragment.part(launch.thread, Digit(2, "thread", step), launch.thread_count)
                zero = tir.EQ(bit, tir.const(0, "int32"))
                first = zero if first is None else tir.And(first, zero)

    def when_valid(k: Any, statement: Any) -> Any:
        return statement if columns.valid is None else tir.IfThenElse(columns.valid(k), statement, None)

    def store(k: Any) -> Any:
        return when_valid(k, tir.BufferStore(stage, tir.BufferLoad(part, [k]), [row, columns.column(k)]))

    def gather(k: Any) -> Any:
        column = columns.column(k)
        start = tir.BufferStore(part, tir.BufferLoad(stage, [0, column]), [k])
        if rows == 1:
            return when_valid(k, start)
        r = tir.Var("r", "int32")
        more = tir.For(r, 1, rows - 1, tir.ForKind.SERIAL, _update(part, k, join, tir.BufferLoad(stage, [r, column])))
        return when_valid(k, tir.SeqStmt([start, more]))

    writing = unrolled("k", registers, store, unordered=True)
    writing = writing if first is None else tir.IfThenElse(first, writing, None)
    return tir.SeqStmt([writing, unrolled("k", registers, gather, unordered=True)])
