"""Atomic operations on elements and on whole tiles."""

from __future__ import annotations

from typing import Any

from .calling import bad_argument, checked_call
from .copies import copy_boxes
from .operands import (
    GLOBAL,
    SHARED,
    box,
    boxed,
    choice,
    content,
    described,
    dtype_mismatch,
    element,
    flag,
    is_element,
    place,
    pointed,
    require_memory,
    same_extents,
    shape_mismatch,
    shown,
    squeezed,
    stored,
    unavailable,
)
from .promotion import is_float
from .values import Buffer, Region, Value, builder, number

ORDERS = ("relaxed", "consume", "acquire", "release", "acq_rel", "seq_cst")


def _order(memory_order: Any, called: str, allowed: tuple[str, ...] = ORDERS) -> str | None:
    return None if memory_order is None else choice(memory_order, called, "memory_order", allowed)


def _is_tile(value: Any) -> bool:
    return isinstance(value, Region) or (isinstance(value, Buffer) and not value.is_variable)


def _is_one(value: Any) -> bool:
    return isinstance(value, (Buffer, Region)) and not squeezed(
        value.shape if isinstance(value, Buffer) else value.extent
    )


def _check_target(called: str, kind: str, region: Any) -> None:
    require_memory(region, (GLOBAL, SHARED), called, "its target", "atomics are for memory that threads share")
    if kind in ("and", "or", "xor") and is_float(region.dtype):
        dtype_mismatch(f"`{called}` on {region.dtype}", "bit operations need an integer dtype")
    if region.dtype == "bool" or region.dtype.startswith("float8"):
        dtype_mismatch(f"`{called}` on {region.dtype}", "use an int32 or float32 buffer")


def atomic(called: str, kind: str, target: Any, value: Any, memory_order: Any, return_prev: Any) -> Any:
    """The atomic operation of a kind, "add", "max", "min" or "or"; its old content where that is asked for."""
    order = _order(memory_order, called)
    wants_old = flag(return_prev, called, "return_prev")
    value, target = content(value), pointed(target)
    if _is_tile(value) and not (_is_one(target) and _is_one(value)):
        boxes = copy_boxes(value, target, called)
        assert boxes is not None
        source, written = boxes
        _no_old(wants_old, called)
        _check_target(called, kind, written)
        if is_float(source.dtype) and not is_float(written.dtype):
            dtype_mismatch(f"`{called}` of {source.dtype} into {written.dtype}", f"give values of {written.dtype}")
        builder().operation("atomic_region", kind, written, source, order)
        return None
    if _is_tile(value):
        value = value[(0,) * len(value.shape)]
    if number(value) is None:
        bad_argument(f"`{called}` takes a number or a tile as its value, {described(value)} given", "give a number")
    region = box(target, called, "its target")
    _check_target(called, kind, region)
    contribution = stored(value, region.buffer.name, region.dtype)
    if squeezed(region.extent):
        _no_old(wants_old, called)
        builder().operation("atomic_region", kind, region, contribution, order)
        return None
    old = builder().operation("atomic_element", kind, region, contribution, order, dtype=region.dtype)
    return old if wants_old else None


def _no_old(wants_old: bool, called: str) -> None:
    if wants_old:
        bad_argument(f"`{called}` on a tile gives no previous value", "index one element for `return_prev=True`")


@checked_call
def atomic_add(
    dst: Any,
    value: Any,
    memory_order: str | None = None,
    return_prev: bool = False,
    use_tma: bool = False,
    annotations: dict | None = None,
) -> Any:
    """Adds `value` to `dst` in one indivisible step.

    dst: an element `C[i]` or one-element buffer (every executing thread adds once), or a tile: a buffer, region or
    origin, in global or shared memory.  value: a number or device value, or a tile of the same extents; a number on a
    tile is added once per element.
    memory_order: "relaxed" (the default: it orders no other access), "acquire", "release", "acq_rel", "seq_cst" or
        "consume" (as "acquire"), for all blocks of the device (PTX ISA, memory consistency model).
    return_prev: gives the old content (elements only).  use_tma: a hint.
    Errors: TL204 (shapes), TL205 (dtypes), TL004 (operand, memory, order).
    Source: upstream `tilelang/language/atomic.py`.
    """
    return atomic("T.atomic_add", "add", dst, value, memory_order, return_prev)


@checked_call
def atomic_max(
    dst: Any, value: Any, memory_order: str | None = None, return_prev: bool = False, annotations: dict | None = None
) -> Any:
    """`dst = max(dst, value)` in one indivisible step.  Operands as for `T.atomic_add`.

    Errors: TL204 (shapes), TL205 (dtypes), TL004 (operand, memory, order).
    Source: upstream `tilelang/language/atomic.py`.
    """
    return atomic("T.atomic_max", "max", dst, value, memory_order, return_prev)


@checked_call
def atomic_min(
    dst: Any, value: Any, memory_order: str | None = None, return_prev: bool = False, annotations: dict | None = None
) -> Any:
    """`dst = min(dst, value)` in one indivisible step.  Operands as for `T.atomic_add`.

    Errors: TL204 (shapes), TL205 (dtypes), TL004 (operand, memory, order).
    Source: upstream `tilelang/language/atomic.py`.
    """
    return atomic("T.atomic_min", "min", dst, value, memory_order, return_prev)


@checked_call
def atomic_or(dst: Any, value: Any, memory_order: str | None = None) -> None:
    """`dst = dst | value` in one indivisible step; integers.  Operands as for `T.atomic_add`.

    Errors: TL204 (shapes), TL205 (dtypes), TL004 (operand, memory, order).
    Source: upstream `tilelang/language/atomic.py`.
    """
    atomic("T.atomic_or", "or", dst, value, memory_order, False)


def first_of(value: Any, lanes: int, called: str, role: str) -> tuple[Buffer, tuple[Any, ...]]:
    """The place of the first of `lanes` neighbours; TL204 where a region has another number of elements."""
    value = pointed(value)
    if is_element(value):
        buffer, index = element(value)
    else:
        region = box(value, called, role)
        buffer, index = region.buffer, region.begin
        if not same_extents(squeezed(region.extent), (lanes,)):
            shape_mismatch(
                f"`{called}` takes {lanes} neighbours as {role}, {described(value)} has shape {shown(region.extent)}",
                f"give the first of {lanes} elements, or a region of {lanes}",
            )
    if not index:
        shape_mismatch(f"`{called}` takes {lanes} neighbours as {role}", "give a buffer of at least one dimension")
    last = buffer.shape[-1]
    if isinstance(last, int) and isinstance(index[-1], int) and index[-1] + lanes > last:
        shape_mismatch(
            f"`{called}` reaches over the end of `{buffer.name}`, shape {shown(buffer.shape)}",
            f"start {lanes} before the end",
        )
    return buffer, index


def _along(index: tuple[Any, ...], lane: int) -> tuple[Any, ...]:
    return (*index[:-1], index[-1] + lane) if lane else index


def _neighbours(called: str, lanes: int, target: Any, value: Any, return_prev: Any) -> None:
    if flag(return_prev, called, "return_prev"):
        unavailable(
            f"`{called}` with `return_prev=True` gives a vector", "add the elements one by one with `T.atomic_add`"
        )
    into, at = first_of(target, lanes, called, "its target")
    source, start = first_of(value, lanes, called, "its value")
    for lane in range(lanes):
        region = boxed(into, _along(at, lane), (1,) * len(at))
        _check_target(called, "add", region)
        item = stored(source[_along(start, lane)], into.name, into.dtype)
        builder().operation("atomic_element", "add", region, item, None, dtype=into.dtype)


@checked_call
def atomic_addx2(dst: Any, value: Any, return_prev: bool = False) -> None:
    """Adds two neighbouring elements: `T.atomic_addx2(C[i, j], v[0])`; each of them is indivisible, the pair is not.

    dst: the first element, or a region of two, in global or shared memory.  value: likewise, in any memory.
    Errors: TL204 (extents), TL205 (dtypes), TL004 (operand, memory), TL302 (`return_prev`).
    Source: upstream `tilelang/language/atomic.py`; CUDA's vector `atomicAdd`.
    """
    _neighbours("T.atomic_addx2", 2, dst, value, return_prev)


@checked_call
def atomic_addx4(dst: Any, value: Any, return_prev: bool = False) -> None:
    """Adds four neighbouring elements, as `T.atomic_addx2` adds two.

    Errors: TL204 (extents), TL205 (dtypes), TL004 (operand, memory), TL302 (`return_prev`).
    Source: upstream `tilelang/language/atomic.py`; CUDA's vector `atomicAdd`.
    """
    _neighbours("T.atomic_addx4", 4, dst, value, return_prev)


@checked_call
def atomic_load(src: Any, memory_order: str = "seq_cst") -> Value:
    """Reads an element that other threads may be writing.

    src: an element, or a buffer that has only one, in global or shared memory.
    memory_order: "relaxed", "consume", "acquire" or "seq_cst".
    Errors: TL004 (operand, memory, order).  Source: upstream `tilelang/language/atomic.py`.
    """
    called = "T.atomic_load"
    order = _order(memory_order, called, ("relaxed", "consume", "acquire", "seq_cst"))
    region = place(src, called, "its source")
    require_memory(region, (GLOBAL, SHARED), called, "its source", "atomics are for memory that threads share")
    return builder().operation("atomic_load", region, order, dtype=region.dtype)


@checked_call
def atomic_store(dst: Any, src: Any, memory_order: str = "seq_cst") -> None:
    """Writes an element that other threads may be reading.

    dst: an element, or a buffer that has only one, in global or shared memory.  src: a number or device value.
    memory_order: "relaxed", "release" or "seq_cst".
    Errors: TL004 (operand, memory, order), TL135, TL140 (value).  Source: upstream `tilelang/language/atomic.py`.
    """
    called = "T.atomic_store"
    order = _order(memory_order, called, ("relaxed", "release", "seq_cst"))
    region = place(dst, called, "its target")
    require_memory(region, (GLOBAL, SHARED), called, "its target", "atomics are for memory that threads share")
    builder().operation("atomic_store", region, stored(src, region.buffer.name, region.dtype), order)
