"""Layouts that a kernel may name: plain objects that hold functions of the indices.

A `Layout` maps the indices of a tile to where the element lies in memory; a `Fragment` maps them to a thread and a
register index
of it.  They work on Python integers and on device values alike.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .calling import bad_argument, checked_call
from .dtypes import Dtype
from .operands import described, integer, shape_mismatch, shown
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
        return list(self.shape)

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
        self.replicate = integer(replicate, "T.Fragment", "replicate", 1)
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
        arguments = (*indices, copy) if self.replicate > 1 else indices
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
