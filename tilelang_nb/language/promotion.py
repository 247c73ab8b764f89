"""Element types: their names, promotion of operands, weak literals, constants, and joins of re-bound names.

A Python number is weak: it takes the type of what it meets.  The type of a re-bound name is a join over everything
bound to it: weak int < weak float; weak with strong gives the strong type; two strong types must agree (TL132).

Two integers promote as in NumPy, so that Python's value is kept: the wider type, where it holds what both do; a signed
with an unsigned one that is as wide or wider give the next wider signed type (int8 and uint32: int64, since uint32 has
no -5).  No type is wider than int64, which is what uint64 with a signed type gives.
"""

from __future__ import annotations

import math
import re
from functools import lru_cache
from typing import Any

import ml_dtypes
import numpy as np
from tvm import tirx as tir

from ..source import catalogue as say
from ..source.diagnostic import Refusal
from ..source.wording import number_text

Kind = str | tuple[str, str]  # a strong dtype, or ("weak", "bool" | "int" | "float"), or:
BOOL_OR_INT = ("bool", "int")  # a name bound to a strong bool and to an int literal; it is held as int32

FLOAT8 = (
    "float8_e4m3",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e4m3b11fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e3m4",
    "float8_e8m0fnu",
)
FLOATS = (
    "float16",
    "bfloat16",
    "float32",
    "tfloat32",
    "float64",
    *FLOAT8,
    "float6_e2m3fn",
    "float6_e3m2fn",
    "float4_e2m1fn",
)
INTEGERS = ("int4", "int8", "int16", "int32", "int64", "uint4", "uint8", "uint16", "uint32", "uint64")
KNOWN = frozenset(("bool", *INTEGERS, *FLOATS))


def is_float(dtype: str) -> bool:
    """A floating-point type of any width."""
    return "float" in dtype


def is_integer(dtype: str) -> bool:
    """bool is none."""
    return "int" in dtype


@lru_cache(maxsize=64)
def bits(dtype: str) -> int:
    """The width of one element."""
    return int(re.search(r"\d+", dtype).group()) if dtype != "bool" else 1  # type: ignore[union-attr]


def integer_of(dtype: str) -> str:
    """The type of the int that Python's `int` and `round` make of a number of this type."""
    return dtype if is_integer(dtype) else "int64" if dtype == "float64" else "int32"


def in_ir(dtype: str) -> str:
    """The name TVM has for a dtype: tfloat32 is a way of multiplying float32 values, not a type of its own there."""
    return "float32" if dtype == "tfloat32" else str(dtype)


@lru_cache(maxsize=64)
def integer_range(dtype: str) -> tuple[int, int]:
    """Smallest and largest value of an integer type."""
    return (0, 2 ** bits(dtype) - 1) if dtype[0] == "u" else (-(2 ** (bits(dtype) - 1)), 2 ** (bits(dtype) - 1) - 1)


def check_right(op: str, right: object, dtype: str) -> None:
    """TL004 for an integer on the right of an operator of integers that Python refuses, or the type has no room for."""
    if not isinstance(right, int) or not is_integer(dtype):
        return
    if op in ("//", "%") and right == 0:
        raise Refusal(say.BadArgument(problem=f"`{op}` by 0", remedy="give a divisor other than 0"))
    if op in ("<<", ">>") and not 0 <= right < bits(dtype):
        remedy = f"shift by 0..{bits(dtype) - 1}" + (", or cast to a wider type" if 0 <= right < 64 else "")
        raise Refusal(say.BadArgument(problem=f"`{op}` of {dtype} by {number_text(right)}", remedy=remedy))


def promote(a: str, b: str) -> str:
    """The type of an operator's result on two strong types."""
    if a == b:
        return a
    if "bool" in (a, b):
        return b if a == "bool" else a
    if is_float(a) != is_float(b):
        return a if is_float(a) else b
    if is_float(a):
        return "float32" if bits(a) == bits(b) else max(a, b, key=bits)
    if a[0] == b[0]:
        return max(a, b, key=bits)
    signed, unsigned = (a, b) if b[0] == "u" else (b, a)
    return signed if bits(signed) > bits(unsigned) else f"int{min(64, 2 * bits(unsigned))}"


def weak(value: bool | int | float) -> str:
    """What kind of weak literal a Python number is."""
    return "bool" if isinstance(value, bool) else "int" if isinstance(value, int) else "float"


def strong(kind: str, value: Any = 0) -> str:
    """The type that a weak literal takes when it meets nothing."""
    if kind == "int" and not -(2**31) <= value < 2**31:
        return "int64"
    if kind == "float" and not _fits_float32(value):
        return "float64"
    return {"bool": "bool", "int": "int32", "float": "float32"}[kind]


def _fits_float32(value: float) -> bool:
    """Whether float32 has room for a number: it becomes neither infinite nor 0."""
    try:
        with np.errstate(over="ignore", under="ignore"):
            rounded = np.float32(value)
    except OverflowError:  # an integer beyond any float, which is refused where it is converted
        return True
    return bool(np.isfinite(rounded) == math.isfinite(value) and (rounded != 0) == (value != 0))


def literal_type(value: bool | int | float, other: str) -> str:
    """The type of the Python number `value` next to a strong type."""
    kind = weak(value)
    if kind == "float":
        return other if is_float(other) else strong("float", value)
    if kind == "bool":
        return other
    if other == "bool":
        return strong("int", value)
    if is_integer(other):
        low, high = integer_range(other)
        return other if low <= value <= high else strong("int", value)
    return other


_NUMPY = {
    "float16": np.float16,
    "float32": np.float32,
    "float64": np.float64,
    **{name: getattr(ml_dtypes, name) for name in (*FLOATS, *FLOAT8) if hasattr(ml_dtypes, name)},
}


def constant(value: bool | int | float, dtype: str, target: str = "") -> Any:
    """A TIR constant.  Floats are rounded to the type here, so that every executor sees the same number.

    target: the buffer that it is for, "" where it is an operand.
    Raises TL135 for an integer that the type cannot hold, and for one that a float type would take for infinite.
    """
    dtype = in_ir(dtype)
    if dtype == "bool":
        return tir.const(bool(value), "bool")
    if is_float(dtype):
        with np.errstate(over="ignore"):
            rounded = float(_NUMPY.get(dtype, np.float64)(double(value, dtype, target)))
        if isinstance(value, int) and not math.isfinite(rounded):
            raise _too_large(value, target, dtype)
        return tir.const(rounded, dtype)
    low, high = integer_range(dtype)
    if isinstance(value, float) and not math.isfinite(value):
        remedy = "use a finite number, or a float type"
        raise _lossy(str(value), target, dtype, remedy)
    value = int(value)
    if not low <= value <= high:
        remedy = f"use a value in {low}..{high}, or a wider type"
        raise _lossy(number_text(value), target, dtype, remedy)
    return tir.IntImm(dtype, value) if dtype == "int32" else tir.const(value, dtype)


def double(value: bool | int | float, dtype: str = "float64", target: str = "") -> float:
    """A number in double precision, on its way to `dtype`; TL135 for an integer beyond any float."""
    try:
        return float(value)
    except OverflowError:
        raise _too_large(value, target, dtype) from None


def _too_large(value: Any, target: str, dtype: str) -> Refusal:
    """TL135 for an integer that would become infinite in a float type."""
    remedy = "use a smaller number" if dtype == "float64" else "use a smaller number, or a wider float type"
    return _lossy(number_text(value), target, dtype, remedy)


def _lossy(value: str, target: str, dtype: str, remedy: str) -> Refusal:
    """TL135 for a constant on its way into a buffer, or for one that is an operand."""
    kind = say.LossyConstant if target else say.LossyOperand
    return Refusal(kind(value=value, target=target, dtype=dtype, remedy=remedy))


def cast(expr: Any, source: str, target: str) -> Any:
    """A TIR expression converted from one type to another; to bool means `!= 0`."""
    source, target = in_ir(source), in_ir(target)
    if source == target:
        return expr
    if target == "bool":
        return tir.NE(expr, constant(0, source))
    return tir.Cast(target, expr)


def as_type(value: Any, dtype: str) -> Any:
    """A device value or Python number as a TIR expression of a type."""
    return cast(value.use(), value.dtype, dtype) if hasattr(value, "use") else constant(value, dtype)


def join_operands(left: Any, right: Any) -> tuple[Any, Any, str]:
    """TIR left, TIR right and dtype of a binary operator with at least one device operand."""
    a = left.dtype if hasattr(left, "use") else literal_type(left, right.dtype)
    b = right.dtype if hasattr(right, "use") else literal_type(right, left.dtype)
    dtype = promote(a, b)
    return as_type(left, dtype), as_type(right, dtype), dtype


_ORDER = ["bool", "int", "float"]


def join_rebound(a: Kind, b: Kind) -> Kind | None:
    """The kind of a name that is bound to both; None where the two cannot share a scalar."""
    if a == b:
        return a
    if BOOL_OR_INT in (a, b):
        return BOOL_OR_INT if (b if a == BOOL_OR_INT else a) in ("bool", ("weak", "bool"), ("weak", "int")) else None
    if isinstance(a, tuple) and isinstance(b, tuple):
        return ("weak", max(a[1], b[1], key=_ORDER.index))
    if not isinstance(a, tuple) and not isinstance(b, tuple):
        return None
    literal, other = (a[1], b) if isinstance(a, tuple) else (b[1], a)
    if literal == "float" and not is_float(other):
        return None
    return BOOL_OR_INT if literal == "int" and other == "bool" else other


def kind_of(value: Any) -> Kind:
    """The kind of a device value or Python number; a literal beyond int32 or float32 is int64 or float64."""
    if hasattr(value, "use"):
        return str(value.dtype)
    kind = weak(value)
    taken = strong(kind, value)
    return taken if taken in ("int64", "float64") else ("weak", kind)


def kind_text(kind: Kind) -> str:
    """What a message calls a kind."""
    if kind == BOOL_OR_INT:
        return "bool or a Python int"
    return f"a Python {kind[1]}" if isinstance(kind, tuple) else kind
