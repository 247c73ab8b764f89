"""Layouts of shared tiles by name: rows whose 16-byte chunks change places, and plain order."""

from __future__ import annotations

from typing import Any

from .calling import bad_argument, checked_call
from .dtypes import Dtype
from .layouts import Layout
from .operands import described, shape_mismatch, shown
from .values import Buffer, Region, Value


def _tile(buffer: Any, called: str, rank: int = 2) -> tuple[Buffer, int, int]:
    """The tile of a swizzle, its rows and columns (leading dimensions count as rows)."""
    tile = buffer.buffer if isinstance(buffer, Region) else buffer
    if isinstance(tile, Value) and tile.origin is not None:
        tile = tile.origin[0]
    if not isinstance(tile, Buffer):
        bad_argument(f"`{called}` takes a shared tile, {described(buffer)} given", "give the buffer")
    if len(tile.shape) < rank or not all(isinstance(extent, int) for extent in tile.shape):
        wanted = "a tile of two dimensions" if rank == 2 else "a tile of constant extents"
        shape_mismatch(f"`{called}` of `{tile.name}`, shape {shown(tile.shape)}", f"give {wanted}")
    return tile, tile.shape[-2] if rank == 2 else 1, tile.shape[-1]


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
    tile, _, _ = _tile(buffer, "T.make_linear_layout", 1)
    return Layout(tile.shape, lambda *indices: list(indices))
