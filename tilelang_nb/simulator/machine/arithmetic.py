"""Arithmetic of the device that NumPy or Python spells differently, and the namespace of generated programs.

Functions take arrays, NumPy scalars or Python ints and never raise: they are hoisted out of conditions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

Array = Any


# ---- integers ----
def _wrapper(bits: int, signed: bool) -> Callable[[int], int]:
    mask, half, whole = (1 << bits) - 1, 1 << (bits - 1), 1 << bits

    def wrap_unsigned(value: int) -> int:
        return int(value) & mask

    def wrap_signed(value: int) -> int:
        value = int(value) & mask
        return value if value < half else value - whole

    return wrap_signed if signed else wrap_unsigned


def floor_divide(a: Array, b: Array) -> Array:
    """Quotient rounded down; 0 where the divisor is 0."""
    if isinstance(a, int) and isinstance(b, int):
        return a // b if b else 0
    return a // b


def floor_modulo(a: Array, b: Array) -> Array:
    """Remainder with the sign of the divisor; 0 where the divisor is 0."""
    if isinstance(a, int) and isinstance(b, int):
        return a % b if b else 0
    return a % b


def truncating_divide(a: Array, b: Array) -> Array:
    """Quotient rounded to zero; 0 where the divisor is 0."""
    if isinstance(a, int) and isinstance(b, int):
        return 0 if not b else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    quotient = a // b
    return quotient + ((quotient < 0) & (quotient * b != a)).astype(quotient.dtype)


def truncating_modulo(a: Array, b: Array) -> Array:
    """Remainder with the sign of the dividend; 0 where the divisor is 0."""
    if isinstance(a, int) and isinstance(b, int):
        return 0 if not b else a - truncating_divide(a, b) * b
    return np.fmod(a, b)


def shift_left(a: Array, b: Array, dtype: Any) -> Array:
    """Shift by any amount; 0 from the width of the type on."""
    if isinstance(a, int) and isinstance(b, int):
        return a << b if 0 <= b < np.dtype(dtype).itemsize * 8 else 0
    return np.left_shift(dtype(a) if isinstance(a, int) else a, b)


def shift_right(a: Array, b: Array, dtype: Any) -> Array:
    """Shift by any amount; the sign from the width of the type on."""
    if isinstance(a, int) and isinstance(b, int):
        return a >> (b if 0 <= b < np.dtype(dtype).itemsize * 8 else 64)
    return np.right_shift(dtype(a) if isinstance(a, int) else a, b)


def _unsigned(x: Array) -> Array:
    x = np.asarray(x)
    return x.view(f"u{x.dtype.itemsize}")


def count_bits(x: Array) -> Array:
    """`__popc`: how many bits are set."""
    return np.bitwise_count(_unsigned(x)).astype(np.int32)


def _bit_length(x: Array) -> Array:
    """Position of the highest set bit of an unsigned array, counted from 1; 0 for 0."""
    if x.dtype.itemsize < 8:
        return np.frexp(x.astype(np.float64))[1].astype(np.int32)
    high, low = (x >> np.uint64(32)).astype(np.uint32), x.astype(np.uint32)
    return np.where(high != 0, 32 + _bit_length(high), _bit_length(low)).astype(np.int32)


def leading_zeros(x: Array) -> Array:
    """`__clz`: zero bits above the highest set one; the width for 0."""
    bits = _unsigned(x)
    return np.int32(8 * bits.dtype.itemsize) - _bit_length(bits)


def first_bit(x: Array) -> Array:
    """Position of the lowest set bit, counted from 1; 0 for 0."""
    bits = _unsigned(x)
    return _bit_length(bits & (~bits + bits.dtype.type(1)))


# ---- conversions ----
def saturating_cast(x: Array, dtype: Any) -> Array:
    """Float to integer: toward zero and saturating.

    NaN gives 0, or only the highest bit where either type has 64 bits, as PTX's `cvt` specifies.
    """
    x = np.asarray(x)
    if x.dtype not in (np.float32, np.float64):
        x = x.astype(np.float32)
    limits = np.iinfo(dtype)
    low, high = x.dtype.type(limits.min), x.dtype.type(limits.max)
    inside = (x >= low) & (x < high)  # high may round up to 2 ** bits, which is outside
    if inside.all():
        return x.astype(dtype)
    result = np.where(inside, x, x.dtype.type(0)).astype(dtype)
    result[np.asarray(x >= high)] = limits.max
    result[np.asarray(x < low)] = limits.min
    if limits.bits == 64 or x.dtype == np.float64:
        result[np.asarray(np.isnan(x))] = np.array(1 << (limits.bits - 1), np.uint64).astype(dtype)
    return result[()]


# ---- floats ----
def math_round(x: Array) -> Array:
    """Half away from zero."""
    whole = np.trunc(x)
    return np.copysign(whole + np.where(np.abs(x - whole) >= 0.5, np.sign(x), 0).astype(x.dtype), x)


def _through_float64(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """A function evaluated in float64 and rounded once to the type of its argument."""

    def evaluate(x: Array) -> Array:
        return function(x.astype(np.float64)).astype(x.dtype)

    return evaluate


math_rsqrt = _through_float64(lambda x: 1 / np.sqrt(x))
math_reciprocal = _through_float64(lambda x: 1 / x)
math_exp10 = _through_float64(lambda x: np.power(10.0, x))
math_sigmoid = _through_float64(lambda x: 1 / (1 + np.exp(-x)))
_erf = np.frompyfunc(math.erf, 1, 1)
math_erf = _through_float64(lambda x: np.asarray(_erf(x)).astype(np.float64)[()])


def math_fma(a: Array, b: Array, c: Array) -> Array:
    """a * b + c of float32 in float64, rounded once."""
    return (a.astype(np.float64) * b.astype(np.float64) + c.astype(np.float64)).astype(a.dtype)


def math_power(a: Array, b: Array) -> Array:
    """`pow`; a negative exponent of an integer counts as 0."""
    if np.asarray(a).dtype.kind in "iu":
        return np.power(a, np.maximum(b, 0))
    return np.power(a, b)


# ---- addresses ----
def native_index(index: Array, stride: int) -> Array:
    """index * stride as native indices."""
    wide = np.asarray(index).astype(np.intp)
    return wide if stride == 1 else wide * stride


def span_of(index: Array) -> tuple[int, int]:
    """Smallest and largest element of an index array."""
    return int(index.min()), int(index.max())


def inside(index: Array, span: tuple[int, int], offset: int, extent: int) -> Array:
    """None if every index + offset lies in [0, extent), else an array of booleans."""
    if span[0] + offset >= 0 and span[1] + offset < extent:
        return None
    return (index >= -offset) & (index < extent - offset)


def inside_uniform(index: int, extent: int) -> Array:
    """As `inside` for one index of all threads: None where it is inside."""
    return None if 0 <= index < extent else np.zeros((1, 1), np.bool_)


class Bounds:
    """Which lanes of an access lie inside, and the index per dimension as (array or None, uniform) for messages."""

    __slots__ = ("indices", "ok")

    def __init__(self, ok: Array, indices: tuple[tuple[Array, int], ...]):
        self.ok, self.indices = ok, indices

    def cut(self, part: Callable[[Array], Array]) -> Bounds | None:
        """The bounds of some of the threads; `part` cuts an array to them."""
        ok = part(self.ok)
        return None if ok.all() else Bounds(ok, tuple((part(index), offset) for index, offset in self.indices))


def bounds_of(checks: tuple[Array, ...], indices: tuple[tuple[Array, int], ...]) -> Bounds | None:
    """The checks of all dimensions as one; None if all are inside."""
    ok = None
    for check in checks:
        if check is not None:
            ok = check if ok is None else ok & check
    return None if ok is None else Bounds(ok, indices)


# ---- registers ----
def window(registers: Array, base: int, shape: tuple[tuple[int, int], ...]) -> Array:
    """View of registers base + sum(step * factor), one leading axis per (extent, factor); proven to lie inside."""
    stride = registers.strides[0]
    return strided(
        registers[base], [extent for extent, _ in shape] + list(registers.shape[1:]),
        [factor * stride for _, factor in shape] + list(registers.strides[1:]),
    )  # fmt: skip


def strided(array: Array, shape: Any, strides: Any) -> Array:
    """View of an array's memory from its first element on; strides in bytes.

    NumPy's function reads the name of the type from the memory's description, where float8_e5m2 is no type it knows;
    so it sees raw bytes.
    """
    raw = array.view(np.dtype((np.void, array.itemsize)))
    return np.lib.stride_tricks.as_strided(raw, shape, strides).view(array.dtype)


NAMESPACE: dict[str, Any] = {
    "np": np,
    **{name: getattr(ml_dtypes, name) for name in dir(ml_dtypes) if name.startswith(("bfloat16", "float8"))},
    **{f"wrap_int{bits}": _wrapper(bits, True) for bits in (8, 16, 32, 64)},
    **{f"wrap_uint{bits}": _wrapper(bits, False) for bits in (8, 16, 32, 64)},
    **{
        function.__name__: function
        for function in (
            floor_divide, floor_modulo, truncating_divide, truncating_modulo, shift_left, shift_right, count_bits,
            leading_zeros, first_bit, saturating_cast, math_round, math_fma, math_power, native_index, span_of, inside,
            inside_uniform, bounds_of, window,
        )
    },
    "math_rsqrt": math_rsqrt,
    "math_reciprocal": math_reciprocal,
    "math_exp10": math_exp10,
    "math_sigmoid": math_sigmoid,
    "math_erf": math_erf,
}  # fmt: skip
