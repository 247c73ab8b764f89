"""Several narrow values in one 32-bit register, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import DataType
from tvm import tirx as tir

from ..rewrite import dtype_of

WORD = 32


def packed(values: Sequence[Any]) -> Any:
    """One register operand: the first value in the lowest bits; float64 stays as it is."""
    dtype = dtype_of(values[0])
    if dtype == "float64":
        return values[0]
    bits = DataType(dtype).bits
    word = None
    for position, value in enumerate(values):
        part = _bits(value, f"uint{bits}")
        if bits < WORD:
            part = tir.Cast("uint32", part)
        if position:
            part = tir.shift_left(part, tir.const(bits * position, "uint32"))
        word = part if word is None else tir.bitwise_or(word, part)
    return word


def unpacked(word: Any, position: int, dtype: str) -> Any:
    """The value at a position of a 32-bit register."""
    bits = DataType(dtype).bits
    if bits < WORD:
        if position:
            word = tir.shift_right(word, tir.const(bits * position, "uint32"))
        word = tir.Cast(f"uint{bits}", word)
    return _bits(word, dtype)


def _bits(value: Any, dtype: str) -> Any:
    return value if dtype_of(value) == dtype else tir.reinterpret(dtype, value)
