"""Atomic read-modify-write of many lanes: as if they came one after the other, in lane order."""

from __future__ import annotations

from typing import Any

import numpy as np

OPERATIONS: dict[str, Any] = {
    "add": np.add,
    "max": np.maximum,
    "min": np.minimum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


def update(memory: np.ndarray, at: np.ndarray, amount: np.ndarray, kind: str) -> np.ndarray:
    """memory[at] = operation(memory[at], amount), lane by lane; returns what each lane found.

    Rounds after every addition, so the result of float additions is that of this order.
    """
    if not len(at):
        return amount.copy()
    order = np.argsort(at, kind="stable")
    place, value = at[order], amount[order]
    starts = np.flatnonzero(np.r_[True, place[1:] != place[:-1]])
    sizes = np.diff(np.r_[starts, len(place)])
    found = np.empty_like(value)
    if kind == "exchange":
        found[1:] = value[:-1]
        found[starts] = memory[place[starts]]
        ends = starts + sizes - 1
        memory[place[ends]] = value[ends]
    else:
        operation = OPERATIONS[kind]
        if value.dtype.kind not in "iub" and kind in ("max", "min"):
            operation = np.fmax if kind == "max" else np.fmin
        if sizes.max() <= len(starts):
            _by_rank(memory, place, value, starts, sizes, found, operation)
        else:
            _by_place(memory, place, value, starts, sizes, found, operation)
    result = np.empty_like(found)
    result[order] = found
    return result


def _by_rank(
    memory: np.ndarray, place: np.ndarray, value: np.ndarray, starts: np.ndarray, sizes: np.ndarray, found: np.ndarray,
    operation: Any,
) -> None:  # fmt: skip
    """First the first lane of every place, then the second lanes ...: for many places with few lanes each."""
    for rank in range(int(sizes.max())):
        lanes = starts[sizes > rank] + rank
        found[lanes] = memory[place[lanes]]
        memory[place[lanes]] = operation(found[lanes], value[lanes])


def _by_place(
    memory: np.ndarray, place: np.ndarray, value: np.ndarray, starts: np.ndarray, sizes: np.ndarray, found: np.ndarray,
    operation: Any,
) -> None:  # fmt: skip
    """One place after the other, its lanes as a running result: for few places with many lanes each."""
    for start, size in zip(starts.tolist(), sizes.tolist(), strict=True):
        cell = place[start]
        running = operation.accumulate(np.concatenate([memory[cell : cell + 1], value[start : start + size]]))
        found[start : start + size] = running[:-1]
        memory[cell] = running[-1]
