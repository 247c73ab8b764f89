"""Elementary functions: exp, log, roots, trigonometry, rounding, classification.

On device values: the result has the operand's float dtype (float16 stays float16); integers and float8 are taken as
float32.
On compile-time numbers: what NumPy gives in float64, as a Python float.
`T.abs`, `T.round` and `T.pow` are `abs_of`, `round_of`
and `power` here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from tvm import tirx as tir

from .calling import checked_call
from .operands import choice, scalar
from .promotion import as_type, cast, double, is_float
from .values import Value, arithmetic, derived


def float_dtype(dtype: str) -> str:
    """The type in which an elementary function of a value of `dtype` is computed and given."""
    return dtype if is_float(dtype) and not dtype.startswith("float8") and dtype != "tfloat32" else "float32"


def as_float(value: Value) -> tuple[Any, str]:
    """The expression of a device value in `float_dtype`."""
    dtype = float_dtype(value.dtype)
    return cast(value.use(), value.dtype, dtype), dtype


def _in_numpy(function: Callable[..., Any], *values: Any) -> float:
    with np.errstate(all="ignore"):
        return float(function(*[np.float64(double(value)) for value in values]))


def _unary(name: str, node: Callable[[Any], Any], python: Callable[[Any], Any], meaning: str) -> Callable[[Any], Any]:
    def function(x: Any) -> Any:
        value = scalar(x, f"T.{name}", "its operand")
        if not isinstance(value, Value):
            return _in_numpy(python, value)
        expr, dtype = as_float(value)
        return derived(node(expr), dtype, value)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""{meaning}

    x: a number or device value; the result has its float dtype, float32 for integers.
    Errors: TL004 (no number).  Source: TVM's `{name}`, CUDA's `{name}f`.
    """
    return checked_call(function)


exp = _unary("exp", tir.exp, np.exp, "e to the power x.")
exp2 = _unary("exp2", tir.exp2, np.exp2, "2 to the power x.")
log = _unary("log", tir.log, np.log, "The natural logarithm; -inf at 0, NaN below.")
log2 = _unary("log2", tir.log2, np.log2, "The logarithm to base 2; -inf at 0, NaN below.")
log10 = _unary("log10", tir.log10, np.log10, "The logarithm to base 10; -inf at 0, NaN below.")
log1p = _unary("log1p", tir.log1p, np.log1p, "log(1 + x), exact near 0.")
sqrt = _unary("sqrt", tir.sqrt, np.sqrt, "The square root; NaN below 0.")
rsqrt = _unary("rsqrt", tir.rsqrt, lambda x: 1.0 / np.sqrt(x), "1 / sqrt(x).")
sin = _unary("sin", tir.sin, np.sin, "The sine, x in radians.")
cos = _unary("cos", tir.cos, np.cos, "The cosine, x in radians.")
tan = _unary("tan", tir.tan, np.tan, "The tangent, x in radians.")
sinh = _unary("sinh", tir.sinh, np.sinh, "The hyperbolic sine.")
cosh = _unary("cosh", tir.cosh, np.cosh, "The hyperbolic cosine.")
tanh = _unary("tanh", tir.tanh, np.tanh, "The hyperbolic tangent.")
asin = _unary("asin", tir.asin, np.arcsin, "The arc sine, in radians; NaN outside -1..1.")
acos = _unary("acos", tir.acos, np.arccos, "The arc cosine, in radians; NaN outside -1..1.")
atan = _unary("atan", tir.atan, np.arctan, "The arc tangent, in radians.")
erf = _unary("erf", tir.erf, np.vectorize(math.erf, otypes=[float]), "The error function.")


def _one(x: Any, number: float) -> Any:
    """A constant of the type of an expression."""
    return tir.const(number, str(x.ty))


def _sigmoid(x: Any) -> Any:
    return tir.Div(_one(x, 1.0), tir.Add(_one(x, 1.0), tir.exp(tir.Mul(x, _one(x, -1.0)))))


def _exp10(x: Any) -> Any:
    dtype = str(x.ty)
    wide = cast(x, dtype, "float32") if dtype == "bfloat16" else x  # TVM has powers of IEEE types only
    return cast(tir.power(_one(wide, 10.0), wide), str(wide.ty), dtype)


exp10 = _unary("exp10", _exp10, lambda x: np.power(10.0, x), "10 to the power x.")
sigmoid = _unary("sigmoid", _sigmoid, lambda x: 1.0 / (1.0 + np.exp(-x)), "1 / (1 + exp(-x)).")


def _rounding(
    name: str, node: Callable[[Any], Any], python: Callable[[Any], Any], meaning: str
) -> Callable[[Any], Any]:
    def function(x: Any, span: Any = None) -> Any:
        value = scalar(x, f"T.{name}", "its operand")
        if not isinstance(value, Value):
            return value if isinstance(value, int) else _in_numpy(python, value)
        if not is_float(value.dtype):
            return value
        expr, dtype = as_float(value)
        return derived(node(expr), dtype, value)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""{meaning}

    x: a number or device value; the result keeps its dtype, and integers are themselves.
    Errors: TL004 (no number).  Source: TVM's `{name}`.
    """
    return checked_call(function)


def _half_away(x: Any) -> Any:
    return np.copysign(np.floor(np.abs(x) + 0.5), x) if np.abs(x) < 2**52 else x


floor = _rounding("floor", tir.floor, np.floor, "The largest whole number not above x, as a float.")
ceil = _rounding("ceil", tir.ceil, np.ceil, "The smallest whole number not below x, as a float.")
trunc = _rounding("trunc", tir.trunc, np.trunc, "x without its fraction, as a float.")
nearbyint = _rounding(
    "nearbyint", tir.nearbyint, np.rint, "x rounded to the nearest whole number, halves to the even one."
)
_round_away = _rounding("round", tir.round, _half_away, "x rounded to the nearest whole number, halves away from zero.")


def _named(name: str) -> Any:
    return lambda function: checked_call(function, name)


@_named("round")
def round_of(x: Any, rounding_mode: Any = "ties-to-away", span: Any = None) -> Any:
    """x rounded to the nearest whole number, as a float; halves away from zero, as CUDA's `roundf`.

    rounding_mode: "ties-to-away" (the default), also as "ties-away-from-zero", or "ties-to-even" (Python's `round`).
    Integers are themselves.
    Errors: TL004 (no number, mode).  Source: TVM's `round`.
    """
    modes = ("ties-to-away", "ties-to-even", "ties-away-from-zero")
    mode = choice(rounding_mode, "T.round", "rounding_mode", modes)
    return nearbyint(x) if mode == "ties-to-even" else _round_away(x)


@_named("abs")
def abs_of(x: Any, span: Any = None) -> Any:
    """The absolute value, in the operand's dtype; Python's `abs` on compile-time numbers.

    Errors: TL004 (no number).  Source: TVM's `abs`.
    """
    return abs(scalar(x, "T.abs", "its operand"))


@checked_call
def fabs(x: Any, span: Any = None) -> Any:
    """The absolute value as a float; integers become float32.  Errors: TL004 (no number).  Source: CUDA's `fabsf`."""
    value = scalar(x, "T.fabs", "its operand")
    if not isinstance(value, Value):
        return abs(double(value))
    expr, dtype = as_float(value)
    return derived(tir.abs(expr), dtype, value, times=3)


@_named("pow")
def power(x: Any, y: Any, span: Any = None) -> Any:
    """x to the power y, in their common dtype; a small constant integer power multiplies out.

    Errors: TL205 (an integer base with an exponent known only at run time), TL004 (no number).  Source: TVM's `pow`.
    """
    base, exponent = scalar(x, "T.pow", "the base"), scalar(y, "T.pow", "the exponent")
    if not isinstance(base, Value) and not isinstance(exponent, Value):
        if isinstance(base, int) and isinstance(exponent, int) and exponent >= 0:
            return base**exponent
        return _in_numpy(np.power, base, exponent)
    return arithmetic("**", base, exponent)


def _binary_floats(called: str, x: Any, y: Any) -> tuple[Any, Any, str, tuple[Any, Any]]:
    from .selection import joined

    a, b = scalar(x, called, "an operand"), scalar(y, called, "an operand")
    _, _, dtype = joined(a, b)
    dtype = float_dtype(dtype)
    return as_type(a, dtype), as_type(b, dtype), dtype, (a, b)


@checked_call
def atan2(x1: Any, x2: Any) -> Any:
    """The angle of the point (x2, x1) in radians, -pi to pi, in their common float dtype.

    Errors: TL004 (no number).  Source: TVM's `atan2`.
    """
    a, b = scalar(x1, "T.atan2", "an operand"), scalar(x2, "T.atan2", "an operand")
    if not isinstance(a, Value) and not isinstance(b, Value):
        return _in_numpy(np.arctan2, a, b)
    x, y, dtype, sources = _binary_floats("T.atan2", a, b)
    return derived(tir.atan2(x, y), dtype, *sources)


@checked_call
def fmod(x: Any, y: Any) -> Any:
    """The remainder of x / y truncated, with the sign of x, as C's `fmod`; `%` floors instead.

    Errors: TL004 (no number).  Source: TVM's `fmod`.
    """
    a, b = scalar(x, "T.fmod", "an operand"), scalar(y, "T.fmod", "an operand")
    if not isinstance(a, Value) and not isinstance(b, Value):
        return _in_numpy(np.fmod, a, b)
    left, right, dtype, sources = _binary_floats("T.fmod", a, b)
    return derived(tir.fmod(left, right), dtype, *sources)


def _classified(
    name: str, node: Callable[[Any], Any], python: Callable[[Any], Any], of_integer: bool, meaning: str
) -> Any:
    def function(x: Any, span: Any = None) -> Any:
        value = scalar(x, f"T.{name}", "its operand")
        if not isinstance(value, Value):
            return bool(python(double(value)))
        if not is_float(value.dtype):
            return derived(tir.const(of_integer, "bool"), "bool", value)
        expr, dtype = as_float(value)
        if dtype == "bfloat16":  # TVM has these for IEEE types only; float32 holds every bfloat16
            expr = cast(expr, dtype, "float32")
        return derived(node(expr), "bool", value)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""{meaning}

    x: a number or device value; the result is bool.  Errors: TL004 (no number).  Source: TVM's `{name}`.
    """
    return checked_call(function)


isnan = _classified("isnan", tir.isnan, math.isnan, False, "Whether x is NaN.")
isinf = _classified("isinf", tir.isinf, math.isinf, False, "Whether x is infinite.")
isfinite = _classified("isfinite", tir.isfinite, math.isfinite, True, "Whether x is neither infinite nor NaN.")
