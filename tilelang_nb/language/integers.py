"""Integer arithmetic: divisions, bit operations, limits of a dtype, and indices as coordinates.

Every function works on compile-time numbers as Python does, also outside kernels: `T.ceildiv(10, 3) == 4`.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
from tvm import tirx as tir

from ..source.wording import number_text, with_article
from .calling import bad_argument, checked_call
from .dtypes import computable
from .operands import dtype_mismatch, scalar
from .promotion import bits, integer_range, is_float, is_integer, join_operands
from .values import Value, arithmetic, derived


def integers(called: str, *values: Any) -> list[Any]:
    """Operands that are integers; TL205 for floats, TL004 for what is no number."""
    found = [scalar(value, called, "an operand") for value in values]
    for value in found:
        dtype = value.dtype if isinstance(value, Value) else "float" if isinstance(value, float) else "int"
        if is_float(dtype):
            dtype_mismatch(f"`{called}` of {with_article(dtype)}", "cast it to int32 first, or divide with `/`")
    return found


def _divisor(called: str, value: Any) -> None:
    if not isinstance(value, Value) and value == 0:
        bad_argument(f"`{called}` by 0", "give a divisor other than 0")


@checked_call
def ceildiv(lhs: Any, rhs: Any, span: Any = None) -> Any:
    """`lhs / rhs` rounded up, for a positive `rhs`; the number of blocks of `rhs` that cover `lhs`.

    Integers, compile-time or device.  Errors: TL205 (float), TL004 (no number, 0).  Source: TVM's `ceildiv`.
    """
    a, b = integers("T.ceildiv", lhs, rhs)
    _divisor("T.ceildiv", b)
    if not isinstance(a, Value) and not isinstance(b, Value):
        return -(-a // b)
    if isinstance(b, int) and b == 1:
        return a
    return (a + b - 1) // b


@checked_call
def floordiv(a: Any, b: Any, span: Any = None) -> Any:
    """`a // b`: rounded towards minus infinity, as Python.  Floats too.

    Errors: TL004 (no number, 0).  Source: TVM's `floordiv`.
    """
    a, b = scalar(a, "T.floordiv", "an operand"), scalar(b, "T.floordiv", "an operand")
    _divisor("T.floordiv", b)
    return a // b


@checked_call
def floormod(a: Any, b: Any, span: Any = None) -> Any:
    """`a % b`: the remainder of `T.floordiv`, with the sign of `b`, as Python.  Floats too.

    Errors: TL004 (no number, 0).  Source: TVM's `floormod`.
    """
    a, b = scalar(a, "T.floormod", "an operand"), scalar(b, "T.floormod", "an operand")
    _divisor("T.floormod", b)
    return a % b


def _truncated(called: str, a: Any, b: Any, node: Any, python: Any) -> Any:
    a, b = integers(called, a, b)
    _divisor(called, b)
    if not isinstance(a, Value) and not isinstance(b, Value):
        return python(int(a), int(b))
    x, y, dtype = join_operands(a, b)
    if dtype == "bool":
        x, y, dtype = tir.Cast("int32", x), tir.Cast("int32", y), "int32"
    return derived(node(x, y), dtype, a, b)


def _quotient(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


@checked_call
def truncdiv(a: Any, b: Any, span: Any = None) -> Any:
    """`a / b` of integers, rounded towards zero, as C.

    Errors: TL205 (float), TL004 (no number, 0).  Source: TVM's `truncdiv`.
    """
    return _truncated("T.truncdiv", a, b, tir.truncdiv, _quotient)


@checked_call
def truncmod(a: Any, b: Any, span: Any = None) -> Any:
    """The remainder of `T.truncdiv`, with the sign of `a`, as C's `%`.

    Errors: TL205 (float), TL004 (no number, 0).  Source: TVM's `truncmod`.
    """
    return _truncated("T.truncmod", a, b, tir.truncmod, lambda p, q: p - _quotient(p, q) * q)


def _bitwise(called: str, op: str, x: Any, y: Any) -> Any:
    a, b = integers(called, x, y)
    if op in ("<<", ">>") and not isinstance(b, Value) and not 0 <= b < 64:
        bad_argument(f"`{called}` by {number_text(b)}", "shift by 0..63")
    if not isinstance(a, Value) and not isinstance(b, Value):
        return {"&": operator.and_, "|": operator.or_, "^": operator.xor, "<<": operator.lshift, ">>": operator.rshift}[
            op
        ](a, b)
    return arithmetic(op, a, b)


@checked_call
def bitwise_and(x: Any, y: Any, span: Any = None) -> Any:
    """`x & y`.  Errors: TL205 (float), TL004 (no number).  Source: TVM's `bitwise_and`."""
    return _bitwise("T.bitwise_and", "&", x, y)


@checked_call
def bitwise_or(x: Any, y: Any, span: Any = None) -> Any:
    """`x | y`.  Errors: TL205 (float), TL004 (no number).  Source: TVM's `bitwise_or`."""
    return _bitwise("T.bitwise_or", "|", x, y)


@checked_call
def bitwise_xor(x: Any, y: Any, span: Any = None) -> Any:
    """`x ^ y`.  Errors: TL205 (float), TL004 (no number).  Source: TVM's `bitwise_xor`."""
    return _bitwise("T.bitwise_xor", "^", x, y)


@checked_call
def bitwise_not(x: Any, span: Any = None) -> Any:
    """`~x`.  Errors: TL205 (float), TL004 (no number).  Source: TVM's `bitwise_not`."""
    (a,) = integers("T.bitwise_not", x)
    return ~a


@checked_call
def shift_left(x: Any, y: Any, span: Any = None) -> Any:
    """`x << y`.  Errors: TL205 (float), TL004 (no number).  Source: TVM's `shift_left`."""
    return _bitwise("T.shift_left", "<<", x, y)


@checked_call
def shift_right(x: Any, y: Any, span: Any = None) -> Any:
    """`x >> y`, keeping the sign.  Errors: TL205 (float), TL004 (no number).  Source: TVM's `shift_right`."""
    return _bitwise("T.shift_right", ">>", x, y)


@checked_call
def align_up(x: Any, y: Any) -> Any:
    """`x` rounded up to a multiple of `y`.

    Errors: TL205 (float), TL004 (no number, 0).  Source: upstream `T.align_up`.
    """
    a, b = integers("T.align_up", x, y)
    _divisor("T.align_up", b)
    return ceildiv(a, b) * b


@checked_call
def index_to_coordinates(index: Any, shape: Any) -> list[Any]:
    """The coordinates of a row-major linear index in a shape, as a list.

    Errors: TL205 (float), TL004 (no number).  Source: upstream `tilelang/language/utils.py`.
    """
    if not isinstance(shape, (list, tuple)):
        bad_argument("`shape` of `T.index_to_coordinates` is no tuple", "write `T.index_to_coordinates(i, (M, N))`")
    (rest,) = integers("T.index_to_coordinates", index)
    coordinates: list[Any] = []
    for extent in reversed(integers("T.index_to_coordinates", *shape)):
        coordinates.insert(0, rest % extent)
        rest = rest // extent
    return coordinates


def _limits(called: str, dtype: Any) -> tuple[Any, Any]:
    name = computable(dtype)
    if name == "bool":
        return False, True
    if is_integer(name):
        return integer_range(str(name))
    found = name.as_numpy()
    if found.kind == "f":
        info: Any = np.finfo(found)
    else:
        import ml_dtypes

        info = ml_dtypes.finfo(found)
    return float(info.min), float(info.max)


@checked_call
def min_value(dtype: Any, span: Any = None) -> Any:
    """The lowest finite value of a dtype, a Python number: -128 for int8, -65504.0 for float16.

    Errors: TL205 (dtype).  Source: TVM's `min_value`.
    """
    return _limits("T.min_value", dtype)[0]


@checked_call
def max_value(dtype: Any, span: Any = None) -> Any:
    """The largest finite value of a dtype, a Python number: 127 for int8, 65504.0 for float16.

    Errors: TL205 (dtype).  Source: TVM's `max_value`.
    """
    return _limits("T.max_value", dtype)[1]


@checked_call
def infinity(dtype: Any, span: Any = None) -> float:
    """Infinity, as a Python float that takes the dtype of what it meets; `-T.infinity(dtype)` for minus infinity.

    dtype: a float dtype that has an infinity.
    Errors: TL205 (integer dtype, float8_e4m3fn).  Source: upstream `T.infinity`.
    """
    name = computable(dtype)
    if not is_float(name) or "fn" in name:
        dtype_mismatch(f"`{name}` has no infinity", f'use `T.max_value("{name}")`, or a float dtype with one')
    return float("inf")


def _bit_count(called: str, x: Any, node: Any, python: Any, dtype: str = "int32") -> Any:
    (value,) = integers(called, x)
    if not isinstance(value, Value):
        return python(int(value))
    return derived(tir.Cast(dtype, node(value.use())) if bits(value.dtype) != 32 else node(value.use()), dtype, value)


@checked_call
def popcount(x: Any) -> Any:
    """The number of set bits, int32.  Errors: TL205 (float), TL004 (no number).  Source: TVM's `popcount`."""
    return _bit_count("T.popcount", x, tir.popcount, lambda v: bin(v & 0xFFFFFFFF).count("1"))


@checked_call
def clz(x: Any) -> Any:
    """The number of leading zero bits of a 32- or 64-bit integer, int32.

    A compile-time number counts as int32.  Errors: TL205 (float), TL004 (no number).  Source: TVM's `clz`.
    """
    return _bit_count("T.clz", x, tir.clz, lambda v: 32 - (v & 0xFFFFFFFF).bit_length())
