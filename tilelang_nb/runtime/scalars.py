"""Python and NumPy numbers as scalar arguments: taken where the parameter's type holds their value, refused
otherwise.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ..source.wording import number_text, with_article
from .host_arrays import NoHostArray, describe_type, host_dtype


def scalar(given: Any, dtype: str) -> int | float | bool:
    """The number that a launch gets for a parameter of type `dtype`, already rounded to it.

    Integers need an integer in the type's range; floats take any real number that does not become infinite or, being an
    integer, change its value; bool takes a bool, 0 or 1.  NoHostArray says why not.
    """
    number = _plain_number(given)
    if number is None:
        raise NoHostArray(describe_type(given), "pass a Python or NumPy number")
    if dtype == "bool":
        if number not in (0, 1):
            raise NoHostArray(number_text(number), "pass True or False")
        return bool(number)
    if dtype.startswith(("int", "uint")):
        return _integer(number, dtype)
    return _floating(number, dtype)


def _plain_number(given: Any) -> int | float | bool | None:
    if isinstance(given, (bool, np.bool_)):
        return bool(given)
    if isinstance(given, np.ndarray) or hasattr(given, "__dlpack__"):
        if getattr(given, "shape", None) != () or not hasattr(given, "item"):
            return None
        return _plain_number(given.item())
    if isinstance(given, complex):
        return None
    try:
        return operator.index(given)
    except TypeError:
        pass
    if isinstance(given, (float, np.floating)) or (isinstance(given, np.generic) and given.dtype.kind == "V"):
        return float(given)
    return None


def _integer(number: int | float, dtype: str) -> int:
    if isinstance(number, float):
        raise NoHostArray(f"the float {number!r}", "pass an int: a float is not cut silently")
    bits = int(dtype.lstrip("uint"))
    low, high = (0, 2**bits - 1) if dtype.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    if not low <= number <= high:
        raise NoHostArray(number_text(number), f"{dtype} holds {low} to {high}")
    return int(number)


def _floating(number: int | float, dtype: str) -> float:
    kind = host_dtype(dtype)
    if kind is None:
        raise NoHostArray(repr(number), f"{with_article(dtype)} cannot be passed as a scalar")
    try:
        exact = float(number)
    except OverflowError:
        exact = float("inf")
    with np.errstate(over="ignore"):
        rounded = float(np.float64(exact).astype(kind))
    if isinstance(number, int) and rounded != number:
        raise NoHostArray(number_text(number), f"{dtype} does not hold this integer: pass a float to have it rounded")
    if np.isfinite(exact) and not np.isfinite(rounded):
        raise NoHostArray(repr(number), f"it is out of the range of {dtype}")
    return rounded
