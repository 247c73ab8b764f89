"""Conversions: of values (`T.cast`, `T.reinterpret`) and of buffers (`T.reshape`, `T.view`)."""

from __future__ import annotations

from typing import Any

from tvm import tirx as tir

from .calling import bad_argument, checked_call
from .dtypes import Dtype, cast_to, computable, storable
from .integers import max_value
from .operands import (
    choice,
    described,
    dtype_mismatch,
    flag,
    same_extent,
    same_extents,
    scalar,
    shape_mismatch,
    shown,
    sized,
    unavailable,
)
from .promotion import in_ir, is_float, strong, weak
from .selection import clamp, if_then_else
from .tensors import sizes_of
from .thread_reductions import NullPointer
from .values import Buffer, Value, builder, derived


@checked_call
def cast(value: Any, dtype: Any, round: str = "", sat: Any = None, rbits: Any = None, span: Any = None) -> Value:
    """`value` converted to `dtype`: floats to nearest even, floats to integers truncated, to bool as `!= 0`.

    value: a number or device value; a Python number becomes a constant of that dtype.  round: "" or "rn".
    sat: True limits a float8 result to its finite range; otherwise infinity stays where the type has one.
    Errors: TL205 (dtype), TL135 (integer constant outside the range), TL004 (no number), TL302 (other rounding).
    Source: upstream `T.cast`, TVM's `Cast`.
    """
    if choice(round, "T.cast", "round", ("", "rn", "rz", "rs")) not in ("", "rn") or rbits is not None:
        unavailable(f'`T.cast` with `round="{round}"`', 'leave it out: casts round to nearest even, `round="rn"`')
    finite = sat is not None and flag(sat, "T.cast", "sat")
    value = scalar(value, "T.cast", "its operand")
    target = computable(dtype)
    if finite and target.startswith("float8") and isinstance(value, Value) and is_float(value.dtype):
        limit = max_value(target)
        value = if_then_else(value != value, value, clamp(value, -limit, limit))
    return cast_to(value, target)


@checked_call
def Cast(dtype: Any, value: Any, annotations: Any = None, span: Any = None) -> Value:
    """`T.cast` with the dtype first.  Errors (TL205, TL135, TL004) as there.  Source: TVM's `Cast`."""
    return cast_to(scalar(value, "T.Cast", "its operand"), dtype)


@checked_call
def reinterpret(value: Any, dtype: Any, span: Any = None) -> Any:
    """The bits of `value` as a value of `dtype`, which has the same width.

    value: a device value; a Python number counts as float32 or int32.
    dtype: "handle" gives the null pointer of 0, which `T.attr` takes.
    Errors: TL205 (another width, bool), TL004 (no number), TL302 (a pointer other than 0).
    Source: TVM's `reinterpret`, CUDA's `__float_as_int` and its like.
    """
    if isinstance(value, str) and not isinstance(dtype, str):
        value, dtype = dtype, value  # the older order of arguments
    if isinstance(dtype, str) and dtype == "handle":
        return _null_pointer(value)
    found = scalar(value, "T.reinterpret", "its operand")
    target = computable(dtype)
    if not isinstance(found, Value):
        found = cast_to(found, strong(weak(found), found))
    source = Dtype(found.dtype)
    if source == target:
        return found
    if "bool" in (source, target) or source.itemsize != target.itemsize:
        dtype_mismatch(
            f"`T.reinterpret` from {source} ({source.bits} bits) to {target} ({target.bits} bits)",
            "name a dtype of the same width, or convert the value with `T.cast`",
        )
    if in_ir(source) == in_ir(target):
        return derived(found.use(), str(target), found)
    return derived(tir.reinterpret(in_ir(target), found.use()), str(target), found)


def _null_pointer(value: Any) -> Any:
    found = value.use() if isinstance(value, Value) else value
    if (int(found.value) if isinstance(found, tir.IntImm) else found) != 0:
        unavailable("a pointer made of a number", "pass the buffer or a region of it")
    return NullPointer()


def _viewed(source: Buffer, shape: tuple[Any, ...], dtype: Dtype) -> Buffer:
    found = builder()
    name = getattr(found, "hint", None) or f"{source.name}_view"
    var = tir.decl_buffer(
        [source.index_expr(extent) for extent in shape], in_ir(dtype), name, scope=source.memory, layout=None
    )
    found.emit(tir.DeclBuffer(var, data=tir.buffer_data(source.var), span=found.span))
    return Buffer(name, shape, str(dtype), source.memory, var, home=source.home)


def _elements(shape: tuple[Any, ...], factor: int) -> Any:
    product: Any = factor
    for extent in shape:
        product = product * extent
    return product


def reshaped(source: Any, shape: Any, dtype: Any, called: str) -> Buffer:
    """What `T.reshape` and `T.view` give; `called` is the name in messages."""
    if not isinstance(source, Buffer):
        bad_argument(f"`{called}` takes a buffer, {described(source)} given", "give the buffer itself")
    if source.strides is not None:
        unavailable(f"`{called}` of the strided tensor `{source.name}`", "copy it into a tile first")
    target = storable(source.dtype if dtype is None else dtype, tile=True)
    if source.memory == "shared.barrier" or (target == "bool") != (source.dtype == "bool"):
        dtype_mismatch(f"`{called}` of {source.dtype} as {target}", "view numbers as numbers of another width")
    sizes = source.shape if shape is None else sizes_of(shape, called)
    old, new = Dtype(source.dtype).itemsize, target.itemsize
    if old != new and source.memory in ("local", "local.var"):  # registers have no bytes to address
        dtype_mismatch(
            f"`{called}` of the per-thread array `{source.name}` of {source.dtype} as {target}, of another width",
            "view a shared tile, or reinterpret as a type of the same width",
        )
    if shape is None and old != new:
        last = source.shape[-1] if source.shape else 1
        if not isinstance(last, int) or last * old % new:
            shape_mismatch(
                f"`{source.name}`, shape {shown(source.shape)}, does not divide into {target} elements", "give `shape=`"
            )
        sizes = (*source.shape[:-1], last * old // new)
    if not same_extent(_elements(sizes, new), _elements(source.shape, old)):
        shape_mismatch(
            f"`{called}` of {sized(source)} of {source.dtype}, to {shown(sizes)} of {target}: "
            f"{_elements(source.shape, old)} bytes against {_elements(sizes, new)}",
            "keep the number of bytes",
        )
    if target == source.dtype and same_extents(sizes, source.shape):
        return source
    return _viewed(source, tuple(sizes), target)


@checked_call
def reshape(src: Any, shape: Any) -> Buffer:
    """The same memory with another shape; elements keep their row-major order.  No copy.

    src: a buffer in any memory.  shape: as many elements as before.
    Errors: TL204 (another number of elements), TL004 (no buffer), TL302 (strided tensor).
    Source: upstream `tilelang/language/customize.py`.
    """
    return reshaped(src, shape, None, "T.reshape")


@checked_call
def view(src: Any, shape: Any = None, dtype: Any = None, strides: Any = None) -> Buffer:
    """The same memory with another shape and dtype.  No copy.

    src: a buffer in any memory.  shape: default the source's, its last dimension fitted to the dtype.
    dtype: default the source's.
    Errors: TL204 (another number of bytes), TL205 (dtype; another width of a per-thread array), TL004 (no buffer),
    TL302 (strides).
    Source: upstream `tilelang/language/customize.py`.
    """
    if strides is not None:
        unavailable("`T.view` with `strides=`", "give `shape=` only: a view is row-major")
    return reshaped(src, shape, dtype, "T.view")
