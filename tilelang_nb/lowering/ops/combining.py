"""How reductions combine: the identity, the operation and the accumulator type of each reduction."""

from __future__ import annotations

import math
from typing import Any

from tvm import tirx as tir

from ..rewrite import dtype_of

NARROW_FLOATS = ("float16", "bfloat16", "float8_e4m3fn", "float8_e5m2")


def is_float(dtype: str) -> bool:
    """Floating point of any width."""
    return dtype.startswith(("float", "bfloat"))


def accumulator(operation: str, source: str, target: str) -> str:
    """The type to combine in: at least float32 for floats, so that sums round once; at least 32 bits for integers."""
    if operation in ("any", "all"):
        return "int32"
    if is_float(source) or is_float(target):
        return "float64" if "float64" in (source, target) else "float32"
    if "64" in target or "64" in source:
        return "uint64" if "uint64" in (source, target) else "int64"
    return "uint32" if target.startswith("uint") and source.startswith("uint") else "int32"


def prepared(operation: str, value: Any, dtype: str) -> Any:
    """An element as it enters the combination."""
    if operation in ("any", "all"):
        zero = tir.const(0.0 if is_float(dtype_of(value)) else 0, dtype_of(value))
        return tir.Cast(dtype, value if dtype_of(value) == "bool" else tir.NE(value, zero))
    value = value if dtype_of(value) == dtype else tir.Cast(dtype, value)
    return tir.abs(value) if operation.startswith("abs") else value


def finished(operation: str, value: Any, dtype: str) -> Any:
    """The combined value in the type of the result."""
    if dtype == "bool":
        return tir.NE(value, tir.const(0, dtype_of(value)))
    return value if dtype_of(value) == dtype else tir.Cast(dtype, value)


def identity(operation: str, dtype: str) -> Any:
    """What changes nothing when combined."""
    if operation in ("max", "min"):
        lowest = operation == "max"
        if is_float(dtype):
            return tir.const(-math.inf if lowest else math.inf, dtype)
        return tir.min_value(dtype) if lowest else tir.max_value(dtype)
    if operation == "all":
        return tir.const(1, dtype)
    if operation == "bitand":
        return tir.max_value(dtype) if dtype.startswith("uint") else tir.const(-1, dtype)
    return tir.const(0.0 if is_float(dtype) else 0, dtype)


def combine(operation: str, left: Any, right: Any, nan_propagates: bool = True) -> Any:
    """Two values of the accumulator type; `left` should be a plain load, it may occur several times."""
    if operation in ("sum", "abssum"):
        return tir.Add(left, right)
    if operation in ("max", "absmax", "min"):
        if not is_float(dtype_of(left)) or not nan_propagates:
            return (tir.Min if operation == "min" else tir.Max)(left, right)
        # A NaN on the left stays; one on the right fails the comparison and is taken.
        better = tir.LT(left, right) if operation == "min" else tir.GT(left, right)
        return tir.Select(tir.Or(better, tir.isnan(left)), left, right)
    bitwise = {"bitand": tir.bitwise_and, "all": tir.bitwise_and, "bitxor": tir.bitwise_xor}
    return bitwise.get(operation, tir.bitwise_or)(left, right)
