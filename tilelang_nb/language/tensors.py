"""Annotations of kernel parameters, and symbolic sizes.

`A: T.Tensor((M, N), "float16")` says what a kernel takes.  The classes here only hold what was written; the front end
makes the
parameter.  A size is an integer or a `Value`: `T.dynamic("n")` is a size known at the launch.
"""

from __future__ import annotations

import keyword
import math
import re
from typing import Any

from tvm import tirx as tir

from ..source.wording import number_text, with_article
from .buffer_data import BufferData
from .building import is_building
from .calling import bad_argument, checked_call
from .dtypes import Dtype, dtype_of, storable
from .entry import installed
from .operands import FRAGMENT, GLOBAL, LOCAL, SHARED, described, unavailable
from .promotion import is_integer
from .values import Value, number, simplified

_MEMORIES = (GLOBAL, SHARED, FRAGMENT, LOCAL)
LARGEST_EXTENT = 2**63 - 1


def sizes_of(shape: Any, called: str, most: int = LARGEST_EXTENT) -> tuple[Any, ...]:
    """A shape as a tuple of ints and integer Values.

    TL004 for what is no size, a negative one, one above `most`, or a float.
    """
    if isinstance(shape, (str, bytes)) or shape is None:
        bad_argument(f"the shape of `{called}` is {described(shape)}", f"write a tuple: `{called}((M, N), dtype)`")
    given = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    return tuple([_size(extent, called, most) for extent in given])


def _size(extent: Any, called: str, most: int) -> Any:
    if isinstance(extent, Value):
        if not is_integer(extent.dtype):
            bad_argument(f"a size of `{called}` is {with_article(extent.dtype)} value", "give an integer")
        return simplified(extent)
    found = number(extent)
    if isinstance(found, float) and found.is_integer():
        remedy = f"write `{int(found)}`, or divide with `//`" if abs(found) < LARGEST_EXTENT else "give an integer"
        bad_argument(f"a size of `{called}` is the float {found}", remedy)
    if isinstance(found, (bool, float)) or not isinstance(found, int):
        bad_argument(f"a size of `{called}` is {described(extent)}", "give an integer, or `T.dynamic(name)`")
    if found < 0:
        bad_argument(f"a size of `{called}` is {number_text(found)}", "give 0 or more")
    check_extent(found, most, called)
    return found


def check_extent(count: int, most: int, called: str, what: str = "a size") -> None:
    """TL004 for more than memory can be addressed with."""
    if count > most:
        limit = f"2**{most.bit_length()}"
        bad_argument(f"{what} of `{called}` is {number_text(count)}", f"it has to be below {limit}")


def check_bytes(sizes: tuple[Any, ...], dtype: Dtype, called: str) -> None:
    """TL004 for an array whose bytes no address can count; sizes known only at the launch count as 1."""
    known = [size for size in sizes if isinstance(size, int)]
    check_extent(math.prod(known) * dtype.itemsize, LARGEST_EXTENT, called, "the number of bytes")


class Tensor:
    """`T.Tensor(shape, dtype)`: a kernel parameter in global memory, row-major and contiguous; also `T.Tensor[shape,
    dtype]`.

    shape: an integer, or a tuple or list of integers and `T.dynamic` sizes; `()` is rank 0.
    dtype: any dtype (default float32).
    data: `A.data` of a buffer, in a kernel: a view of its memory then, as `T.view(A, shape, dtype)` makes.
    scope: "global" (the default) for parameters; macros may take tiles in "shared.dyn", "local.fragment" or "local".
    Errors: TL004 (shape, keyword), TL205 (dtype without storage), TL302 (vector dtype; another pointer as `data=`),
    and those of `T.view`.
    Source: upstream `tilelang/language/proxy.py`.
    """

    default_scope = GLOBAL
    strides: tuple[Any, ...] | None = None

    def __new__(cls, shape: Any = None, dtype: Any = "float32", data: Any = None, *_: Any, **__: Any) -> Any:
        if isinstance(data, BufferData) and is_building():
            from .conversion import reshaped  # it is made of tensors itself

            return reshaped(data.buffer, shape, dtype, f"T.{cls.__name__}")
        return super().__new__(cls)

    @checked_call
    def __init__(self, shape: Any, dtype: Any = "float32", data: Any = None, scope: str | None = None):
        self._fill(shape, dtype, data, scope)

    def _fill(self, shape: Any, dtype: Any, data: Any = None, scope: str | None = None) -> None:
        called = f"T.{type(self).__name__}"
        if data is not None:
            unavailable(f"`{called}` with `data=` makes a view of a pointer", "give `A.data` of a buffer")
        self.scope = scope or self.default_scope
        if self.scope in ("shared", "shared.dyn"):
            self.scope = SHARED
        if self.scope not in _MEMORIES:
            bad_argument(f"`{called}` has no scope `{self.scope}`", f"use one of {', '.join(_MEMORIES)}")
        self.shape = sizes_of(shape, called)
        self.dtype: Dtype = storable(dtype, tile=True)
        check_bytes(self.shape, self.dtype, called)

    def __class_getitem__(cls, keys: Any) -> Any:
        """`T.Tensor[(M, N), dtype]`, `T.Tensor[[M, N], dtype]`, `T.Tensor[M, N]`."""
        keys = keys if isinstance(keys, tuple) else (keys,)
        if not any(isinstance(key, (tuple, list, str)) for key in keys):
            keys = (keys,)
        elif len(keys) > 1 and isinstance(keys[-1], str) and not isinstance(keys[0], (tuple, list)):
            keys = (keys[:-1], keys[-1])  # T.Tensor[M, N, "float16"]
        return cls(*keys)

    def __repr__(self) -> str:
        return f"T.{type(self).__name__}({self.shape}, {str(self.dtype)!r})"


class Buffer(Tensor):
    """`T.Buffer(shape, dtype)`: the older spelling of `T.Tensor`.

    strides: as in `T.StridedTensor`.  elem_offset, align, offset_factor, buffer_type, axis_separators: accepted at
    their
    defaults only.  Errors: as `T.Tensor`; TL302 for another layout option.
    Source: TVM's `T.Buffer`.
    """

    @checked_call
    def __init__(
        self,
        shape: Any,
        dtype: Any = "float32",
        data: Any = None,
        strides: Any = None,
        elem_offset: Any = None,
        scope: str | None = None,
        align: Any = None,
        offset_factor: Any = None,
        buffer_type: str = "",
        axis_separators: Any = None,
    ):
        self._fill(shape, dtype, data, scope)
        if elem_offset or offset_factor or buffer_type not in ("", "default") or axis_separators:
            unavailable(
                f"a layout option of `T.{type(self).__name__}`", "leave it out; strides are given with `strides=`"
            )
        if strides:
            self.strides = _strides_of(strides, self.shape, f"T.{type(self).__name__}")


class FragmentBuffer(Buffer):
    """`T.FragmentBuffer(shape, dtype)`: a macro parameter that is a fragment.

    Errors (TL004, TL205, TL302) and source: as `T.Buffer`.
    """

    default_scope = FRAGMENT


class SharedBuffer(Buffer):
    """`T.SharedBuffer(shape, dtype)`: a macro parameter in shared memory.

    Errors (TL004, TL205, TL302) and source: as `T.Buffer`.
    """

    default_scope = SHARED


class LocalBuffer(Buffer):
    """`T.LocalBuffer(shape, dtype)`: a macro parameter in per-thread memory.

    Errors (TL004, TL205, TL302) and source: as `T.Buffer`.
    """

    default_scope = LOCAL


class StridedTensor(Tensor):
    """`T.StridedTensor(shape, strides, dtype)`: a parameter whose elements lie `strides` elements apart.

    strides: as many as dimensions; integers or `T.dynamic` sizes.
    Errors: as `T.Tensor`; TL004 for another number of strides.  Source: upstream `tilelang/language/proxy.py`.
    """

    @checked_call
    def __init__(self, shape: Any, strides: Any, dtype: Any = "float32", scope: str | None = None, *, data: Any = None):
        self._fill(shape, dtype, data, scope)
        self.strides = _strides_of(strides, self.shape, "T.StridedTensor")


def _strides_of(strides: Any, shape: tuple[Any, ...], called: str) -> tuple[Any, ...]:
    found = sizes_of(strides, called)
    if len(found) != len(shape):
        bad_argument(
            f"`{called}` has {len(shape)} dimension(s) and {len(found)} stride(s)",
            f"give {len(shape)} strides, in elements",
        )
    return found


class Ref:
    """Annotation of a macro parameter that writes through: `def bump(v: T.Ref, by)`; also `v: T.Ref[T.int32]`.

    The argument is an element, a `T.alloc_var` variable, or a plain name.  Source: upstream `T.Ref`.
    """

    def __class_getitem__(cls, dtype: Any) -> type[Ref]:
        dtype_of(dtype)
        return cls


@checked_call
def dynamic(name: str, dtype: Any = "int32") -> Any:
    """A size known at the launch: `n = T.dynamic("n")`, `m, n = T.dynamic("m, n")`.

    name: an identifier, or several separated by commas or blanks (gives a tuple).  dtype: an integer dtype.
    The size is read from the shapes of the arguments that carry it.  Usable anywhere, also outside kernels.
    Errors: TL004 (no identifier, no integer dtype).  Source: upstream `tilelang/language/symbolics.py`.
    """
    return named_sizes(name, dtype, "T.dynamic")


def named_sizes(name: Any, dtype: Any, called: str) -> Any:
    """New sizes of these names, for `T.dynamic` and `T.const`; TL004 as there."""
    if not isinstance(name, str):
        bad_argument(f"`{called}` takes a name, {described(name)} given", f'write `n = {called}("n")`')
    names = [part for part in re.split(r"[,\s]+", name.strip()) if part]
    for part in names or [name]:
        if not part.isidentifier() or keyword.iskeyword(part):
            bad_argument(f"`{called}` takes an identifier, {part!r} given", f'write `n = {called}("n")`')
    kind = dtype_of(dtype)
    if not is_integer(kind) or kind.lanes > 1:
        bad_argument(f"a size of dtype `{kind}`", 'use `"int32"` or `"int64"`')
    made = tuple([Value(tir.Var(part, str(kind)), str(kind)) for part in names])
    return made if re.search(r"[,\s]", name.strip()) else made[0]


@checked_call
def symbolic(name: str, dtype: Any = "int32") -> Any:
    """The older spelling of `T.dynamic`.  Errors (TL004) and source as there."""
    return dynamic(name, dtype)


dyn = dynamic


class EmptyTensor:
    """What `T.empty` declares: a result that the caller of an eager kernel gets."""

    def __init__(self, shape: tuple[Any, ...], dtype: Dtype):
        self.shape, self.dtype = shape, dtype

    def __repr__(self) -> str:
        return f"T.empty({self.shape}, {str(self.dtype)!r})"


@checked_call
def empty(*shape: Any, dtype: Any = "float32") -> Any:
    """A result of an eager kernel: `C = T.empty((M, N), "float16")`, which the kernel fills and returns.

    shape: sizes, or one tuple of them, then perhaps the dtype.  The front end makes it an output parameter.
    Errors: TL004 (shape), TL205 (dtype).  Source: upstream `tilelang/language/allocate.py`.
    """
    if len(shape) == 2 and isinstance(shape[0], (tuple, list)):
        shape, dtype = (shape[0],), shape[1]
    elif len(shape) > 1 and isinstance(shape[-1], str):
        shape, dtype = shape[:-1], shape[-1]
    sizes = shape[0] if len(shape) == 1 else shape
    declared = EmptyTensor(sizes_of(sizes, "T.empty"), storable(dtype, tile=False))
    check_bytes(declared.shape, declared.dtype, "T.empty")
    hook = installed("empty")
    made = hook(declared) if hook is not None else None
    return declared if made is None else made
