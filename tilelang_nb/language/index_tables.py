"""Functions of indices that are known as tables, as arithmetic: sums of digits, or exclusive ors of bits.

The inverse of a layout is found as a table.  Where a kernel names it, it has to be an expression again; every one is
compared with its whole table before it is used.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Function = Callable[..., Any]


def function_of(table: np.ndarray) -> Function | None:
    """A function of one index per axis that gives the entries of an integer table; None where neither form does.

    It takes numbers and device values alike.
    """
    return _sum_of_digits(table) or _exclusive_or(table)


def _lines(table: np.ndarray) -> list[np.ndarray]:
    """The table along each axis, where all other indices are 0."""
    return [table[tuple(slice(None) if at == axis else 0 for at in range(table.ndim))] for axis in range(table.ndim)]


def _broadcast(line: Any, axis: int, rank: int) -> np.ndarray:
    """A line along one axis of a table; a number stays the same all over it."""
    if np.ndim(line) == 0:
        return np.asarray(line)
    return line.reshape([-1 if at == axis else 1 for at in range(rank)])


# ---- sums


def _sum_of_digits(table: np.ndarray) -> Function | None:
    """first + sum over the axes of (index // weight % extent) * step."""
    first = int(table.reshape(-1)[0])
    digits = [_digits(line - first) for line in _lines(table)]
    total: Any = first
    for axis, (row, extent) in enumerate(zip(digits, table.shape)):
        total = total + _broadcast(_summed(np.arange(extent), row), axis, table.ndim)
    if (np.broadcast_to(total, table.shape) != table).any():
        return None

    def function(*indices: Any) -> Any:
        total: Any = first
        for index, row in zip(indices, digits):
            part = _summed(index, row)
            total = part if isinstance(total, int) and total == 0 else total + part
        return total

    return function


Digit = tuple[int, int | None, int]  # weight, extent (None: all that is left), step


def _digits(line: np.ndarray) -> list[Digit]:
    """The digits of one index, least significant first: how far each one alone moves the result.  line[0] is 0."""
    found: list[Digit] = []
    weight = 1
    while weight < len(line):
        step, steps = int(line[weight]), line[::weight]
        wrong = np.flatnonzero(steps != np.arange(len(steps)) * step)
        many = int(wrong[0]) if len(wrong) else len(steps)
        found.append((weight, None if weight * many >= len(line) else many, step))
        weight *= many
    return found


def _summed(index: Any, row: list[Digit]) -> Any:
    total: Any = None
    for weight, extent, step in row:
        if step == 0:
            continue
        part = index if weight == 1 else index // weight
        part = part if extent is None else part % extent
        part = part if step == 1 else part * step
        total = part if total is None else total + part
    return 0 if total is None else total


# ---- exclusive ors


def _exclusive_or(table: np.ndarray) -> Function | None:
    """first ^ the exclusive or over the bits of all indices of a number for each: swizzles, and orders of bits."""
    if any(extent & (extent - 1) for extent in table.shape) or table.min() < 0:
        return None
    first = int(table.reshape(-1)[0])
    parts = [_shifts(line ^ first) for line in _lines(table)]
    total: Any = np.int64(first)
    for axis, (row, extent) in enumerate(zip(parts, table.shape)):
        total = total ^ _broadcast(_mixed(np.arange(extent), row), axis, table.ndim)
    if (np.broadcast_to(total, table.shape) != table).any():
        return None

    def function(*indices: Any) -> Any:
        total: Any = first
        for index, row in zip(indices, parts):
            part = _mixed(index, row)
            total = part if isinstance(total, int) and total == 0 else total ^ part
        return total

    return function


Shift = tuple[int, int, int]  # bits from this one on, how many, to which bit of the result


def _shifts(line: np.ndarray) -> list[Shift]:
    """Runs of neighbouring bits of one index that go to neighbouring bits of the result."""
    pairs = set()
    bit = 0
    while 1 << bit < len(line):
        number = int(line[1 << bit])
        pairs |= {(bit, to) for to in range(number.bit_length()) if number >> to & 1}
        bit += 1
    found: list[Shift] = []
    for start, to in sorted(pairs):
        if (start - 1, to - 1) in pairs:
            continue
        many = 1
        while (start + many, to + many) in pairs:
            many += 1
        found.append((start, many, to))
    return found


def _mixed(index: Any, row: list[Shift]) -> Any:
    total: Any = None
    for start, many, to in row:
        part = (index if start == 0 else index // (1 << start)) % (1 << many) * (1 << to)
        total = part if total is None else total ^ part
    return 0 if total is None else total
