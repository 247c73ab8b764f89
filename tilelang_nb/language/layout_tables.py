"""What `T.annotate_layout` hands to lowering: the layouts of tiles as tables over all their elements, checked.

A layout is a function in the text.  Here it is called once with variables, for the expression that addresses an
element, and evaluated for every element, for what has to hold of the whole: no two elements in one place, no thread
that the launch has not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn, Protocol

import numpy as np
from tvm import tirx as tir

from .calling import bad_argument
from .fragment_layouts import Fragment
from .index_maps import index_variables, table, traced
from .layouts import Layout
from .operands import shape_mismatch, shown

MOST_ELEMENTS = 1 << 20  # no tile of more fits into shared memory or registers


class Named(Protocol):
    """What a layout is for: messages name it."""

    @property
    def name(self) -> str: ...


@dataclass(frozen=True)
class _Loop:
    name: str = "T.Parallel"


@dataclass(frozen=True)
class TileOrder:
    """The order of a shared tile.

    size: elements of memory that it takes, gaps included.  places: the position of every element, int64 in row-major
    order.  variables, place: the same as an expression.
    """

    shape: tuple[int, ...]
    size: int
    places: bytes
    variables: tuple[Any, ...] = field(compare=False)
    place: Any = field(compare=False)

    @property
    def table(self) -> np.ndarray:
        """The position of every element, an array of the tile's shape."""
        return np.frombuffer(self.places, np.int64).reshape(self.shape)


@dataclass(frozen=True)
class FragmentTable:
    """Who holds the elements of a fragment: int64 tables over (copy, *index) for threads, over the index for
    registers; without the latter every thread numbers its elements in row-major order.
    """

    shape: tuple[int, ...]
    copies: int
    threads: bytes
    registers: bytes | None

    @property
    def thread_table(self) -> np.ndarray:
        """The thread of every copy of every element."""
        return np.frombuffer(self.threads, np.int64).reshape(self.copies, *self.shape)

    @property
    def register_table(self) -> np.ndarray | None:
        """The register of every element."""
        return None if self.registers is None else np.frombuffer(self.registers, np.int64).reshape(self.shape)


def tile_order(buffer: Named, layout: Layout) -> TileOrder | None:
    """The order that a layout gives to a shared tile; None for a tile that is too large to be one.

    TL004: positions below 0, two elements in one place, results that are no integers of the indices.
    """
    shape = layout.shape
    if math.prod(shape) > MOST_ELEMENTS:
        return None
    variables = index_variables(len(shape))
    results = traced(layout.forward, variables, f"the layout of `{buffer.name}`")
    place, places, size = _flat(results, variables, shape, buffer)
    _check_apart(places, buffer)
    return TileOrder(shape, size, places.tobytes(), variables, place)


def loop_table(layout: Fragment, extents: Sequence[Any], threads: int) -> FragmentTable | None:
    """Which threads run which iteration of a `T.Parallel` loop; None for one that is too large to be looked at.

    threads: of the launch.  TL004: a thread that there is not, results that are no integers of the indices, extents
    that are no constants; TL204: another shape than the extents.
    """
    if not all(isinstance(extent, int) for extent in extents):
        bad_argument(
            "`loop_layout` of a `T.Parallel` whose extents are known only when the kernel runs", "leave it out"
        )
    if layout.shape != tuple(extents):
        shape_mismatch(
            f"`loop_layout` of shape {shown(layout.shape)} for a `T.Parallel` over {shown(extents)}",
            "make the shapes equal",
        )
    if math.prod(layout.shape) * layout.copies > MOST_ELEMENTS:
        return None
    owners, _, _ = _owners(_Loop(), layout, threads)
    return FragmentTable(layout.shape, layout.copies, owners.tobytes(), None)


def fragment_table(buffer: Named, layout: Fragment, threads: int) -> FragmentTable | None:
    """Who holds which element; None for a tile that is too large for registers.

    threads: of the launch.  TL004: a thread that there is not, two elements in one register, results that are no
    integers of the indices.
    """
    shape, copies = layout.shape, layout.copies
    if math.prod(shape) * copies > MOST_ELEMENTS:
        return None
    owners, registers, variables = _owners(buffer, layout, threads)
    held = _flat(registers, variables, shape, buffer)[1] if registers else None
    if held is not None:
        _check_registers(owners, held, buffer)
    return FragmentTable(shape, copies, owners.tobytes(), None if held is None else held.tobytes())


def _owners(buffer: Named, layout: Fragment, threads: int) -> tuple[np.ndarray, list[Any], list[Any]]:
    """The thread of every copy of every element; the expressions of its register, and the variables in them."""
    shape, copies = layout.shape, layout.copies
    *variables, copy = index_variables(len(shape) + 1)
    what = f"the layout of `{buffer.name}`"

    def placed(*indices: Any) -> list[Any]:
        thread, registers = layout.place(*indices[:-1], copy=indices[-1])
        return [thread, *registers]

    thread, *registers = traced(placed, [*variables, copy], what)
    owners = _table(thread, (copy, *variables), (copies, *shape), buffer)
    if owners.min() < 0 or owners.max() >= threads:
        worst = int(owners.min() if owners.min() < 0 else owners.max())
        where = tuple(int(part) for part in np.argwhere(owners == worst)[0][1:])
        problem = f"{what} gives element {_shown(where)} to thread {worst}; the launch has {threads}"
        bad_argument(problem, f"use threads 0 to {threads - 1}")
    return owners, registers, list(variables)


def _flat(
    results: Sequence[Any], variables: Sequence[Any], shape: tuple[int, ...], buffer: Named
) -> tuple[Any, np.ndarray, int]:
    """Indices into a box just large enough for them, as one index in row-major order: expression, table, elements."""
    place: Any = tir.const(0, "int32")
    places, size = np.zeros(shape, np.int64), 1
    for number, expr in enumerate(results):
        values = _table(expr, variables, shape, buffer)
        if values.min() < 0:
            where = tuple(int(part) for part in np.argwhere(values < 0)[0])
            bad_argument(
                f"the layout of `{buffer.name}` puts element {_shown(where)} at {int(values[where])}",
                "count places from 0",
            )
        extent = int(values.max()) + 1
        place = expr if number == 0 else place * extent + expr
        places, size = places * extent + values, size * extent
    if size > MOST_ELEMENTS:
        bad_argument(
            f"the layout of `{buffer.name}` needs room for {size:,} elements", "put the elements closer together"
        )
    return place, places, size


def _table(expr: Any, variables: Sequence[Any], shape: Sequence[int], buffer: Named) -> np.ndarray:
    try:
        return table(expr, variables, shape)
    except ValueError as part:
        bad_argument(f"the layout of `{buffer.name}` depends on {part}", "use the indices and constants alone")


def _check_apart(places: np.ndarray, buffer: Named) -> None:
    order = np.argsort(places, axis=None, kind="stable")
    same = np.flatnonzero(np.diff(places.reshape(-1)[order]) == 0)
    if len(same):
        _collision(order[same[0]], order[same[0] + 1], places.shape, "place", buffer)


def _check_registers(owners: np.ndarray, registers: np.ndarray, buffer: Named) -> None:
    """Does every register of a thread hold one element?"""
    slots = owners[0] * (int(registers.max()) + 1) + registers
    order = np.argsort(slots, axis=None, kind="stable")
    same = np.flatnonzero(np.diff(slots.reshape(-1)[order]) == 0)
    if len(same):
        _collision(order[same[0]], order[same[0] + 1], registers.shape, "register", buffer)


def _collision(one: int, other: int, shape: tuple[int, ...], what: str, buffer: Named) -> NoReturn:
    pair = sorted((one, other))
    first, second = (_shown(tuple(int(part) for part in np.unravel_index(at, shape))) for at in pair)
    bad_argument(
        f"the layout of `{buffer.name}` puts elements {first} and {second} in one {what}",
        f"give every element a {what} of its own",
    )


def _shown(index: tuple[int, ...]) -> str:
    return f"({index[0]},)" if len(index) == 1 else f"({', '.join(map(str, index))})"
