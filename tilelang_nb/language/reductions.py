"""Reductions along a dimension of a tile, scans, reducers, and `T.any_of` / `T.all_of`."""

from __future__ import annotations

from typing import Any

from tvm import tirx as tir

from .calling import checked_call
from .operands import (
    FRAGMENT,
    GLOBAL,
    LOCAL,
    SHARED,
    VARIABLE,
    axis,
    box,
    choice,
    described,
    dtype_mismatch,
    flag,
    integer,
    require_memory,
    same_extents,
    shape_mismatch,
    shifted,
    shown,
    sized,
)
from .promotion import cast, is_float
from .values import Value, builder, constant

KINDS = ("sum", "max", "min", "abssum", "absmax", "bitand", "bitor", "bitxor")
_TILES = (FRAGMENT, SHARED, LOCAL, VARIABLE)
_TO_TILE = "copy it into a tile first, with `T.copy`"


def _reduce(
    called: str, kind: str, source: Any, target: Any, dim: Any, clear: Any, batch: Any, nan_propagate: Any
) -> None:
    read, written = box(source, called, "its source"), box(target, called, "its result")
    require_memory(read, _TILES, called, "its source", _TO_TILE)
    require_memory(written, _TILES, called, "its result", "reduce into a fragment and copy it out")
    rank = len(read.extent)
    along = axis(dim, rank, called)
    integer(batch, called, "batch", 1)
    kept = (*read.extent[:along], *read.extent[along + 1 :])
    with_one = (*read.extent[:along], 1, *read.extent[along + 1 :])
    accepted = [kept, with_one] + ([(1,)] if rank == 1 else [])
    if not any(same_extents(written.extent, shape) for shape in accepted):
        shape_mismatch(
            f"`{called}` of {sized(read)}, along dimension {along} gives {shown(kept)}; "
            f"{described(target)} has shape {shown(written.extent)}",
            f"give a result of shape {shown(kept if rank > 1 else (1,))}",
        )
    _check_reduced_dtypes(called, kind, read, written)
    propagate = True if nan_propagate is None else flag(nan_propagate, called, "nan_propagate")
    builder().operation("reduce", kind, read, written, along, flag(clear, called, "clear"), propagate)


def _check_reduced_dtypes(called: str, kind: str, read: Any, written: Any) -> None:
    source, target = read.dtype, written.dtype
    if kind.startswith("bit") and (is_float(source) or is_float(target)):
        dtype_mismatch(f"`{called}` of {source} into {target}", "bit operations need an integer dtype")
    if is_float(source) and not is_float(target):
        dtype_mismatch(f"`{called}` of {source} into {target}", f'give a result of dtype "{source}"')


@checked_call
def reduce(
    buffer: Any,
    out: Any,
    reduce_type: str,
    dim: int,
    clear: bool = True,
    batch: int = 1,
    nan_propagate: bool | None = None,
    annotations: dict | None = None,
) -> None:
    """Reduces a tile along `dim` into `out` by the operation named `reduce_type`; `T.reduce_sum` and its like are
    clearer.

    reduce_type: "sum", "max", "min", "abssum", "absmax", "bitand", "bitor" or "bitxor".  Everything else as there.
    Errors: TL004, TL204, TL205.  Source: upstream `tilelang/language/reduce_op.py`.
    """
    kind = choice(reduce_type, "T.reduce", "reduce_type", KINDS)
    _reduce("T.reduce", kind, buffer, out, dim, clear, batch, nan_propagate)


@checked_call
def reduce_sum(
    buffer: Any, out: Any, dim: int = -1, clear: bool = True, batch: int = 1, annotations: dict | None = None
) -> None:
    """The sum of the elements along `dim`; float16 and bfloat16 sums are rounded once.

    buffer: a tile in a fragment, shared or local memory, shape [X, d, Y].  out: a tile of shape [X, Y] or [X, 1, Y],
    likewise.  dim: the dimension d; negative ones count from the end.  clear: False combines with what `out` holds.
    batch: a hint.
    Errors: TL204 (shape of `out`, both shapes named), TL205 (dtypes), TL004 (dim, memory, option).
    Source: upstream `tilelang/language/reduce_op.py`; values as NumPy's `sum`.
    """
    _reduce("T.reduce_sum", "sum", buffer, out, dim, clear, batch, None)


@checked_call
def reduce_max(
    buffer: Any,
    out: Any,
    dim: int = -1,
    clear: bool = True,
    batch: int = 1,
    nan_propagate: bool | None = None,
    annotations: dict | None = None,
) -> None:
    """The largest element along `dim`.

    buffer: a tile in a fragment, shared or local memory, shape [X, d, Y].  out: a tile of shape [X, Y] or [X, 1, Y],
    likewise.  dim: the dimension d; negative ones count from the end.  clear: False combines with what `out` holds.
    batch: a hint.  nan_propagate: NaN wins as in NumPy; False ignores NaN.
    Errors: TL204 (shape of `out`, both shapes named), TL205 (dtypes), TL004 (dim, memory, option).
    Source: upstream `tilelang/language/reduce_op.py`; values as NumPy's `max`.
    """
    _reduce("T.reduce_max", "max", buffer, out, dim, clear, batch, nan_propagate)


@checked_call
def reduce_min(
    buffer: Any,
    out: Any,
    dim: int = -1,
    clear: bool = True,
    batch: int = 1,
    nan_propagate: bool | None = None,
    annotations: dict | None = None,
) -> None:
    """The smallest element along `dim`.

    buffer: a tile in a fragment, shared or local memory, shape [X, d, Y].  out: a tile of shape [X, Y] or [X, 1, Y],
    likewise.  dim: the dimension d; negative ones count from the end.  clear: False combines with what `out` holds.
    batch: a hint.  nan_propagate: NaN wins as in NumPy; False ignores NaN.
    Errors: TL204 (shape of `out`, both shapes named), TL205 (dtypes), TL004 (dim, memory, option).
    Source: upstream `tilelang/language/reduce_op.py`; values as NumPy's `min`.
    """
    _reduce("T.reduce_min", "min", buffer, out, dim, clear, batch, nan_propagate)


@checked_call
def reduce_abssum(
    buffer: Any, out: Any, dim: int = -1, clear: bool = True, batch: int = 1, annotations: dict | None = None
) -> None:
    """The sum of the absolute values along `dim`.

    buffer: a tile in a fragment, shared or local memory, shape [X, d, Y].  out: a tile of shape [X, Y] or [X, 1, Y],
    likewise.  dim: the dimension d; negative ones count from the end.  clear: False combines with what `out` holds.
    batch: a hint.
    Errors: TL204 (shape of `out`, both shapes named), TL205 (dtypes), TL004 (dim, memory, option).
    Source: upstream `tilelang/language/reduce_op.py`; values as NumPy's `abs` then `sum`.
    """
    _reduce("T.reduce_abssum", "abssum", buffer, out, dim, clear, batch, None)


@checked_call
def reduce_absmax(
    buffer: Any,
    out: Any,
    dim: int = -1,
    clear: bool = True,
    batch: int = 1,
    nan_propagate: bool | None = None,
    annotations: dict | None = None,
) -> None:
    """The largest absolute value along `dim`.

    buffer: a tile in a fragment, shared or local memory, shape [X, d, Y].  out: a tile of shape [X, Y] or [X, 1, Y],
    likewise.  dim: the dimension d; negative ones count from the end.  clear: False combines with what `out` holds.
    batch: a hint.  nan_propagate: NaN wins as in NumPy; False ignores NaN.
    Errors: TL204 (shape of `out`, both shapes named), TL205 (dtypes), TL004 (dim, memory, option).
    Source: upstream `tilelang/language/reduce_op.py`; values as NumPy's `abs` then `max`.
    """
    _reduce("T.reduce_absmax", "absmax", buffer, out, dim, clear, batch, nan_propagate)


@checked_call
def reduce_bitand(
    buffer: Any, out: Any, dim: int = -1, clear: bool = True, batch: int = 1, annotations: dict | None = None
) -> None:
    """The bitwise and of the elements along `dim`; integers and bool.

    buffer: a tile in a fragment, shared or local memory, shape [X, d, Y].  out: a tile of shape [X, Y] or [X, 1, Y],
    likewise.  dim: the dimension d; negative ones count from the end.  clear: False combines with what `out` holds.
    batch: a hint.
    Errors: TL204 (shape of `out`, both shapes named), TL205 (dtypes), TL004 (dim, memory, option).
    Source: upstream `tilelang/language/reduce_op.py`; values as NumPy's `bitwise_and.reduce`.
    """
    _reduce("T.reduce_bitand", "bitand", buffer, out, dim, clear, batch, None)


@checked_call
def reduce_bitor(
    buffer: Any, out: Any, dim: int = -1, clear: bool = True, batch: int = 1, annotations: dict | None = None
) -> None:
    """The bitwise or of the elements along `dim`; integers and bool.

    buffer: a tile in a fragment, shared or local memory, shape [X, d, Y].  out: a tile of shape [X, Y] or [X, 1, Y],
    likewise.  dim: the dimension d; negative ones count from the end.  clear: False combines with what `out` holds.
    batch: a hint.
    Errors: TL204 (shape of `out`, both shapes named), TL205 (dtypes), TL004 (dim, memory, option).
    Source: upstream `tilelang/language/reduce_op.py`; values as NumPy's `bitwise_or.reduce`.
    """
    _reduce("T.reduce_bitor", "bitor", buffer, out, dim, clear, batch, None)


@checked_call
def reduce_bitxor(
    buffer: Any, out: Any, dim: int = -1, clear: bool = True, batch: int = 1, annotations: dict | None = None
) -> None:
    """The bitwise exclusive or of the elements along `dim`; integers and bool.

    buffer: a tile in a fragment, shared or local memory, shape [X, d, Y].  out: a tile of shape [X, Y] or [X, 1, Y],
    likewise.  dim: the dimension d; negative ones count from the end.  clear: False combines with what `out` holds.
    batch: a hint.
    Errors: TL204 (shape of `out`, both shapes named), TL205 (dtypes), TL004 (dim, memory, option).
    Source: upstream `tilelang/language/reduce_op.py`; values as NumPy's `bitwise_xor.reduce`.
    """
    _reduce("T.reduce_bitxor", "bitxor", buffer, out, dim, clear, batch, None)


def _cumulate(called: str, kind: str, source: Any, target: Any, dim: Any, reverse: Any) -> None:
    read = box(source, called, "its source")
    written = read if target is None else box(target, called, "its result")
    for side, role in ((read, "its source"), (written, "its result")):
        require_memory(side, (SHARED, FRAGMENT), called, role, _TO_TILE)
    along = axis(dim, len(read.extent), called)
    if not same_extents(read.extent, written.extent):
        shape_mismatch(
            f"`{called}` from {sized(read)}, to {sized(written)}",
            f"give a result of shape {shown(read.extent)}",
        )
    if is_float(read.dtype) and not is_float(written.dtype):
        dtype_mismatch(f"`{called}` of {read.dtype} into {written.dtype}", f'give a result of dtype "{read.dtype}"')
    builder().operation("cumulate", kind, read, written, along, flag(reverse, called, "reverse"))


@checked_call
def cumsum(src: Any, dst: Any = None, dim: int = 0, reverse: bool = False, annotations: dict | None = None) -> None:
    """The running sum along `dim`: `dst[i] = src[0] + ... + src[i]`, from the end with `reverse=True`.

    src: a buffer or region in shared memory or a fragment.  dst: the same extents; default `src` itself.
    Errors: TL204 (shapes), TL205 (dtypes), TL004 (dim, memory).
    Source: upstream `tilelang/language/scan_op.py`; NumPy's `cumsum`.
    """
    _cumulate("T.cumsum", "sum", src, dst, dim, reverse)


@checked_call
def cummax(src: Any, dst: Any = None, dim: int = 0, reverse: bool = False, annotations: dict | None = None) -> None:
    """The running maximum along `dim`, from the end with `reverse=True`.

    Operands as for `T.cumsum`.
    Errors: TL204 (shapes), TL205 (dtypes), TL004 (dim, memory).
    Source: upstream `scan_op.py`; NumPy's `maximum.accumulate`.
    """
    _cumulate("T.cummax", "max", src, dst, dim, reverse)


def _quantified(called: str, buffer: Any, every: bool) -> Value:
    """A per-thread flag, computed by a loop over the elements."""
    region = box(buffer, called, "its operand")
    require_memory(region, (SHARED, GLOBAL, LOCAL, VARIABLE), called, "its operand", "copy it into shared memory first")
    found = builder()
    found.effect()
    holder = found.allocate("every" if every else "any", (1,), "bool", VARIABLE)
    found.emit(tir.BufferStore(holder.var, constant(every, "bool"), [constant(0, "int32")], found.span))
    loops = [tir.Var("ijklmnop"[at % 8], "int32") for at in range(len(region.extent))]
    begins = [region.buffer.index_expr(begin) for begin in region.begin]
    load = tir.BufferLoad(region.buffer.var, [shifted(begin, i) for begin, i in zip(begins, loops)])
    test = cast(load, region.dtype, "bool")
    hit = tir.BufferStore(holder.var, constant(not every, "bool"), [constant(0, "int32")], found.span)
    body = tir.IfThenElse(tir.Not(test) if every else test, hit, None, found.span)
    for var, extent in zip(reversed(loops), reversed(region.extent)):
        body = tir.For(var, 0, region.buffer.index_expr(extent), tir.ForKind.SERIAL, body, span=found.span)
    found.emit(body)
    return holder[(0,)]


@checked_call
def any_of(buffer: Any) -> Value:
    """Whether any element of a buffer or region is not 0; every thread looks at all of them.

    buffer: in shared, global or local memory.  The result is a bool value.
    Errors: TL004 (no buffer, a fragment).  Source: upstream `tilelang/language/logical.py`.
    """
    return _quantified("T.any_of", buffer, False)


@checked_call
def all_of(buffer: Any) -> Value:
    """Whether all elements of a buffer or region are not 0; every thread looks at all of them.

    buffer: in shared, global or local memory.  The result is a bool value.
    Errors: TL004 (no buffer, a fragment).  Source: upstream `tilelang/language/logical.py`.
    """
    return _quantified("T.all_of", buffer, True)
