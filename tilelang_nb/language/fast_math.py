"""Approximate functions of the device (`T.__exp` and its like) and correctly rounded arithmetic (`T.ieee_add` and its
like).

The approximate ones are float32 instructions; narrower floats are computed in float32 and rounded back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from tvm import tirx as tir

from .calling import checked_call
from .elementary import float_dtype
from .operands import choice, dtype_mismatch, scalar, unavailable
from .promotion import as_type, double, is_float
from .selection import joined
from .values import Value, derived


def _fast(name: str, device: str, exact: str, meaning: str) -> Callable[[Any], Any]:
    from . import elementary

    precise = getattr(elementary, exact)

    def function(x: Any) -> Any:
        value = scalar(x, f"T.{name}", "its operand")
        if not isinstance(value, Value):
            return precise(value)
        if not is_float(value.dtype):
            dtype_mismatch(f"`T.{name}` of {value.dtype}", "cast it to float32")
        if value.dtype == "float64":
            return precise(value)
        single = value.astype("float32")
        result = derived(tir.call_extern("float32", device, single.use()), "float32", value)
        return result.astype(float_dtype(value.dtype))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""{meaning} with the device's fast approximation; float64 is computed exactly.

    x: a float value; the result has its dtype.
    Errors: TL205 (integer), TL004 (no number).  Source: CUDA's `{device}`.
    """
    return checked_call(function)


FAST: dict[str, Callable[[Any], Any]] = {
    "__exp": _fast("__exp", "__expf", "exp", "e to the power x"),
    "__exp10": _fast("__exp10", "__exp10f", "exp10", "10 to the power x"),
    "__log": _fast("__log", "__logf", "log", "The natural logarithm"),
    "__log2": _fast("__log2", "__log2f", "log2", "The logarithm to base 2"),
    "__log10": _fast("__log10", "__log10f", "log10", "The logarithm to base 10"),
    "__sin": _fast("__sin", "__sinf", "sin", "The sine"),
    "__cos": _fast("__cos", "__cosf", "cos", "The cosine"),
    "__tan": _fast("__tan", "__tanf", "tan", "The tangent"),
}


def _rounded_to_nearest(called: str, mode: Any) -> None:
    choice(mode, called, "rounding_mode", ("rn", "rz", "ru", "rd"))
    if mode != "rn":
        unavailable(
            f'`{called}` with `rounding_mode="{mode}"` is not lowered by this version', 'use `"rn"`, the default'
        )


def _rounded(
    called: str, device: str, in_double: Callable[..., Any], python: Callable[..., float], *values: Any
) -> Any:
    found = [scalar(value, called, "an operand") for value in values]
    if not any(isinstance(value, Value) for value in found):
        with np.errstate(all="ignore"):
            return float(python(*[np.float64(double(value)) for value in found]))
    dtype = next(value.dtype for value in found if isinstance(value, Value))
    for value in found:
        dtype = joined(Value(as_type(0, dtype), dtype), value)[2]
    if not is_float(dtype):
        dtype_mismatch(f"`{called}` of {dtype}", "cast the operands to float32")
    if dtype == "float64":
        return derived(in_double(*[as_type(value, dtype) for value in found]), dtype, *found)
    call = tir.call_extern("float32", device, *[_single(value, dtype) for value in found])
    return derived(call, "float32", *found).astype(float_dtype(dtype))


def _single(value: Any, dtype: str) -> Any:
    """An operand rounded to the common type, in float32."""
    return Value(as_type(value, dtype), dtype).astype("float32").use()


@checked_call
def ieee_add(x: Any, y: Any, rounding_mode: str = "rn") -> Any:
    """x + y, rounded once to nearest even and never contracted into a fused multiply-add.

    Errors: TL205 (integers), TL004 (no number, mode), TL302 (another rounding mode).  Source: CUDA's `__fadd_rn`.
    """
    _rounded_to_nearest("T.ieee_add", rounding_mode)
    return _rounded("T.ieee_add", "__fadd_rn", tir.Add, np.add, x, y)


@checked_call
def ieee_sub(x: Any, y: Any, rounding_mode: str = "rn") -> Any:
    """x - y, rounded once to nearest even and never contracted.

    Errors: TL205 (integers), TL004 (no number, mode), TL302 (another rounding mode).  Source: CUDA's `__fsub_rn`.
    """
    _rounded_to_nearest("T.ieee_sub", rounding_mode)
    return _rounded("T.ieee_sub", "__fsub_rn", tir.Sub, np.subtract, x, y)


@checked_call
def ieee_mul(x: Any, y: Any, rounding_mode: str = "rn") -> Any:
    """x * y, rounded once to nearest even and never contracted.

    Errors: TL205 (integers), TL004 (no number, mode), TL302 (another rounding mode).  Source: CUDA's `__fmul_rn`.
    """
    _rounded_to_nearest("T.ieee_mul", rounding_mode)
    return _rounded("T.ieee_mul", "__fmul_rn", tir.Mul, np.multiply, x, y)


@checked_call
def ieee_fdiv(x: Any, y: Any, rounding_mode: str = "rn") -> Any:
    """x / y, rounded to nearest even.

    Errors: TL205 (integers), TL004 (no number, mode), TL302 (another rounding mode).  Source: CUDA's `__fdiv_rn`.
    """
    _rounded_to_nearest("T.ieee_fdiv", rounding_mode)
    return _rounded("T.ieee_fdiv", "__fdiv_rn", tir.Div, np.divide, x, y)


@checked_call
def ieee_fmaf(x: Any, y: Any, z: Any, rounding_mode: str = "rn") -> Any:
    """x * y + z, rounded once to nearest even; float64 is not fused here.

    Errors: TL205 (integers), TL004 (no number, mode), TL302 (another rounding mode, float64).
    Source: CUDA's `__fmaf_rn`.
    """
    _rounded_to_nearest("T.ieee_fmaf", rounding_mode)

    def in_double(*_: Any) -> Any:
        unavailable("`T.ieee_fmaf` of float64 is not lowered by this version", "use float32")

    return _rounded("T.ieee_fmaf", "__fmaf_rn", in_double, lambda a, b, c: a * b + c, x, y, z)


@checked_call
def ieee_frcp(x: Any, rounding_mode: str = "rn") -> Any:
    """1 / x, rounded to nearest even.

    Errors: TL205 (integer), TL004 (no number, mode), TL302 (another rounding mode).  Source: CUDA's `__frcp_rn`.
    """
    _rounded_to_nearest("T.ieee_frcp", rounding_mode)
    one = lambda value: tir.Div(tir.const(1.0, "float64"), value)
    return _rounded("T.ieee_frcp", "__frcp_rn", one, np.reciprocal, x)


@checked_call
def ieee_fsqrt(x: Any, rounding_mode: str = "rn") -> Any:
    """sqrt(x), rounded to nearest even.

    Errors: TL205 (integer), TL004 (no number, mode), TL302 (another rounding mode).  Source: CUDA's `__fsqrt_rn`.
    """
    _rounded_to_nearest("T.ieee_fsqrt", rounding_mode)
    return _rounded("T.ieee_fsqrt", "__fsqrt_rn", tir.sqrt, np.sqrt, x)


@checked_call
def ieee_frsqrt(x: Any) -> Any:
    """1 / sqrt(x), rounded to nearest even.

    Errors: TL205 (integer), TL004 (no number).  Source: CUDA's `__frsqrt_rn`.
    """
    in_double = lambda value: tir.Div(tir.const(1.0, "float64"), tir.sqrt(value))
    return _rounded("T.ieee_frsqrt", "__frsqrt_rn", in_double, lambda value: 1.0 / np.sqrt(value), x)


@checked_call
def fast_rcp(x: Any) -> Any:
    """About 1 / x; computed here with correct rounding.

    Errors: TL205 (integer), TL004 (no number).  Source: upstream `T.fast_rcp`.
    """
    return ieee_frcp(x)
