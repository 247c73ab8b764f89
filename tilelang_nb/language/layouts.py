"""Layouts that a kernel may name: plain objects that hold functions of the indices.

A `Layout` maps the indices of a tile to where the element lies in memory; a `Fragment` maps them to a thread and a
register index
of it.  They work on Python integers and on device values alike.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .calling import bad_argument, checked_call
from .dtypes import Dtype
from .index_maps import tables
from .operands import described, flag, integer, shape_mismatch, shown
from .values import Buffer, Region, Value


def _shape(shape: Any, called: str) -> tuple[int, ...]:
    given = tuple(shape) if isinstance(shape, (list, tuple)) else (shape,)
    return tuple([integer(extent, called, "shape", 1) for extent in given])


def _result(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, (list, tuple)) else (value,)


class Layout:
    """`T.Layout(shape, forward)`: element (i, j) of a tile lies at `forward(i, j)`, an index or a list of indices.

    shape: constants.  forward: a function of one index per dimension, one-to-one.
    Errors: TL004 (shape, function).  Source: upstream `tilelang/layout/layout.py`.
    """

    def __init__(self, shape: Any, forward_fn: Callable[..., Any]):
        called = f"T.{type(self).__name__}"
        self.shape = _shape(shape, called)
        if not callable(forward_fn):
            bad_argument(
                f"`forward_fn` of `{called}` is {described(forward_fn)}", "give a function: `lambda i, j: [i, j]`"
            )
        self._forward = forward_fn
        self.forward(*[0] * len(self.shape))

    def forward(self, *indices: Any) -> tuple[Any, ...]:
        """Where the element at these indices lies."""
        return _result(_called(self._forward, indices, type(self).__name__))

    def map_forward_index(self, indices: Any) -> tuple[Any, ...]:
        return self.forward(*indices)

    def get_input_shape(self) -> list[int]:
        """The extents of the tile."""
        return list(self.shape)

    def get_output_shape(self) -> list[int]:
        """The extents of the box that all places lie in."""
        return [int(values.max()) + 1 for values in self._tables()]

    def is_equal(self, other: Any) -> bool:
        """Does another layout put every element in the same place?"""
        if not isinstance(other, Layout) or other.shape != self.shape:
            return False
        mine, theirs = self._tables(), other._tables()
        return len(mine) == len(theirs) and all((a == b).all() for a, b in zip(mine, theirs))

    def _tables(self) -> list[np.ndarray]:
        """Each result of `forward` for every element."""
        return tables(self.forward, self.shape, f"the layout of shape {shown(self.shape)}")

    def __repr__(self) -> str:
        return f"T.{type(self).__name__}({self.shape})"


def _called(function: Callable[..., Any], arguments: Any, name: str) -> Any:
    try:
        return function(*arguments)
    except TypeError as mistake:
        bad_argument(
            f"the function of `T.{name}` on {len(arguments)} indices: {mistake}", "take one index per dimension"
        )


Layout.__init__ = checked_call(Layout.__init__, "Layout")  # type: ignore[method-assign]


class Fragment(Layout):
    """`T.Fragment(shape, forward)`: element (i, j) is held by thread `forward(i, j)[0]`, in its register `forward(i,
    j)[1]`.

    forward_fn: gives (thread, register).  Or forward_thread_fn and forward_index_fn, one each; without the last, the
    registers are
    numbered in row-major order.  replicate: copies of each element; the functions then take the number of the copy as
    last argument.
    Errors: TL004 (shape, functions).  Source: upstream `tilelang/layout/fragment.py`.
    """

    def __init__(
        self,
        shape: Any,
        forward_fn: Callable[..., Any] | None = None,
        forward_thread_fn: Callable[..., Any] | None = None,
        replicate: int = 1,
        forward_index_fn: Callable[..., Any] | None = None,
    ):
        self.shape = _shape(shape, "T.Fragment")
        self.copies = integer(replicate, "T.Fragment", "replicate", 1)
        if (forward_fn is None) == (forward_thread_fn is None):
            bad_argument(
                "`T.Fragment` needs `forward_fn` or `forward_thread_fn`",
                "write `forward_fn=lambda i, j: (thread, register)`",
            )
        for function in (forward_fn, forward_thread_fn, forward_index_fn):
            if function is not None and not callable(function):
                bad_argument(
                    f"a function of `T.Fragment` is {described(function)}", "give a function: `lambda i, j: (i, j)`"
                )
        self._pair, self._thread, self._index = forward_fn, forward_thread_fn, forward_index_fn
        self.place(*[0] * len(self.shape))

    def place(self, *indices: Any, copy: Any = 0) -> tuple[Any, tuple[Any, ...]]:
        """The thread that holds an element, and the index of its register (empty where none was given)."""
        arguments = (*indices, copy) if self.copies > 1 else indices
        if self._pair is not None:
            pair = _result(_called(self._pair, arguments, "Fragment"))
            if len(pair) != 2:
                bad_argument(f"`forward_fn` of `T.Fragment` gives {len(pair)} values", "give (thread, register)")
            return pair[0], _result(pair[1])
        assert self._thread is not None
        thread = _called(self._thread, arguments, "Fragment")
        return thread, _result(_called(self._index, indices, "Fragment")) if self._index is not None else ()

    def forward(self, *indices: Any) -> tuple[Any, ...]:
        thread, registers = self.place(*indices)
        return (thread, *registers)

    def map_forward_thread(self, indices: Any) -> Any:
        """The thread that holds an element, the first one of several."""
        return self.place(*indices)[0]

    def get_thread_size(self) -> int:
        """How many threads hold the tile, counted from 0."""
        first, last = (
            tables(lambda *indices, copy=copy: self.place(*indices, copy=copy)[0], self.shape, "the layout")[0].max()
            for copy in (0, self.copies - 1)
        )
        return int(max(first, last)) + 1

    def repeat(self, repeats: Any, repeat_on_thread: bool = False, lower_dim_first: bool = True) -> Fragment:
        """The layout of a tile that is `repeats` times as large in each dimension.

        Each repetition is held by further threads (repeat_on_thread), or in further registers of the same.  They are
        counted from the last dimension outwards (lower_dim_first), or from the first one inwards.
        Errors: TL004 (numbers of repetitions).  Source: upstream `tilelang/layout/fragment.py`.
        """
        called = "Fragment.repeat"
        times = _shape(repeats, called)
        if len(times) != len(self.shape):
            bad_argument(
                f"`{called}` of {len(self.shape)} dimension(s) with {len(times)} repetition(s)", "give one for each"
            )
        shape, threads = self.shape, self.get_thread_size()
        extents = self.get_output_shape()[1:]
        order = reversed(range(len(shape))) if flag(lower_dim_first, called, "lower_dim_first") else range(len(shape))
        dims = list(order)
        on_thread = flag(repeat_on_thread, called, "repeat_on_thread")

        def place(*indices: Any) -> tuple[Any, tuple[Any, ...]]:
            *index, copy = indices
            number, stride = 0, 1
            for dim in dims:
                number = number + index[dim] // shape[dim] * stride
                stride *= times[dim]
            thread, registers = self.place(*[i % extent for i, extent in zip(index, shape)], copy=copy)
            if on_thread:
                return thread + threads * number, registers
            return thread, (registers[0] + extents[0] * number, *registers[1:]) if registers else ()

        return self._like(tuple(extent * n for extent, n in zip(shape, times)), self.copies, place)

    def replicate(self, replicate: int) -> Fragment:
        """The layout in which further threads hold copies of the whole tile.

        Errors: TL004 (no positive number).  Source: upstream `tilelang/layout/fragment.py`.
        """
        times, threads = integer(replicate, "Fragment.replicate", "replicate", 1), self.get_thread_size()

        def place(*indices: Any) -> tuple[Any, tuple[Any, ...]]:
            *index, copy = indices
            thread, registers = self.place(*index, copy=copy % self.copies)
            return thread + threads * (copy // self.copies), registers

        return self._like(self.shape, self.copies * times, place)

    def _like(self, shape: tuple[int, ...], copies: int, place: Callable[..., Any]) -> Fragment:
        """A layout by a function of the indices and the number of the copy."""

        def thread(*indices: Any) -> Any:
            return place(*(indices if copies > 1 else (*indices, 0)))[0]

        def index(*indices: Any) -> Any:
            return place(*indices, 0)[1]

        numbered = bool(self.place(*[0] * len(self.shape))[1])
        return Fragment(shape, None, thread, copies, index if numbered else None)


Fragment.__init__ = checked_call(Fragment.__init__, "Fragment")  # type: ignore[method-assign]


def _tile(buffer: Any, called: str) -> tuple[Buffer, int, int]:
    """The tile of a swizzle, its rows and columns (leading dimensions count as rows)."""
    tile = buffer.buffer if isinstance(buffer, Region) else buffer
    if isinstance(tile, Value) and tile.origin is not None:
        tile = tile.origin[0]
    if not isinstance(tile, Buffer):
        bad_argument(f"`{called}` takes a shared tile, {described(buffer)} given", "give the buffer")
    if len(tile.shape) < 2 or not all(isinstance(extent, int) for extent in tile.shape):
        shape_mismatch(f"`{called}` of `{tile.name}`, shape {shown(tile.shape)}", "give a tile of two dimensions")
    return tile, tile.shape[-2], tile.shape[-1]


def _swizzled(buffer: Any, called: str, most_bytes: int) -> Layout:
    """Rows of up to `most_bytes` whose 16-byte chunks are exchanged by the row number."""
    tile, _, columns = _tile(buffer, called)
    chunk = 16 // Dtype(tile.dtype).itemsize
    row_bytes = columns * Dtype(tile.dtype).itemsize
    span = next((size for size in (128, 64, 32) if size <= most_bytes and row_bytes % size == 0), 0)
    if not span:
        return Layout(tile.shape, lambda *indices: list(indices))
    chunks, rows_per_line = span // 16, 128 // span

    def forward(*indices: Any) -> list[Any]:
        *leading, row, column = indices
        piece, inside = column // chunk, column % chunk
        turned = (piece % chunks) ^ (row // rows_per_line % chunks)
        return [*leading, row, (piece // chunks * chunks + turned) * chunk + inside]

    return Layout(tile.shape, forward)


@checked_call
def make_swizzled_layout(buffer: Any, k_major: bool = True, allow_pad: bool = True) -> Layout:
    """A layout of a shared tile that spreads its columns over the memory banks, by rows of 128, 64 or 32 bytes.

    buffer: a tile of two or more constant dimensions.  A tile whose rows have no such width keeps its order.
    Errors: TL004 (no buffer), TL204 (shape).  Source: upstream `tilelang/layout/swizzle.py`; CUDA's 128-byte swizzle.
    """
    return _swizzled(buffer, "T.make_swizzled_layout", 128)


@checked_call
def make_full_bank_swizzled_layout(buffer: Any) -> Layout:
    """The 128-byte swizzle.

    Errors: TL004 (no buffer), TL204 (shape).  Source: upstream `tilelang/layout/swizzle.py`.
    """
    return _swizzled(buffer, "T.make_full_bank_swizzled_layout", 128)


@checked_call
def make_half_bank_swizzled_layout(buffer: Any) -> Layout:
    """The 64-byte swizzle.

    Errors: TL004 (no buffer), TL204 (shape).  Source: upstream `tilelang/layout/swizzle.py`.
    """
    return _swizzled(buffer, "T.make_half_bank_swizzled_layout", 64)


@checked_call
def make_quarter_bank_swizzled_layout(buffer: Any) -> Layout:
    """The 32-byte swizzle.

    Errors: TL004 (no buffer), TL204 (shape).  Source: upstream `tilelang/layout/swizzle.py`.
    """
    return _swizzled(buffer, "T.make_quarter_bank_swizzled_layout", 32)


@checked_call
def make_linear_layout(buffer: Any) -> Layout:
    """Row-major order.  Errors: TL004 (no buffer), TL204 (shape).  Source: upstream `tilelang/layout/swizzle.py`."""
    tile, _, _ = _tile(buffer, "T.make_linear_layout")
    return Layout(tile.shape, lambda *indices: list(indices))
