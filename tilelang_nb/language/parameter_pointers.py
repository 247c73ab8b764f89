"""Parameters that are bare pointers (`a: T.ptr`), and the tensors that `T.make_tensor` makes of them.

The tensor becomes what the kernel takes in the place of the pointer: the launch knows its shape and dtype, and checks
the array that it gets against them.
"""

from __future__ import annotations

from collections.abc import Set
from typing import Any

import tvm_ffi
from tvm import tirx as tir
from tvm.ir import Var

from ..source import catalogue as say
from ..source.diagnostic import Message
from ..source.wording import of_type
from .buffer_data import BufferData
from .calling import bad_argument, checked_call
from .dtypes import Dtype, storable
from .operands import GLOBAL, described, dtype_mismatch, same_extents, shown, unavailable
from .promotion import in_ir
from .protocols import refuse
from .tensors import check_bytes, sizes_of
from .values import Buffer, Value, builder


class ptr:
    """A parameter that is a bare pointer: `def k(a: T.ptr, n: T.int32):`, also `a: T.ptr("float16")`, `a: T.handle`.

    `A = T.make_tensor(a, (n,), "float16")` in the kernel says what it points to.  A launch passes the array itself.
    dtype: of its elements, where it says so.  storage_scope: "global" only.  is_size_var: without effect.
    Errors: TL004 (dtype), TL302 (another scope).  Source: upstream `T.ptr`.
    """

    dtype_name = "handle"  # as the type of elements, where it is refused

    @checked_call
    def __init__(self, dtype: Any = None, storage_scope: str = GLOBAL, *, is_size_var: bool = False):
        if not isinstance(storage_scope, str):
            bad_argument(f"the scope of `T.ptr` is {described(storage_scope)}", "leave it out")
        if storage_scope != GLOBAL:
            unavailable(f"a parameter that points into `{storage_scope}`", "leave it out: arrays are in global memory")
        unsaid = dtype is None or (isinstance(dtype, str) and dtype in ("void", "handle"))
        self.dtype = None if unsaid else storable(dtype, tile=False)

    def __repr__(self) -> str:
        return "T.ptr" if self.dtype is None else f"T.ptr({str(self.dtype)!r})"


def pointer_kind(kind: Any) -> ptr | None:
    """The pointer that an annotation declares; None for others."""
    if kind is ptr or (isinstance(kind, Dtype) and kind == "handle"):
        return ptr()
    return kind if isinstance(kind, ptr) else None


def _no_number(self: ParameterPointer) -> Message:
    made = self.buffer.name if self.buffer is not None else self.name.upper()
    remedy = f"make a tensor of it, `{made} = T.make_tensor({self.name}, shape, dtype)`, and index that"
    return say.UnsupportedSyntax(what=f"arithmetic on the pointer `{self.name}`", remedy=remedy)


class ParameterPointer:
    """A parameter `a: T.ptr` in its kernel; not a number.

    sizes: the variables that a launch knows, of which shapes may be made.  buffer: its tensor, once there is one.
    """

    def __init__(self, name: str, dtype: Dtype | None, sizes: Set[Any]):
        self.name, self.dtype, self.sizes = name, dtype, sizes
        self.buffer: Buffer | None = None

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = refuse(_no_number)
    __getitem__ = __setitem__ = __iter__ = __len__ = __bool__ = refuse(_no_number)

    def __repr__(self) -> str:
        return f"the pointer {self.name}"


def _known(sizes: tuple[Any, ...], pointer: ParameterPointer, what: str) -> None:
    """TL004 for a size that the launch does not know."""
    for size in sizes:
        if isinstance(size, Value):
            used: set[Any] = set()  # buffers too
            tvm_ffi.structural_walk(size.use(), (Var, used.add))
            if not used <= pointer.sizes:
                bad_argument(
                    f"a {what} of `T.make_tensor({pointer.name}, ...)` is known only when the kernel runs",
                    "give a constant, a number that is a parameter, or what is computed of these",
                )


@checked_call
def make_tensor(ptr: Any, shape: Any, dtype: Any = "float32", strides: Any = None) -> Any:
    """The tensor that a pointer parameter points to: `A = T.make_tensor(a, (m, k), "float16")`.

    ptr: a parameter annotated `T.ptr`, or the memory of a buffer, `A.data`.  shape: constants and parameters that are
    numbers.  dtype: of the elements.  strides: in elements; row-major without gaps where they are left out.
    A launch passes an array of at least so many elements in one row, of that dtype.
    Errors: TL004 (pointer, shape, strides), TL205 (dtype; another one than the pointer's), TL302 (a second tensor
    of another shape, a pointer read from memory).  Source: upstream `T.make_tensor`.
    """
    called = "T.make_tensor"
    if isinstance(ptr, BufferData):
        from .conversion import reshaped

        if strides is not None:
            unavailable(f"`{called}` of a buffer with `strides=`", "leave them out")
        return reshaped(ptr.buffer, shape, dtype, called)
    if not isinstance(ptr, ParameterPointer):
        if isinstance(ptr, Buffer):
            bad_argument(f"`{called}` of the tensor `{ptr.name}`", f"use `{ptr.name}`, or `T.view({ptr.name}, shape)`")
        if isinstance(ptr, Value):
            unavailable(
                "a pointer that is a number",
                "pass one array that holds all of them, and index it: `T.Tensor((L, N), ...)`",
            )
        bad_argument(f"`{called}` takes a parameter annotated `T.ptr`, {of_type(ptr)} given", "annotate it: `a: T.ptr`")
    sizes = sizes_of(shape, called)
    steps = None if strides is None else sizes_of(strides, called)
    kind = storable(dtype, tile=False)
    check_bytes(sizes, kind, called)
    if steps is not None and len(steps) != len(sizes):
        bad_argument(
            f"`{called}` of {len(sizes)} dimension(s) and {len(steps)} stride(s)", f"give {len(sizes)} strides"
        )
    if ptr.dtype is not None and ptr.dtype != kind:
        dtype_mismatch(f"`{called}` of {kind}, and `{ptr.name}` points to {ptr.dtype}", f'write `"{ptr.dtype}"`')
    _known(sizes, ptr, "size")
    _known(steps or (), ptr, "stride")
    return _again(ptr, sizes, kind, steps) if ptr.buffer is not None else _first(ptr, sizes, kind, steps)


def _first(pointer: ParameterPointer, sizes: Any, kind: Dtype, steps: Any) -> Buffer:
    found = builder()
    shape, strides = _exprs(sizes), None if steps is None else _exprs(steps)
    var = tir.decl_buffer(shape, in_ir(kind), pointer.name, strides=strides, layout=None)
    for extent in shape:
        found.ranges.size(extent)
    name = getattr(found, "hint", None) or pointer.name
    pointer.buffer = Buffer(name, sizes, kind, GLOBAL, var, steps)
    return pointer.buffer


def _exprs(sizes: Any) -> tuple[Any, ...]:
    return tuple([size.use() if isinstance(size, Value) else int(size) for size in sizes])


def _again(pointer: ParameterPointer, sizes: Any, kind: Dtype, steps: Any) -> Buffer:
    before = pointer.buffer
    assert before is not None
    same = before.dtype == kind and len(before.shape) == len(sizes) and same_extents(before.shape, sizes)
    if same and (steps is None) == (before.strides is None) and (steps is None or same_extents(before.strides, steps)):
        return before
    unavailable(
        f"a second tensor of `{pointer.name}`, {kind} {shown(sizes)} beside {before.dtype} {shown(before.shape)}",
        f"make one, and view it: `T.view({before.name}, shape, dtype)`",
    )


__all__ = ["ParameterPointer", "make_tensor", "pointer_kind", "ptr"]
