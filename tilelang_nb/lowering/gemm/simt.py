"""Matrix multiply-accumulate on CUDA cores: each thread owns a part of C and walks k.

For every k a thread loads a column of its rows of A and a row of its columns of B into registers and adds their
outer product. Operands are converted to the accumulator type first, so products are exact; a float16 C is
accumulated in float32 and rounded once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from tvm import tirx as tir

from tilelang_nb.language.tile_program import RegionOperand, TileCall
from tilelang_nb.layout.fragment import Digit, Fragment, arrange

from ..context import Inference, LaunchContext
from ..ops.all_reduce import unrolled
from ..ops.elementwise import at
from ..rewrite import constant, dtype_of, sequence

_VECTOR = 4  # neighbouring columns of a thread


def constrain(call: TileCall, inference: Inference) -> None:
    """Settles C, unless it has a layout: any layout of C can be served."""
    buffer = call["c"].buffer
    if inference.layout(buffer) is None:
        shape = tuple(int(extent) for extent in buffer.ty.shape)
        inference.settle(buffer, accumulator_layout(shape, inference.threads, call["policy"]), call.span)


def accumulator_layout(shape: tuple[int, ...], threads: int, policy: str) -> Fragment:
    """A grid of threads over C.

    How rows are dealt out depends on the number of rows, the threads and the policy alone, so that products with
    different numbers of columns agree on their rows and a row vector serves them all.
    """
    rows, columns = shape[-2:]
    two = threads & -threads
    odd = threads // two
    bits = two.bit_length() - 1
    down = {"full_row": max(bits - 2, (bits + 1) // 2), "full_col": min(bits, 3)}.get(policy, (bits + 1) // 2)
    down = 1 << min(down, (rows - 1).bit_length())
    across = two // down
    vector = next(width for width in (_VECTOR, 2, 1) if columns % width == 0)
    while vector > 1 and columns < across * vector:
        vector //= 2
    row = [Digit(down, "thread", across)]  # the same stride for every number of columns
    across = min(across, 1 << (-(-columns // vector) - 1).bit_length())
    per_row = -(-rows // down)
    if odd > 1 and per_row > 1:
        row.insert(0, Digit(odd, "thread", two))
        per_row = -(-per_row // odd)
    row.insert(0, Digit(per_row, "register", 2))
    column = [
        Digit(-(-columns // (across * vector)), "register", 1),
        Digit(across, "thread", 1),
        Digit(vector, "register", 0),
    ]
    return arrange(shape, [(), ()][: len(shape) - 2] + [row, column], threads)


@dataclass(frozen=True)
class _Side:
    """The rows (or columns) of C that a thread owns.

    count: how many; index: the row by a counter from 0 to count - 1; register: its part of the register number.
    """

    count: int
    index: Callable[[Any], Any]
    register: Callable[[Any], Any]


def _side(layout: Fragment, dim: int, launch: LaunchContext) -> _Side:
    digits, weights = layout.digits[dim], layout.weights(dim)
    registers = sorted((d for d in digits if not d.on_thread), key=lambda digit: -digit.stride)
    count = 1
    for digit in registers:
        count *= digit.extent

    def parts(counter: Any) -> dict[Digit, Any]:
        values, inner = {}, count
        for digit in registers:
            inner //= digit.extent
            value = counter if inner == 1 else tir.floordiv(counter, inner)
            values[digit] = value if digit is registers[0] else tir.floormod(value, digit.extent)
        return values

    def index(counter: Any) -> Any:
        values, result = parts(counter), tir.const(0, "int32")
        for digit, weight in zip(digits, weights):
            value = Fragment.part(launch.thread, digit, layout.threads) if digit.on_thread else values[digit]
            result = result + value * weight
        return result

    def register(counter: Any) -> Any:
        if registers and all(outer.stride == inner.stride * inner.extent for outer, inner in pairwise(registers)):
            return counter * registers[-1].stride
        result: Any = tir.const(0, "int32")
        for digit, value in parts(counter).items():
            result = result + value * digit.stride
        return result

    return _Side(count, index, register)


def lower(call: TileCall, launch: LaunchContext) -> tir.Stmt:
    """The product for the C registers of one thread."""
    c = call["c"].buffer
    layout, registers = launch.layouts[c], launch.registers[c]
    a, b = call["a"], call["b"]
    depth = constant(a.extent[-2 if call.boolean("transpose_a") else -1])
    narrow = str(c.dtype) in ("float16", "bfloat16")
    dtype = "float32" if narrow else str(c.dtype)
    row, column = _side(layout, len(layout.shape) - 2, launch), _side(layout, len(layout.shape) - 1, launch)
    left, right = launch.local(row.count, dtype, "a"), launch.local(column.count, dtype, "b")
    total = launch.local(layout.register_count, dtype, "total") if narrow else registers
    statements: list[Any] = [tir.AllocBuffer(buffer) for buffer in ([left, right, total] if narrow else [left, right])]

    def over_elements(body: Callable[[Any], Any]) -> tir.Stmt:
        return _over_elements(row, column, layout, body)

    statements += _start(call, registers, total, layout.register_count, over_elements)
    k = tir.Var("k", "int32")

    def fetch(side: _Side, into: Any, region: RegionOperand, limit: int, padded: bool, transposed: bool) -> tir.Stmt:
        def one(counter: Any) -> Any:
            index = side.index(counter)
            if padded:  # what it loads there is not used
                index = tir.min(index, limit - 1)
            offsets = [k, index] if transposed else [index, k]
            return tir.BufferStore(into, _converted(_element(region, offsets), dtype), [counter])

        return unrolled("i", side.count, one)

    shape, padded = layout.shape, layout.padded_dims
    last = len(shape) - 1
    body = [
        fetch(row, left, a, shape[-2], last - 1 in padded, call.boolean("transpose_a")),
        fetch(column, right, b, shape[-1], last in padded, not call.boolean("transpose_b")),
        _outer_product(row, column, left, right, total, layout),
    ]
    statements.append(tir.For(k, 0, depth, tir.ForKind.SERIAL, tir.SeqStmt(body)))
    if narrow:
        statements.append(
            over_elements(
                lambda register: tir.BufferStore(
                    registers, tir.Cast(str(c.dtype), tir.BufferLoad(total, [register])), [register]
                )
            )
        )
    return sequence(statements, call.span)


def _element(region: RegionOperand, offsets: Sequence[Any]) -> Any:
    rank = len(region.extent)
    return tir.BufferLoad(region.buffer, at(region, (rank - 2, rank - 1), offsets))


def _converted(value: Any, dtype: str) -> Any:
    return value if dtype_of(value) == dtype else tir.Cast(dtype, value)


def _start(
    call: TileCall, registers: Any, total: Any, count: int, over_elements: Callable[[Callable[[Any], Any]], tir.Stmt]
) -> list[tir.Stmt]:
    """What the accumulator holds before the first product: C, or zero where `clear_accum` holds."""
    dtype, clear = str(total.dtype), call["clear_accum"]
    zero = tir.const(0.0 if dtype.startswith("float") else 0, dtype)
    known = bool(clear.value) if isinstance(clear, tir.IntImm) else None
    moved = not total.same_as(registers)

    def cleared() -> tir.Stmt:
        return unrolled("i", count, lambda i: tir.BufferStore(total, zero, [i]))

    def loaded() -> tir.Stmt:
        # Registers of the padding hold nothing.
        return over_elements(lambda i: tir.BufferStore(total, _converted(tir.BufferLoad(registers, [i]), dtype), [i]))

    if known is True:
        return [cleared()]
    if known is False:
        return [loaded()] if moved else []
    return [tir.IfThenElse(clear, cleared(), loaded() if moved else None)]


def _over_elements(row: _Side, column: _Side, layout: Fragment, body: Callable[[Any], Any]) -> tir.Stmt:
    """Every register of C that holds an element."""
    return _nest(row, column, layout, lambda r, c, register: body(register))


def _outer_product(row: _Side, column: _Side, left: Any, right: Any, total: Any, layout: Fragment) -> tir.Stmt:
    def add(r: Any, c: Any, register: Any) -> Any:
        product = tir.Mul(tir.BufferLoad(left, [r]), tir.BufferLoad(right, [c]))
        return tir.BufferStore(total, tir.Add(tir.BufferLoad(total, [register]), product), [register])

    return _nest(row, column, layout, add)


def _nest(row: _Side, column: _Side, layout: Fragment, body: Callable[[Any, Any, Any], Any]) -> tir.Stmt:
    def inner(r: Any, c: Any) -> Any:
        statement = body(r, c, row.register(r) + column.register(c))
        for dim, side, counter in ((-2, row, r), (-1, column, c)):
            if len(layout.shape) + dim in layout.padded_dims:
                inside = tir.LT(side.index(counter), tir.const(layout.shape[dim], "int32"))
                statement = tir.IfThenElse(inside, statement, None)
        return statement

    return unrolled("r", row.count, lambda r: unrolled("c", column.count, lambda c: inner(r, c)))
