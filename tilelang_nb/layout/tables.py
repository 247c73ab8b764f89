"""Layouts that are given element by element, in the forms that lowering works with: digits, swizzles, runs."""

from __future__ import annotations

import numpy as np

from .fragment import Digit, Fragment, arrange
from .swizzle import CHUNK_BYTES, ROWS, Swizzle


def run_length(places: np.ndarray) -> int:
    """The largest power of two of neighbours of a row that lie side by side, from a multiple of it on."""
    columns = places.shape[-1]
    run = columns & -columns
    while run > 1:
        groups = places.reshape(-1, run)
        if (groups[:, 0] % run == 0).all() and (groups == groups[:, :1] + np.arange(run)).all():
            return run
        run //= 2
    return 1


def swizzle_of(places: np.ndarray, itemsize: int) -> Swizzle | None:
    """The swizzle that moves the elements of a row-major tile to these places; None if none does.

    A swizzle that moves nothing is that of a tile in plain order.
    """
    if places.ndim < 2 or CHUNK_BYTES % itemsize or places.shape[-1] * itemsize % CHUNK_BYTES:
        return None
    columns, chunk = places.shape[-1], CHUNK_BYTES // itemsize
    plain = np.arange(places.size).reshape(places.shape)
    if (places == plain).all():
        return Swizzle(chunk, 1, 1)
    rows, column = np.arange(places.shape[-2])[:, None], np.arange(columns)
    start = plain[..., :1]
    span = 2
    while span <= ROWS and columns // chunk % span == 0:
        swizzle = Swizzle(chunk, ROWS // span, span)
        if (places == start + swizzle.column(rows, column)).all():
            return swizzle
        span *= 2
    return None


def fragment_of(threads: np.ndarray, registers: np.ndarray | None, count: int) -> Fragment | None:
    """The layout that these tables describe; None if it is not made of digits of the indices.

    threads: (copy, *index), the thread of every copy of an element.  registers: of every element; None for any.
    count: size of the set of threads.
    """
    shape = threads.shape[1:]
    first = threads.min(axis=0)
    rows = []
    for dim, extent in enumerate(shape):
        line = tuple(slice(None) if d == dim else 0 for d in range(len(shape)))
        row = _digits(first[line], None if registers is None else registers[line], extent)
        if row is None:
            return None
        rows.append(row)
    try:
        layout = arrange(shape, rows, count) if registers is None else Fragment(shape, tuple(map(tuple, rows)), count)
    except ValueError:
        return None
    return layout if _holds(layout, threads, registers) else None


def _digits(threads: np.ndarray, registers: np.ndarray | None, extent: int) -> list[Digit] | None:
    """The digits of one dimension, most significant first, from the tables along it."""
    thread = threads - threads[0]
    register = np.zeros_like(thread) if registers is None else registers - registers[0]
    found: list[Digit] = []
    weight = 1
    while weight < extent:
        steps = int(thread[weight]), int(register[weight])
        if min(steps) < 0 or (steps[0] and steps[1]) or (registers is not None and not any(steps)):
            return None
        size = 1
        for many in range(2, extent // weight + 1):
            at = (many - 1) * weight
            if thread[at] != (many - 1) * steps[0] or register[at] != (many - 1) * steps[1]:
                break
            if extent % (weight * many) == 0:
                size = many
        if size == 1:
            return None
        found.insert(0, Digit(size, "thread", steps[0]) if steps[0] else Digit(size, "register", steps[1] or 1))
        weight *= size
    return found


def _holds(layout: Fragment, threads: np.ndarray, registers: np.ndarray | None) -> bool:
    """Are the tables those of the layout?  Threads that the tables leave idle may hold further copies."""
    if registers is not None and (layout.registers() != registers).any():
        return False
    copies = np.zeros(1, np.int64)
    for digit in layout.replication:
        copies = (copies[:, None] + np.arange(digit.extent) * digit.stride).reshape(-1)
    holders = layout.owners()[None] + copies.reshape(-1, *[1] * len(layout.shape))
    return all(bool((holders == copy).any(axis=0).all()) for copy in threads)
