"""Reductions over thread axes as TVMScript writes them, which kernels for matrix times vector use:

    plus = T.comm_reducer(lambda x, y: x + y, [T.cast(0, "float32")])
    with T.attr(plus, "reduce_scope", T.reinterpret(T.uint64(0), dtype="handle")):
        T.evaluate(T.tvm_thread_allreduce(T.uint32(1), value[0], True, total[0], k_thread, dtype="handle"))

`T.comm_reducer` names how two values combine, `T.attr` says that it holds in its body, and the call combines the
value of every thread that differs along the given axes only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import tvm_ffi
from tvm import tirx as tir

from ..source import catalogue as say
from ..source.diagnostic import Refusal
from .calling import bad_argument, checked_call
from .operands import (
    LOCAL,
    VARIABLE,
    described,
    dtype_mismatch,
    launch,
    place,
    require_memory,
    scalar,
    stored,
    unavailable,
)
from .promotion import is_float, strong, weak
from .selection import if_then_else, max_of, min_of
from .values import Value, builder

_COMBINING: dict[str, Callable[[Any, Any], Any]] = {
    "sum": lambda x, y: x + y,
    "max": max_of,
    "min": min_of,
    "bitand": lambda x, y: x & y,
    "bitor": lambda x, y: x | y,
    "bitxor": lambda x, y: x ^ y,
}
_KNOWN = "+, `T.max`, `T.min`, &, | and ^"


@dataclass(frozen=True)
class CommReducer:
    """How values combine.  operation: as `T.reduce` names it; identity: what inactive threads give."""

    operation: str
    identity: Any
    dtype: str


@dataclass(frozen=True)
class ReduceScope:
    """`with T.attr(reducer, "reduce_scope", ...)`: the reducer of the calls in its body."""

    reducer: CommReducer


@dataclass(frozen=True)
class PlainScope:
    """`with T.attr("default", "async_scope", 1)`: its body as it is; copies say by their names that they run on."""


@dataclass(frozen=True)
class NullPointer:
    """`T.reinterpret(T.uint64(0), dtype="handle")`, which `T.attr` takes and does not look at."""


@checked_call
def comm_reducer(combiner: Any, identity: Any) -> CommReducer:
    """A commutative way to combine two values, for `T.attr`.

    combiner: a function of two numbers: `x + y`, `T.max(x, y)`, `T.min(x, y)`, `x & y`, `x | y` or `x ^ y`.
    identity: a list of one number, whose dtype is the dtype of the reduction; threads whose condition is false
    contribute it.
    Errors: TL302 (another combiner), TL004 (no list of one number).  Source: TVM's `comm_reducer`.
    """
    if not callable(combiner):
        bad_argument(f"`T.comm_reducer` takes a function, {described(combiner)} given", "write `lambda x, y: x + y`")
    if not isinstance(identity, (list, tuple)) or len(identity) != 1:
        bad_argument("`T.comm_reducer` takes its identity as a list of one number", "write `[T.cast(0, dtype)]`")
    start = scalar(identity[0], "T.comm_reducer", "its identity")
    dtype = start.dtype if isinstance(start, Value) else strong(weak(start), start)
    home = getattr(builder(), "scope", None)
    pair = [Value(tir.Var(name, dtype), dtype, home) for name in "xy"]
    try:
        given = combiner(*pair)
    except TypeError:
        unavailable("a combiner of other than two values", f"combine two values: {_KNOWN} are known")
    for operation, combine in _COMBINING.items():
        if operation.startswith("bit") and is_float(dtype):
            continue
        if isinstance(given, Value) and tvm_ffi.structural_equal(given.use(), combine(*pair).use()):
            return CommReducer(operation, start, dtype)
    return unavailable("this combiner of `T.comm_reducer`", f"{_KNOWN} of the two values are known")


@checked_call
def attr(node: Any, attr_key: Any, value: Any = None) -> ReduceScope | PlainScope:
    """`with T.attr(reducer, "reduce_scope", ...)`: what `T.tvm_thread_allreduce` in the body combines with.

    node: of `T.comm_reducer`; attr_key: "reduce_scope"; value: not looked at.  With "async_scope" the body is as it is
    without: which copies run on is said by `T.async_copy`, `T.ptx_cp_async` and `T.tma_copy`.
    Errors: TL302 (any other attribute).  Source: TVM's `T.attr`.
    """
    if isinstance(attr_key, str) and attr_key == "async_scope":
        return PlainScope()
    if not isinstance(node, CommReducer) or attr_key != "reduce_scope":
        unavailable('`T.attr` other than a reducer with "reduce_scope"', "leave it out")
    return ReduceScope(node)


@checked_call
def tvm_thread_allreduce(size: Any, value: Any, condition: Any, result: Any, *axes: Any, dtype: Any = "handle") -> None:
    """Combines `value` over the threads that differ along `axes` only; `result` of each of them is the total.

    size: 1, the number of values.  value: a number.  condition: threads where it is false contribute the identity.
    result: an element of `T.alloc_local` or a variable.  axes: thread indices, as `T.get_thread_binding` gives them.
    All threads of the block must take part.  Floats narrower than float32 are combined in float32 and rounded once.
    Errors: TL208 (outside a launch, no `T.attr` around it), TL004 (operands, memory), TL205 (dtypes), TL302 (several
    values).
    Source: TVM's `tvm_thread_allreduce`.
    """
    called = "T.tvm_thread_allreduce"
    around = launch()
    reducer = getattr(builder(), "reducer", None)
    if reducer is None:
        problem = f"`{called}` without the way to combine"
        remedy = (
            'put it inside `with T.attr(T.comm_reducer(lambda x, y: x + y, [T.cast(0, dtype)]), "reduce_scope", 0)`'
        )
        raise Refusal(say.LaunchConfiguration(problem=problem, remedy=remedy))
    if _constant(size) != 1:
        unavailable(f"`{called}` of several values", "reduce them one after the other")
    found = scalar(value, called, "its value")
    if not isinstance(found, Value):
        found = stored(found, "value", reducer.dtype)
    if found.dtype != reducer.dtype:
        dtype_mismatch(f"`{called}` of {found.dtype} with a reducer of {reducer.dtype}", f"cast it to {reducer.dtype}")
    if not (condition is True or _constant(condition) == 1):
        found = if_then_else(condition, found, reducer.identity)
    target = place(result, called, "its result")
    require_memory(target, (LOCAL, VARIABLE), called, "its result", "every thread gets the total")
    if target.dtype != reducer.dtype:
        dtype_mismatch(
            f"`{called}` of {reducer.dtype} into {target.dtype}", f"allocate `{target.buffer.name}` as {reducer.dtype}"
        )
    builder().operation("thread_reduce", reducer.operation, found, target, _digits(around.threads, axes, called))


def _constant(value: Any) -> int | None:
    if isinstance(value, Value):
        value = value.use()
    if isinstance(value, tir.IntImm):
        return int(value.value)
    return value if isinstance(value, int) else None


def _digits(threads: Sequence[tuple[Any, Any]], axes: Sequence[Any], called: str) -> str:
    """Extent and stride of each axis in the index of the thread: "32:1,4:32"."""
    strides, stride = [], 1
    for var, extent in threads:
        strides.append((var, int(extent), stride))
        stride *= int(extent)
    chosen = []
    for axis in axes:
        expr = axis.use() if isinstance(axis, Value) else axis
        if _constant(axis) == 0:  # the index along an axis that the block does not have
            continue
        fitting = [(extent, stride) for var, extent, stride in strides if var.same_as(expr)]
        if not fitting:
            bad_argument(
                f"`{called}` takes indices of threads as its axes, {described(axis)} given",
                "give what `T.get_thread_binding(0)` gave",
            )
        chosen += [part for part in fitting if part not in chosen and part[0] > 1]
    return ",".join(f"{extent}:{stride}" for extent, stride in chosen)
