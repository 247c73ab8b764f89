"""Numbers with a dtype as the specification computes with them, on NumPy: the arithmetic of the second interpreter.

A Python number is weak and takes the dtype of what it meets; two dtypes meet in the wider one, integers wrap, floats are
rounded after every operation.  It shares nothing with the package.
"""

from __future__ import annotations

import builtins
import functools
import math
import operator
import re
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

FLOATS = ("float16", "bfloat16", "float32", "float64")


class UnwrittenRead(Exception):
    """A program reads memory before it writes it: it has no result that one could expect."""


@functools.cache
def numpy_dtype(name: str) -> np.dtype:
    return np.dtype(getattr(ml_dtypes, name, None) or name)


@functools.cache
def bits(dtype: str) -> int:
    return 1 if dtype == "bool" else int(re.findall(r"\d+", dtype)[0])


@functools.cache
def _room(dtype: str) -> tuple[int, int]:
    """How many values an integer dtype has, and the first one that it has no room for."""
    size = 1 << bits(dtype)
    return size, size if dtype[0] == "u" else size // 2


def wrapped(value: int, dtype: str) -> int:
    """An integer as the dtype holds it."""
    size, end = _room(dtype)
    value %= size
    return value if value < end else value - size


def converted(value: Any, dtype: str) -> Any:
    """A Python or NumPy number as the dtype holds it: floats to nearest even, to integers truncated."""
    if dtype in FLOATS:
        kind = numpy_dtype(dtype).type
        if type(value) is kind:
            return value
        return kind(np.float64(value) if not isinstance(value, np.generic) else value)
    if dtype == "bool":
        return builtins.bool(value != 0)
    if not isinstance(value, builtins.int):
        value = builtins.int(value) if isinstance(value, np.integer) else math.trunc(builtins.float(value))
    return wrapped(value, dtype)


@functools.cache
def met(a: str, b: str) -> str:
    """The dtype in which two dtypes meet."""
    if a == b or b == "bool":
        return a
    if a == "bool":
        return b
    if (a in FLOATS) != (b in FLOATS):
        return a if a in FLOATS else b
    if a in FLOATS:
        return "float32" if bits(a) == bits(b) else builtins.max(a, b, key=bits)
    if a[0] == b[0]:
        return builtins.max(a, b, key=bits)
    signed, unsigned = (a, b) if b[0] == "u" else (b, a)
    return signed if bits(signed) > bits(unsigned) else f"int{builtins.min(64, 2 * bits(unsigned))}"


def strong(value: Any, other: str = "bool") -> str:
    """The dtype that a Python number takes beside another one."""
    if isinstance(value, builtins.bool):
        return other
    if isinstance(value, builtins.float):
        return other if other in FLOATS else "float32"
    if other in FLOATS:
        return other
    if other != "bool" and wrapped(value, other) == value:
        return other
    return "int32" if wrapped(value, "int32") == value else "int64"


class Number:
    """A number of a dtype.  place: the (buffer, index) that it was read from, for what takes an element as a place."""

    __slots__ = ("_value", "dtype", "place", "written")

    def __init__(self, value: Any, dtype: str, place: Any = None, written: builtins.bool = True):
        self._value, self.dtype, self.place, self.written = converted(value, dtype), dtype, place, written

    @property
    def value(self) -> Any:
        if not self.written:
            raise UnwrittenRead
        return self._value

    def astype(self, dtype: str) -> Number:
        return Number(self.value, str(dtype))

    def __repr__(self) -> str:
        return f"{self.dtype}({self.value})"

    def __bool__(self) -> builtins.bool:
        return builtins.bool(self.value != 0)

    def __index__(self) -> builtins.int:
        return operator.index(builtins.int(self.value)) if self.dtype not in FLOATS else operator.index(self.value)

    def __neg__(self) -> Number:
        # of a float the sign, so that 0 becomes -0
        return Number(-self.value, self.dtype) if self.dtype in FLOATS else 0 - self

    def __pos__(self) -> Number:
        return self.astype("int32") if self.dtype == "bool" else self

    def __invert__(self) -> Number:
        return Number(not self.value, "bool") if self.dtype == "bool" else Number(~self.value, self.dtype)

    def __abs__(self) -> Number:
        return Number(abs(self.value), "int32" if self.dtype == "bool" else self.dtype)

    def __round__(self, digits: builtins.int | None = None) -> Number:
        if self.dtype not in FLOATS:
            return +self
        rounded = np.rint(numpy_dtype("float64").type(self.value))
        return Number(rounded, self.dtype if digits == 0 else "int64" if self.dtype == "float64" else "int32")

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __hash__(self) -> builtins.int:
        return hash(self.value)


def pair(left: Any, right: Any) -> tuple[Any, Any, str]:
    """Both operands in the dtype in which they meet."""
    if isinstance(left, Number) and isinstance(right, Number) and left.dtype == right.dtype:
        return left.value, right.value, left.dtype
    a = left.dtype if isinstance(left, Number) else strong(left, right.dtype if isinstance(right, Number) else "bool")
    b = right.dtype if isinstance(right, Number) else strong(right, left.dtype if isinstance(left, Number) else "bool")
    dtype = met(a, b)
    values = [one.value if isinstance(one, Number) else one for one in (left, right)]
    return converted(values[0], dtype), converted(values[1], dtype), dtype


def floor_divide(x: Any, y: Any, dtype: str) -> Any:
    return x // y if dtype not in FLOATS else numpy_dtype(dtype).type(np.floor_divide(np.float64(x), np.float64(y)))


def floor_modulo(x: Any, y: Any, dtype: str) -> Any:
    return x % y if dtype not in FLOATS else numpy_dtype(dtype).type(np.mod(np.float64(x), np.float64(y)))


def power(x: Any, y: Any, dtype: str) -> Any:
    result = converted(1, dtype)
    for _ in range(builtins.int(y)):
        result = converted(result * x, dtype)
    return result


OPERATORS: dict[str, Callable[[Any, Any, str], Any]] = {
    "add": lambda x, y, _: x + y,
    "sub": lambda x, y, _: x - y,
    "mul": lambda x, y, _: x * y,
    "truediv": lambda x, y, _: x / y,
    "floordiv": floor_divide,
    "mod": floor_modulo,
    "pow": power,
    "lshift": lambda x, y, _: x << y,
    "rshift": lambda x, y, _: x >> y,
    "and": lambda x, y, _: x & y,
    "or": lambda x, y, _: x | y,
    "xor": lambda x, y, _: x ^ y,
}
KNOWN = (Number, builtins.int, builtins.float)
COMPARISONS = {name: getattr(operator, name) for name in ("lt", "le", "gt", "ge", "eq", "ne")}


def combined(name: str, left: Any, right: Any) -> Any:
    if not isinstance(left, KNOWN) or not isinstance(right, KNOWN):
        return NotImplemented
    x, y, dtype = pair(left, right)
    if name in COMPARISONS:
        return Number(COMPARISONS[name](x, y), "bool")
    if dtype == "bool" and name not in ("and", "or", "xor"):
        x, y, dtype = builtins.int(x), builtins.int(y), "int32"
    return Number(OPERATORS[name](x, y, dtype), dtype)


def _method(name: str, turned: builtins.bool) -> Any:
    def method(self: Number, other: Any, modulus: Any = None) -> Any:
        return combined(name, other, self) if turned else combined(name, self, other)

    return method


for _name in (*OPERATORS, *COMPARISONS):
    setattr(Number, f"__{_name}__", _method(_name, False))
    if _name in OPERATORS:
        setattr(Number, f"__r{_name}__", _method(_name, True))


def as_number(value: Any) -> Number:
    return value if isinstance(value, Number) else Number(value, strong(value))


def fold(better: Callable[[Any, Any], builtins.bool], items: tuple[Any, ...]) -> Any:
    """The best of the numbers, in their common dtype; as the device, it gives the other operand for a NaN."""
    result = items[0]
    for item in items[1:]:
        if not isinstance(result, Number) and not isinstance(item, Number):
            result = item if better(item, result) else result
            continue
        x, y, dtype = pair(result, item)
        result = Number(y if x != x or better(y, x) else x, dtype)
    return result


def maximum(*items: Any, default: Any = None) -> Any:
    items = items if len(items) > 1 else tuple(items[0]) or (default,)
    return fold(operator.gt, items)


def minimum(*items: Any, default: Any = None) -> Any:
    items = items if len(items) > 1 else tuple(items[0]) or (default,)
    return fold(operator.lt, items)


def to_int(value: Any = 0) -> Any:
    if not isinstance(value, Number):
        return builtins.int(value)
    kept = value.dtype not in FLOATS and value.dtype != "bool"
    return value if kept else value.astype("int64" if value.dtype == "float64" else "int32")


def to_float(value: Any = 0.0) -> Any:
    if not isinstance(value, Number):
        return builtins.float(value)
    return value if value.dtype in FLOATS else value.astype("float32")


def to_bool(value: Any = False) -> Any:
    return value.astype("bool") if isinstance(value, Number) else builtins.bool(value)
