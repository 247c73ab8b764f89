"""Warps: lane and warp indices, shuffles, votes, reductions over a warp.

A call that exchanges values between threads happens where it stands: its result is bound there, and it is refused in a
place that
not all threads evaluate (the right side of `and`, a branch of a conditional expression).
"""

from __future__ import annotations

from typing import Any

from tvm import tirx as tir

from .calling import bad_argument, checked_call
from .dtypes import Dtype
from .launch import WARP, WARP_GROUP, thread_count, thread_index
from .operands import dtype_mismatch, integer, scalar
from .promotion import as_type, cast, is_float, is_integer, strong, weak
from .selection import max_of, min_of
from .values import Value, builder, constant

FULL_MASK = 0xFFFFFFFF


def device_call(name: str, dtype: str, *arguments: Any) -> Value:
    """A call of the device that takes part in an exchange between threads: bound where it stands."""
    found = builder()
    found.effect()
    bound = found.bind(name.strip("_"), tir.call_extern(dtype, name, *arguments), dtype)
    return Value(bound, dtype, getattr(found, "scope", None))


def _mask(mask: Any, called: str) -> Any:
    value = scalar(mask, called, "the lane mask")
    if isinstance(value, Value):
        if not is_integer(value.dtype):
            dtype_mismatch(f"the lane mask of `{called}` is {value.dtype}", "give an integer")
        return cast(value.use(), value.dtype, "uint32")
    if not isinstance(value, int) or not -(2**31) <= value <= FULL_MASK:
        bad_argument(f"the lane mask of `{called}` is {value}", "give 32 bits: `0xFFFFFFFF` is the whole warp")
    return constant(value & FULL_MASK, "uint32")


def _exchanged(value: Any, called: str) -> Value:
    found = scalar(value, called, "its value")
    return (
        found
        if isinstance(found, Value)
        else Value(as_type(found, strong(weak(found), found)), strong(weak(found), found))
    )


def _shuffle(called: str, name: str, value: Any, lane: Any, width: Any, mask: Any) -> Value:
    operand = _exchanged(value, called)
    other = scalar(lane, called, "the lane")
    if isinstance(other, float) or (isinstance(other, Value) and not is_integer(other.dtype)):
        dtype_mismatch(f"the lane of `{called}` is no integer", "cast it to int32")
    lanes = integer(width, called, "width", 1, WARP)
    if lanes & (lanes - 1):
        bad_argument(f"`width={lanes}` of `{called}`", "give a power of two up to 32")
    dtype, carried = operand.dtype, operand
    if Dtype(dtype).itemsize < 4:  # the instruction moves 32 bits; narrower values travel in a wider one, exactly
        carried = operand.astype("float32" if is_float(dtype) else "int32")
    arguments = [_mask(mask, called), carried.use(), as_type(other, "int32")]
    if lanes != WARP:
        arguments.append(constant(lanes, "int32"))
    moved = device_call(name, carried.dtype, *arguments)
    return moved.astype(dtype)


@checked_call
def shfl_sync(value: Any, srcLane: Any, width: int = 32, mask: Any = FULL_MASK) -> Value:
    """`value` of the lane `srcLane`, for every lane of the warp (or of its group of `width` lanes).

    value: a number or device value; the result has its dtype.  mask: the lanes that take part.
    Errors: TL205 (lane, mask), TL004 (width, mask).  Source: CUDA's `__shfl_sync`.
    """
    return _shuffle("T.shfl_sync", "__shfl_sync", value, srcLane, width, mask)


@checked_call
def shfl_xor(value: Any, delta: Any, width: int = 32, mask: Any = FULL_MASK) -> Value:
    """`value` of the lane whose number differs in the bits of `delta`.

    Errors: TL205 (lane, mask), TL004 (width, mask).  Source: CUDA's `__shfl_xor_sync`.
    """
    return _shuffle("T.shfl_xor", "__shfl_xor_sync", value, delta, width, mask)


@checked_call
def shfl_up(value: Any, delta: Any, width: int = 32, mask: Any = FULL_MASK) -> Value:
    """`value` of the lane `delta` below; the lowest `delta` lanes keep their own.

    Errors: TL205 (lane, mask), TL004 (width, mask).  Source: CUDA's `__shfl_up_sync`.
    """
    return _shuffle("T.shfl_up", "__shfl_up_sync", value, delta, width, mask)


@checked_call
def shfl_down(value: Any, delta: Any, width: int = 32, mask: Any = FULL_MASK) -> Value:
    """`value` of the lane `delta` above; the highest `delta` lanes keep their own.

    Errors: TL205 (lane, mask), TL004 (width, mask).  Source: CUDA's `__shfl_down_sync`.
    """
    return _shuffle("T.shfl_down", "__shfl_down_sync", value, delta, width, mask)


shfl_xor_sync, shfl_up_sync, shfl_down_sync = shfl_xor, shfl_up, shfl_down


def predicate_of(value: Any, called: str) -> Any:
    """A condition as the int32 that votes take; TL205 for a float."""
    found = scalar(value, called, "its condition")
    if isinstance(found, float) or (isinstance(found, Value) and is_float(found.dtype)):
        dtype_mismatch(f"`{called}` of a float", "compare it: `x != 0.0`")
    if isinstance(found, Value):
        if found.dtype == "int32":
            return found.use()
        return cast(cast(found.use(), found.dtype, "bool"), "bool", "int32")
    return constant(int(bool(found)), "int32")


@checked_call
def any_sync(predicate: Any, mask: Any = FULL_MASK) -> Value:
    """int32: not 0 where `predicate` is not 0 in any lane of `mask`.

    Errors: TL205 (float), TL004 (mask).  Source: CUDA's `__any_sync`.
    """
    return device_call("__any_sync", "int32", _mask(mask, "T.any_sync"), predicate_of(predicate, "T.any_sync"))


@checked_call
def all_sync(predicate: Any, mask: Any = FULL_MASK) -> Value:
    """int32: not 0 where `predicate` is not 0 in every lane of `mask`.

    Errors: TL205 (float), TL004 (mask).  Source: CUDA's `__all_sync`.
    """
    return device_call("__all_sync", "int32", _mask(mask, "T.all_sync"), predicate_of(predicate, "T.all_sync"))


@checked_call
def ballot_sync(predicate: Any, mask: Any = FULL_MASK) -> Value:
    """uint64: bit n is set where lane n of `mask` has a `predicate` that is not 0.

    Errors: TL205 (float), TL004 (mask).  Source: CUDA's `__ballot_sync`, widened as upstream does.
    """
    lanes = device_call(
        "__ballot_sync", "uint32", _mask(mask, "T.ballot_sync"), predicate_of(predicate, "T.ballot_sync")
    )
    return lanes.astype("uint64")


@checked_call
def ballot(predicate: Any) -> Value:
    """`T.ballot_sync` over the whole warp.  Errors: TL205 (float).  Source: CUDA's `__ballot_sync`."""
    return ballot_sync(predicate)


@checked_call
def activemask() -> Value:
    """uint64: the lanes that execute together.  Errors: TL004 outside a kernel.  Source: CUDA's `__activemask`."""
    return device_call("__activemask", "uint32").astype("uint64")


def _sizes(warp_size: Any, called: str) -> int:
    return WARP if warp_size is None else integer(warp_size, called, "warp_size", 1)


@checked_call
def get_lane_idx(warp_size: int | None = None) -> Value:
    """int32: the number of the executing thread in its warp.

    Errors: TL208 outside a launch, TL004 (size).  Source: upstream `T.get_lane_idx`.
    """
    return thread_index() % _sizes(warp_size, "T.get_lane_idx")


@checked_call
def get_warp_idx(warp_size: int | None = None) -> Value:
    """int32: the number of the executing thread's warp in its block.

    Errors: TL208 outside a launch, TL004 (size).  Source: upstream `T.get_warp_idx`.
    """
    return thread_index() // _sizes(warp_size, "T.get_warp_idx")


@checked_call
def get_warp_idx_sync(warp_size: int | None = None) -> Value:
    """`T.get_warp_idx` where the threads of the warp are converged; the value is the same.

    Errors: TL208 outside a launch, TL004 (size).  Source: upstream `T.get_warp_idx_sync`.
    """
    return thread_index() // _sizes(warp_size, "T.get_warp_idx_sync")


@checked_call
def get_warp_group_idx(warp_size: int | None = None, warps_per_group: int | None = None) -> Value:
    """int32: the number of the executing thread's warp group (128 threads) in its block.

    Errors: TL208 outside a launch, TL004 (sizes).  Source: upstream `T.get_warp_group_idx`.
    """
    called = "T.get_warp_group_idx"
    group = WARP_GROUP // WARP if warps_per_group is None else integer(warps_per_group, called, "warps_per_group", 1)
    return thread_index() // (_sizes(warp_size, called) * group)


@checked_call
def shuffle_elect(thread_extent: int) -> Value:
    """bool: true in exactly one thread of each group of `thread_extent` threads, the first one; 0 means the whole
    block.

    Errors: TL208 outside a launch, TL004 (extent).  Source: upstream `T.shuffle_elect`.
    """
    extent = integer(thread_extent, "T.shuffle_elect", "thread_extent", 0) or thread_count()
    return thread_index() % extent == 0


def _over_warp(called: str, value: Any, combine: Any) -> Value:
    total = _exchanged(value, called)
    dtype = total.dtype
    for delta in (16, 8, 4, 2, 1):
        total = combine(total, _shuffle(called, "__shfl_xor_sync", total, delta, WARP, FULL_MASK)).astype(dtype)
        found = builder()
        total = Value(found.bind("over_warp", total.use(), dtype), dtype, getattr(found, "scope", None))
    return total


@checked_call
def warp_reduce_sum(value: Any) -> Value:
    """The sum of `value` over the 32 lanes, in every lane.  All lanes must take part.

    Errors: TL004 (no number).  Source: upstream `T.warp_reduce_sum`.
    """
    return _over_warp("T.warp_reduce_sum", value, lambda a, b: a + b)


@checked_call
def warp_reduce_max(value: Any) -> Value:
    """The largest `value` over the 32 lanes, in every lane.

    Errors: TL004 (no number).  Source: upstream `T.warp_reduce_max`.
    """
    return _over_warp("T.warp_reduce_max", value, max_of)


@checked_call
def warp_reduce_min(value: Any) -> Value:
    """The smallest `value` over the 32 lanes, in every lane.

    Errors: TL004 (no number).  Source: upstream `T.warp_reduce_min`.
    """
    return _over_warp("T.warp_reduce_min", value, min_of)


@checked_call
def warp_reduce_bitand(value: Any) -> Value:
    """The bitwise and of `value` over the 32 lanes, in every lane.  Errors: TL205 (float), TL004.  Source: upstream."""
    return _over_warp("T.warp_reduce_bitand", value, lambda a, b: a & b)


@checked_call
def warp_reduce_bitor(value: Any) -> Value:
    """The bitwise or of `value` over the 32 lanes, in every lane.  Errors: TL205 (float), TL004.  Source: upstream."""
    return _over_warp("T.warp_reduce_bitor", value, lambda a, b: a | b)
