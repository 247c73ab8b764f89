"""Reducers: per-thread partial results that `T.finalize_reducer` combines over the threads of the block."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm import tirx as tir

from .allocation import ReducerState
from .calling import bad_argument, checked_call
from .integers import infinity, integer_range, max_value, min_value
from .operands import (
    FRAGMENT,
    SHARED,
    box,
    described,
    dtype_mismatch,
    element,
    integer,
    is_element,
    require_memory,
    same_extents,
    shape_mismatch,
    shifted,
    shown,
    sized,
    stored,
)
from .promotion import is_float
from .selection import max_of, min_of
from .values import Value, builder


def _state(reducer: Any, called: str) -> ReducerState:
    state = getattr(reducer, "reducer", None)
    if state is None:
        bad_argument(
            f"`{called}` takes a reducer, {described(reducer)} given",
            "allocate it with `T.alloc_reducer(shape, dtype)`",
        )
    return state


def identity(operation: str, dtype: str) -> Any:
    """The number that leaves the other operand of a reduction as it is."""
    if operation in ("max", "min"):
        if is_float(dtype) and "fn" not in dtype:
            return -infinity(dtype) if operation == "max" else infinity(dtype)
        return min_value(dtype) if operation == "max" else max_value(dtype)
    if operation == "bitand":
        return True if dtype == "bool" else integer_range(dtype)[1] if dtype[0] == "u" else -1
    return 0


def combined(operation: str, left: Any, right: Any) -> Any:
    """Two contributions to a reducer combined."""
    table: dict[str, Callable[[Any, Any], Any]] = {
        "sum": lambda a, b: a + b,
        "max": max_of,
        "min": min_of,
        "bitand": lambda a, b: a & b,
        "bitor": lambda a, b: a | b,
        "bitxor": lambda a, b: a ^ b,
    }
    return table[operation](left, right)


@checked_call
def reducer_init(reducer: Any, init: Any = None) -> None:
    """Starts a reducer; the result is that of all contributions and `init`, which counts once.

    reducer: from `T.alloc_reducer`.  init: a number or device value, taken now; default the identity of the operation.
    Errors: TL004 (no reducer), TL135, TL140 (init).  Source: upstream `tilelang/language/reduce_op.py`.
    """
    state = _state(reducer, "T.reducer_init")
    found = builder()
    state.start = None
    if init is not None:
        value = stored(init, reducer.name, reducer.dtype)
        state.start = Value(found.bind("start", value.use(), reducer.dtype), reducer.dtype, value.scope)
    found.operation("fill", reducer, stored(identity(state.operation, reducer.dtype), reducer.name, reducer.dtype))


@checked_call
def reducer_update(target: Any, value: Any) -> None:
    """Contributes `value` to the element `target` of a reducer: `T.reducer_update(acc[i], x)`.

    Errors: TL004 (no element of a reducer), TL140 (value).  Source: upstream `tilelang/language/reduce_op.py`.
    """
    called = "T.reducer_update"
    if not is_element(target):
        bad_argument(
            f"`{called}` takes an element, {described(target)} given", "write `T.reducer_update(acc[i], value)`"
        )
    buffer, index = element(target)
    state = _state(buffer, called)
    contribution = stored(value, buffer.name, buffer.dtype)
    buffer[index] = combined(state.operation, buffer[index], contribution)


@checked_call
def finalize_reducer(reducer: Any, dst: Any = None, batch: int = 1, annotations: dict | None = None) -> None:
    """Combines the copies of a reducer over all threads, into `dst` or in place.

    dst: a fragment or shared tile of the reducer's shape; afterwards it holds the result.  batch: a hint.
    Errors: TL004 (no reducer, batch), TL204 (shape of `dst`), TL205 (its dtype).
    Source: upstream `tilelang/language/reduce_op.py`.
    """
    called = "T.finalize_reducer"
    state = _state(reducer, called)
    integer(batch, called, "batch", 1)
    if dst is not None:
        region = box(dst, called, "its result")
        require_memory(region, (FRAGMENT, SHARED), called, "its result", "finalize into a fragment")
        if not same_extents(region.extent, reducer.shape):
            shape_mismatch(
                f"`{called}` of {sized(reducer)}, into {sized(region)}",
                f"give a result of shape {shown(reducer.shape)}",
            )
        if region.dtype != reducer.dtype:
            dtype_mismatch(
                f"`{called}` of {reducer.dtype} into {region.dtype}", f'give a result of dtype "{reducer.dtype}"'
            )
    builder().operation("finalize_reducer", reducer, dst)
    if state.start is not None:
        _combine_start(state, box(reducer if dst is None else dst, called, "its result"))
        state.start = None


def _combine_start(state: ReducerState, region: Any) -> None:
    """`result[...] = result[...] op start`, once per element."""
    found = builder()
    loops = [tir.Var("ijklmnop"[at % 8], "int32") for at in range(len(region.extent))]
    begins = [region.buffer.index_expr(begin) for begin in region.begin]
    indices = [shifted(begin, i) for begin, i in zip(begins, loops)]
    old = Value(tir.BufferLoad(region.buffer.var, indices), region.dtype)
    body: Any = tir.BufferStore(
        region.buffer.var, combined(state.operation, old, state.start).use(), indices, found.span
    )
    for var, extent in zip(reversed(loops), reversed(region.extent)):
        body = tir.For(var, 0, region.buffer.index_expr(extent), tir.ForKind.PARALLEL, body, span=found.span)
    found.effect()
    found.emit(body)
