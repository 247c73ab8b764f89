"""Memory of a kernel: shared tiles, fragments, per-thread arrays and variables, workspaces, barriers, reducers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from ..source import catalogue as say
from ..source.diagnostic import Refusal
from ..source.wording import tidy
from .calling import bad_argument, checked_call
from .dtypes import storable
from .operands import (
    BARRIER,
    FRAGMENT,
    GLOBAL,
    LOCAL,
    SHARED,
    VARIABLE,
    boxed,
    choice,
    content,
    described,
    dtype_mismatch,
    integer,
    unavailable,
)
from .promotion import is_float
from .tensors import LARGEST_EXTENT, check_bytes, check_extent, sizes_of
from .values import Buffer, Value, builder

_SCOPES = {
    "shared": SHARED,
    "shared.dyn": SHARED,
    "local.fragment": FRAGMENT,
    "fragment": FRAGMENT,
    "local": LOCAL,
    "local.var": VARIABLE,
    "global": GLOBAL,
}
REDUCER_OPERATIONS = ("sum", "max", "min", "bitand", "bitor", "bitxor")


LOCAL_BYTES = 512 * 1024  # of each thread: CUDA's limit
LARGEST_TILE = 2**31 - 1  # elements: what lies in a tile is counted with int32


def tile_shape(shape: Any, called: str, most: int = LARGEST_TILE) -> tuple[int, ...]:
    """The constant shape of a tile: TL206 for a size known only when the kernel runs, TL004 for one that is no size."""
    sizes = sizes_of(shape, called, most)
    for size in sizes:
        if isinstance(size, Value):
            raise Refusal(say.SymbolicTileShape(extent=tidy(str(size))))
        if size < 1:
            bad_argument(f"a dimension of {size} in `{called}`", "give 1 or more")
    check_extent(math.prod(sizes), most, called, "the number of elements")
    return sizes


def _allocate(called: str, shape: Any, dtype: Any, scope: Any, default: str) -> Buffer:
    if not isinstance(scope, str) or scope not in _SCOPES:
        near = ", ".join(sorted(_SCOPES))
        if isinstance(scope, str) and scope.startswith("shared.tmem"):
            unavailable("tensor memory needs sm_100", "accumulate in a fragment: `T.alloc_fragment`")
        bad_argument(f"`{called}` has no scope {described(scope)}", f"use one of {near}")
    sizes, element = tile_shape(shape, called), storable(dtype, tile=True)
    needed = math.prod(sizes) * element.itemsize
    if _SCOPES[scope] == LOCAL and needed > LOCAL_BYTES:
        problem = f"`{called}` takes {needed:,} bytes for every thread; a thread has {LOCAL_BYTES:,}"
        bad_argument(problem, "use a tile that the block shares, or `T.alloc_global`")
    found = builder()
    return found.allocate(found.hint or default, sizes, str(element), _SCOPES[scope])


@checked_call
def alloc_shared(shape: Any, dtype: Any, scope: str = "shared.dyn") -> Buffer:
    """A tile in shared memory, seen by all threads of the block.

    shape: constants.  dtype: any with storage.  scope: "shared.dyn" or "shared", which mean the same here.
    Errors: TL206 (a size known only at run time), TL205 (dtype), TL302 (vector dtype), TL004 (shape, scope); TL209
    when lowered.
    Source: upstream `tilelang/language/allocate.py`.
    """
    return _allocate("T.alloc_shared", shape, dtype, scope, "shared_tile")


@checked_call
def alloc_fragment(shape: Any, dtype: Any, scope: str = "local.fragment") -> Buffer:
    """A fragment: one logical tile held in the registers of all threads of the block.

    shape: constants.  Its layout over the threads is inferred from its uses.
    Errors: TL206 (a size known only at run time), TL205 (dtype), TL302 (vector dtype), TL004 (shape, scope); TL210
    when lowered.
    Source: upstream `tilelang/language/allocate.py`.
    """
    return _allocate("T.alloc_fragment", shape, dtype, scope, "fragment")


@checked_call
def alloc_local(shape: Any, dtype: Any, scope: str = "local") -> Buffer:
    """An array of each thread's own.

    shape: constants.  Errors: TL206 (a size known only at run time), TL205 (dtype), TL302 (vector dtype), TL004
    (shape, scope).
    Source: upstream `tilelang/language/allocate.py`.
    """
    return _allocate("T.alloc_local", shape, dtype, scope, "local_array")


@checked_call
def alloc_buffer(
    shape: Any, dtype: Any = "float32", scope: str = "shared.dyn", annotations: Any = None, data: Any = None
) -> Buffer:
    """A buffer in the memory named by `scope`; `T.alloc_shared` and its like are clearer.

    Errors: TL206, TL205, TL302, TL004 as there; TL302 for `data=`.  Source: TVM's `T.alloc_buffer`.
    """
    if data is not None:
        unavailable("`T.alloc_buffer` with `data=`", "use `T.view` of a buffer")
    if isinstance(scope, str) and scope == "global":
        return alloc_global(shape, dtype)
    return _allocate("T.alloc_buffer", shape, dtype, scope, "buffer")


@checked_call
def alloc_var(dtype: Any, *args: Any, scope: str = "local.var", init: Any = None) -> Buffer:
    """A variable of each thread's own: its name means its content, and assigning to the name stores into it.

    `T.alloc_var("int32")`, `T.alloc_var("int32", 1)`, `T.alloc_var("int32", init=a[0])`; an old positional scope is
    accepted.
    Without an initial value its content is undefined until the first assignment.
    Errors: TL205 (dtype), TL302 (vector dtype), TL135 (constant that does not fit), TL140 (no number), TL004
    (arguments).
    Source: upstream `tilelang/language/allocate.py`.
    """
    values = [value for value in args if not (isinstance(value, str) and value in _SCOPES)]
    if len(values) > 1 or len(args) > 2 or (values and init is not None):
        bad_argument("`T.alloc_var` is given more than one initial value", 'write `T.alloc_var("int32", init=0)`')
    if values:
        init = values[0]
    found = builder()
    variable = found.allocate(found.hint or "variable", (1,), str(storable(dtype, tile=True)), VARIABLE)
    variable.is_variable = True
    if init is not None:
        variable[(0,)] = content(init)
    return variable


@checked_call
def alloc_global(shape: Any, dtype: Any, scope: str = "global") -> Buffer:
    """A workspace in global memory, shared by all blocks; its content is undefined at the start.

    shape: constants.  Errors: TL206 (a size known only at run time), TL205 (dtype), TL302 (vector dtype), TL004
    (shape).
    Source: upstream `tilelang/language/allocate.py`.
    """
    sizes, element = tile_shape(shape, "T.alloc_global", LARGEST_EXTENT), storable(dtype, tile=False)
    check_bytes(sizes, element, "T.alloc_global")
    found = builder()
    return found.allocate(found.hint or "workspace", sizes, str(element), GLOBAL)


@checked_call
def alloc_barrier(arrive_count: Any) -> Buffer:
    """One mbarrier in shared memory, or a list of them: `T.alloc_barrier(128)`, `T.alloc_barrier([128] * 3)`.

    arrive_count: how many arrivals complete a phase, constants from 1; `bar[i]` is one of several.
    Errors: TL004 (count).  Source: upstream `tilelang/language/allocate.py`; PTX `mbarrier`.
    """
    return _barriers("T.alloc_barrier", arrive_count)


def _barriers(called: str, arrive_count: Any) -> Buffer:
    given = arrive_count if isinstance(arrive_count, (list, tuple)) else [arrive_count]
    if not given:
        bad_argument(f"`{called}` needs an arrival count", f"write `{called}(128)`")
    counts = [integer(count, called, "arrive_count", 1, (1 << 20) - 1) for count in given]
    found = builder()
    barriers = found.allocate(found.hint or "barrier", (len(counts),), "uint64", BARRIER)
    for at, count in enumerate(counts):
        found.operation("barrier_init", boxed(barriers, (at,), (1,)), count)
    return barriers


@checked_call
def alloc_cluster_barrier(arrive_count: Any) -> Buffer:
    """mbarriers as of `T.alloc_barrier` that other blocks of the cluster arrive at: `T.mbarrier_arrive(bar, block)`.

    Every block of the cluster has its own; all are started when the first of them is used from another block.
    Errors: TL004 (count).  Source: upstream `tilelang/language/allocate.py`.
    """
    return _barriers("T.alloc_cluster_barrier", arrive_count)


@dataclass
class ReducerState:
    """What is known of a reducer while building: its operation and the starting value given to `T.reducer_init`."""

    operation: str
    start: Value | None = None


@checked_call
def alloc_reducer(shape: Any, dtype: Any, op: str = "sum", replication: str | None = None) -> Buffer:
    """A reducer: every thread accumulates into a copy of its own, `T.finalize_reducer` combines the copies.

    shape: constants.  op: "sum", "max", "min", "bitand", "bitor" or "bitxor".
    replication: "all", "none" or None, a hint.
    Start it with `T.reducer_init(acc)` (or `T.clear`, `T.fill` with the identity), contribute with `acc[i] += x` or
    `T.reducer_update`.
    Errors: TL206 (a size known only at run time), TL205 (dtype, bit operation on floats), TL004 (op, replication).
    Source: upstream `tilelang/language/allocate.py`.
    """
    called = "T.alloc_reducer"
    operation = choice(op, called, "op", REDUCER_OPERATIONS)
    if replication is not None:
        choice(replication, called, "replication", ("all", "none"))
    element = storable(dtype, tile=True)
    if operation.startswith("bit") and is_float(element):
        dtype_mismatch(f"a `{operation}` reducer of {element}", "bit operations need an integer dtype")
    sizes = tile_shape(shape, called)
    found = builder()
    reducer = found.allocate(found.hint or "reducer", sizes, str(element), FRAGMENT)
    reducer.reducer = ReducerState(operation)
    found.operation("reducer", reducer, operation, replication or "none")
    return reducer
