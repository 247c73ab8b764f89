"""Places of elements as operations take them (`T.access_ptr`, `T.address_of`), and `T.ptx_cp_async` between two."""

from __future__ import annotations

import math
from typing import Any

from .buffer_data import BufferData, Pointer
from .calling import bad_argument, checked_call
from .dtypes import Dtype, dtype_of
from .layouts import indices_before
from .operands import (
    GLOBAL,
    SHARED,
    described,
    dtype_mismatch,
    element,
    integer,
    is_element,
    require_memory,
    scalar,
)
from .promotion import constant, is_float, is_integer
from .values import Buffer, Region, Value, builder

BYTES = (4, 8, 16)
_ACCESS = {"r": 1, "w": 2, "rw": 3}


def _place(value: Any, called: str, role: str) -> tuple[Buffer, tuple[Any, ...]]:
    """The first element of a buffer or region, or the element itself."""
    if isinstance(value, Pointer):
        return value.buffer, value.index
    if isinstance(value, Buffer):
        return value, (0,) * len(value.shape)
    if isinstance(value, Region):
        return value.buffer, tuple(value.begin)
    if is_element(value):
        return element(value)
    bad_argument(f"`{called}` takes an element as {role}, {described(value)} given", "index a buffer: `A[i, j]`")


@checked_call
def access_ptr(
    base: Any,
    access_type: Any = "r",
    *extents: Any,
    offset: Any = 0,
    extent: Any = None,
    ignore_last_ndim: int = 0,
) -> Pointer:
    """The place of an element: `T.access_ptr(A[i, j], "r", 8)`, for `T.ptx_cp_async`.

    base: an element, or a buffer or region, which begins at its first one.  access_type: "r", "w", "rw" (or 1, 2, 3).
    extents, extent: how many elements are meant, a constant; several are multiplied.  offset: elements further along
    the last dimension.  ignore_last_ndim: so many of the last indices count as 0.
    Errors: TL004 (operands), TL205 (offset).  Source: upstream `T.access_ptr`.
    """
    called = "T.access_ptr"
    buffer, index = _place(base, called, "its base")
    if isinstance(access_type, str) and access_type not in _ACCESS:
        bad_argument(f"`access_type={access_type!r}` of `{called}`", 'give "r", "w" or "rw"')
    known = _ACCESS[access_type] if isinstance(access_type, str) else access_type
    mask = integer(known, called, "access_type", 1, 3)
    given = extents[0] if len(extents) == 1 and isinstance(extents[0], (list, tuple)) else extents
    count = None
    if extent is not None:
        count = integer(extent, called, "extent", 1)
    elif given:
        count = math.prod([integer(one, called, "extents", 1) for one in given])
    ignored = integer(ignore_last_ndim, called, "ignore_last_ndim", 0, len(index))
    index = (*index[: len(index) - ignored], *(0,) * ignored)
    further = scalar(offset, called, "the offset")
    if isinstance(further, Value) and not is_integer(further.dtype):
        dtype_mismatch(f"the offset of `{called}` is {further.dtype}", "give an integer")
    if isinstance(further, Value) or integer(further, called, "offset"):
        index = (*index[:-1], index[-1] + further)
    return Pointer(buffer, index, count, mask)


@checked_call
def address_of(obj: Any, span: Any = None) -> Pointer:
    """The place of an element, `T.address_of(A[i, j])`, of a buffer or region the first: for atomic operations,
    `T.ptx_cp_async`, `T.call_extern`, and whatever else takes an element.

    Errors: TL004 (no element).  Source: TVM's `T.address_of`.
    """
    buffer, index = _place(obj, "T.address_of", "its operand")
    return Pointer(buffer, index, None, _ACCESS["rw"])


@checked_call
def type_annotation(dtype: Any) -> Dtype:
    """A dtype, as `T.tvm_access_ptr` takes it.

    Errors: TL205 (no dtype).  Source: TVM's `T.type_annotation`.
    """
    return dtype_of(dtype)


@checked_call
def tvm_access_ptr(ptype: Any, data: Any, offset: Any, extent: Any, rw_mask: Any) -> Pointer:
    """The place of an element by its number: `T.tvm_access_ptr(T.type_annotation("float16"), A.data, 8, 16, 1)`.

    ptype: the dtype of the buffer.  data: `A.data`.  offset: elements from its start, in row-major order.  extent: how
    many are meant, a constant.  rw_mask: 1 read, 2 written, 3 both.
    Errors: TL004 (operands), TL205 (another dtype than that of the buffer, an offset that is no integer).
    Source: TVM's `T.tvm_access_ptr`.
    """
    called = "T.tvm_access_ptr"
    if not isinstance(data, BufferData):
        bad_argument(f"`{called}` takes the memory of a buffer, {described(data)} given", "give `A.data`")
    buffer = data.buffer
    if dtype_of(ptype) != buffer.dtype:
        dtype_mismatch(f"`{called}` of `{buffer.name}`, which is {buffer.dtype}, as {ptype}", "give its own dtype")
    if buffer.strides is not None:
        bad_argument(f"`{called}` of `{buffer.name}`, which has strides of its own", "use `T.access_ptr(A[i, j])`")
    place = scalar(offset, called, "the offset")
    if isinstance(place, float) or (isinstance(place, Value) and not is_integer(place.dtype)):
        dtype_mismatch(f"the offset of `{called}` is no integer", "give an integer")
    index = indices_before([place], buffer.shape, (1,), called)
    return Pointer(
        buffer, tuple(index), integer(extent, called, "extent", 1), integer(rw_mask, called, "rw_mask", 1, 3)
    )


def _side(value: Any, role: str, memory: str, access: int, count: int) -> Region:
    """A side of the copy: `count` elements of one row."""
    called = "T.ptx_cp_async"
    pointer = value if isinstance(value, Pointer) else Pointer(*_place(value, called, role), None, access)
    name = pointer.buffer.name
    require_memory(pointer.buffer, (memory,), called, role, "use `T.copy` for other memories")
    if not pointer.access & access:
        does, other, word = ("reads", "writing", "r") if access == _ACCESS["r"] else ("writes", "reading", "w")
        bad_argument(
            f"`{called}` {does} `{name}`, and the pointer to it is for {other} only",
            f'give the pointer the access "{word}"',
        )
    if pointer.extent is not None and pointer.extent < count:
        bad_argument(
            f"`{called}` of {count} elements, and the pointer to `{name}` is for {pointer.extent}",
            f"give the pointer the extent {count}",
        )
    region = Region(pointer.buffer, pointer.index)
    region.extent = (*(1,) * (len(pointer.index) - 1), count)
    region.axes = tuple(range(len(region.extent)))
    return region


@checked_call
def ptx_cp_async(dst_access_ptr: Any, src_access_ptr: Any, num_elems: Any, predicate: Any = None) -> None:
    """Every executing thread starts a copy of 4, 8 or 16 bytes from global to shared memory.

    dst_access_ptr, src_access_ptr: `T.access_ptr(...)`, or the first element itself: `S[i]`, `A[i]`.  num_elems: a
    constant; the elements stand in one row on both sides.  predicate: where it is 0 nothing is read, and zeros arrive.
    `T.ptx_commit_group()` closes a group of copies, `T.ptx_wait_group(n)` waits, and a barrier must stand before other
    threads use what has arrived.  Elements over the edge of the source read as 0.  Both places must be multiples of
    these bytes.  Neighbours that do not lie side by side, and those of devices before sm_80, are copied at once.
    Errors: TL004 (operands, memory, bytes), TL205 (dtypes, predicate).  Source: upstream `T.ptx_cp_async`; PTX
    `cp.async`.
    """
    called = "T.ptx_cp_async"
    count = integer(num_elems, called, "num_elems", 1)
    target = _side(dst_access_ptr, "its target", SHARED, _ACCESS["w"], count)
    source = _side(src_access_ptr, "its source", GLOBAL, _ACCESS["r"], count)
    if source.dtype != target.dtype:
        dtype_mismatch(f"`{called}` from {source.dtype} to {target.dtype}", "use `T.copy`, which converts")
    size = count * Dtype(source.dtype).itemsize
    if size not in BYTES:
        bad_argument(f"`{called}` of {count} elements of {source.dtype}, {size} bytes", "copy 4, 8 or 16 bytes")
    condition = None
    if predicate is not None:
        condition = scalar(predicate, called, "the predicate")
        if isinstance(condition, float) or (isinstance(condition, Value) and is_float(condition.dtype)):
            dtype_mismatch(f"the predicate of `{called}` is no condition", "compare: `x != 0`")
        if not isinstance(condition, Value):
            condition = None if condition else constant(0, "bool")
        elif condition.dtype != "bool":
            condition = condition != 0
    builder().operation("cp_async", target, source, condition)


__all__ = ["access_ptr", "address_of", "ptx_cp_async", "tvm_access_ptr", "type_annotation"]
