"""T.reduce_*: combine the elements of a fragment along one dimension.

source: fragment [.., n, ..]; target: fragment of the same shape without the dimension, or with extent 1 there ([1]
for a source of one dimension). The result lies in the threads that hold the row, all of them: its layout is the
projection of the source. With clear=False the old value of the target takes part once. NaN propagates through max,
min and absmax unless nan_propagate=False. Float results narrower than float32 are combined in float32 and rounded
once.
"""

from __future__ import annotations

from typing import Any

from tvm import tirx as tir

from tilelang_nb.language.tile_program import TileCall
from tilelang_nb.layout.fragment import Digit, Fragment, arrange

from ..context import Inference, LaunchContext
from ..rewrite import dtype_of, sequence
from .all_reduce import Columns, all_reduce, unrolled
from .combining import accumulator, combine, finished, identity, prepared


def constrain(call: TileCall, inference: Inference) -> None:
    """The result has the projection of the source."""
    source, target = call["source"].buffer, call["target"].buffer
    layout = inference.layout(source)
    if layout is not None and inference.layout(target) is None:
        inference.settle(target, result_layout(layout, _shape(target), call.integer("dim")), call.span)


def result_layout(source: Fragment, shape: tuple[int, ...], dim: int) -> Fragment:
    """The source without the reduced dimension, for a target that may keep it with extent 1."""
    kept = [d for d in range(len(source.shape)) if d != dim]
    digits: list[tuple[Digit, ...]] = [source.digits[d] for d in kept]
    if len(shape) > len(kept):
        digits.insert(dim, ())
    return arrange(shape, digits, source.threads)


def _shape(buffer: Any) -> tuple[int, ...]:
    return tuple(int(extent) for extent in buffer.ty.shape)


def lower(call: TileCall, launch: LaunchContext) -> tir.Stmt:
    """In the thread, between the lanes of a warp, between warps; then the result to where the target wants it."""
    source, target = call["source"].buffer, call["target"].buffer
    layout, wanted = launch.layouts[source], launch.layouts[target]
    operation, dim, nan = call["operation"], call.integer("dim"), call.boolean("nan_propagate")
    dtype = accumulator(operation, str(source.dtype), str(target.dtype))
    held = result_layout(layout, wanted.shape, dim)
    part = launch.local(held.register_count, dtype, "part")

    def join(old: Any, new: Any) -> Any:
        return combine(operation, old, new, nan)

    columns = _columns(held, launch)
    digits = [digit for digit in layout.digits[dim] if digit.on_thread]
    statements = [
        tir.AllocBuffer(part),
        _in_thread(call, layout, dim, part, dtype, launch),
        all_reduce(part, held.register_count, digits, join, columns, launch),
    ]

    def finish(register: Any, value: Any) -> Any:
        registers = launch.registers[target]
        if not call.boolean("clear"):
            old = tir.BufferLoad(registers, [register])
            # The old content takes part as it is; absolute values are those of the elements.
            value = combine(operation, _cast(old, dtype), value, nan)
        return tir.BufferStore(registers, finished(operation, value, str(target.dtype)), [register])

    if held == wanted:

        def store(k: Any) -> Any:
            statement = finish(k, tir.BufferLoad(part, [k]))
            valid = None if columns.valid is None else columns.valid(k)
            return statement if valid is None else tir.IfThenElse(valid, statement, None)

        statements.append(unrolled("k", held.register_count, store))
    else:
        statements.append(_moved(part, held, columns, wanted, finish, launch))
    return sequence(statements, call.span)


def _cast(value: Any, dtype: str) -> Any:
    return value if dtype_of(value) == dtype else tir.Cast(dtype, value)


def inside(layout: Fragment, index: tuple[Any, ...]) -> Any:
    """Whether an index is an element and not padding; None where there is no padding."""
    condition = None
    for dim in layout.padded_dims:
        test = tir.LT(index[dim], tir.const(layout.shape[dim], "int32"))
        condition = test if condition is None else tir.And(condition, test)
    return condition


def flat(shape: tuple[int, ...], index: tuple[Any, ...]) -> Any:
    """Row-major element number."""
    result: Any = tir.const(0, "int32")
    for extent, value in zip(shape, index):
        result = result * extent + value
    return result


def _columns(held: Fragment, launch: LaunchContext) -> Columns:
    count = 1
    for extent in held.shape:
        count *= extent
    return Columns(
        count,
        lambda k: flat(held.shape, held.inverse(launch.thread, k)),
        (lambda k: inside(held, held.inverse(launch.thread, k))) if held.padded_dims else None,
    )


def _in_thread(call: TileCall, layout: Fragment, dim: int, part: Any, dtype: str, launch: LaunchContext) -> tir.Stmt:
    """`part[k]`: the elements of the row that this thread holds, combined."""
    operation, nan = call["operation"], call.boolean("nan_propagate")
    source = launch.registers[call["source"].buffer]
    reduced = {digit for digit in layout.digits[dim] if not digit.on_thread}
    every = layout.register_digits()
    loops = {digit: tir.Var("k" if digit not in reduced else "r", "int32") for digit in every}
    for digit in every:
        if digit.extent == 1:
            loops[digit] = tir.const(0, "int32")
    register: Any = tir.const(0, "int32")
    row: Any = tir.const(0, "int32")
    for digit in every:
        register = register + loops[digit] * digit.stride
        if digit not in reduced:
            row = row * digit.extent + loops[digit]
    value = prepared(operation, tir.BufferLoad(source, [register]), dtype)
    element = tir.Var("element", value.ty)
    body: Any = tir.SeqStmt(
        [
            tir.Bind(element, value),
            tir.BufferStore(part, combine(operation, tir.BufferLoad(part, [row]), element, nan), [row]),
        ]
    )
    if layout.padded_dims:
        index = layout.place(launch.thread, lambda digit: loops[digit])
        body = tir.IfThenElse(inside(layout, index), body, None)
    for digit in sorted(every, key=lambda digit: (digit in reduced, -digit.stride), reverse=True):
        body = tir.For(loops[digit], 0, digit.extent, tir.ForKind.UNROLLED, body)
    clear = unrolled("k", int(part.ty.shape[0]), lambda k: tir.BufferStore(part, identity(operation, dtype), [k]))
    return tir.SeqStmt([clear, body])


def _moved(
    part: Any, held: Fragment, columns: Columns, wanted: Fragment, finish: Any, launch: LaunchContext
) -> tir.Stmt:
    """The target has another layout than the result: through shared memory."""
    stage = launch.scratch((columns.count,), str(part.dtype), "result")

    def give(k: Any) -> Any:
        statement = tir.BufferStore(stage, tir.BufferLoad(part, [k]), [columns.column(k)])
        return statement if columns.valid is None else tir.IfThenElse(columns.valid(k), statement, None)

    def take(register: Any) -> Any:
        index = wanted.inverse(launch.thread, register)
        statement = finish(register, tir.BufferLoad(stage, [flat(wanted.shape, index)]))
        valid = inside(wanted, index)
        return statement if valid is None else tir.IfThenElse(valid, statement, None)

    owner = tir.EQ(held.replica(launch.thread), tir.const(0, "int32")) if held.is_replicated else None
    giving = unrolled("k", held.register_count, give, unordered=True)
    return tir.SeqStmt(
        [
            giving if owner is None else tir.IfThenElse(owner, giving, None),
            unrolled("k", wanted.register_count, take, unordered=True),
        ]
    )
