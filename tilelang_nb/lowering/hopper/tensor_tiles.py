"""How bulk copies lay a tile out in shared memory, and how wgmma's matrix descriptors see it.

A row of a tile is cut into pieces of `span` bytes; all first pieces come first, then all second ones.  Such a box has
one row after the other, and the 16-byte chunks of a row are swizzled within its span: what TMA writes and wgmma reads.
Offsets inside a tile are multiples of 8 rows or lie inside a row's first chunk, so that swizzles leave them alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tvm import tirx as tir
from tvm.sym import Analyzer

from ..rewrite import constant, dtype_of, element_bytes

LAYOUTS = {128: 1, 64: 2, 32: 3}  # swizzle in bytes, the widest first -> layout of a descriptor
ALIGNMENT = 1024  # bytes of shared memory, after which every swizzle repeats
PLAIN_ALIGNMENT = 128  # bytes, for a tile that is not swizzled
MOST_ROWS = 256  # of a box, and columns
MOST_BOXES = 64  # that one copy is made of
ROWS_OF_SWIZZLE = 8  # after which it repeats: where a matrix may begin
STEP = 32  # bytes of one instruction along the depth
TURNED_DEPTH = 16  # rows of one instruction along the depth, where columns of memory are rows of the matrix


@dataclass(frozen=True)
class TensorTile:
    """The last two dimensions of a tile.  span: bytes.  swizzled: within the span; else rows are as they are."""

    rows: int
    columns: int
    itemsize: int
    span: int
    swizzled: bool = True

    @property
    def swizzle(self) -> int:
        """Bytes within which chunks change places, as a tensor map says it."""
        return self.span if self.swizzled else 0

    @property
    def bytes(self) -> int:
        return self.rows * self.columns * self.itemsize

    @property
    def piece(self) -> int:
        """Elements of a row in one box."""
        return self.span // self.itemsize

    @property
    def boxes(self) -> int:
        return self.columns // self.piece

    @property
    def box_bytes(self) -> int:
        return self.rows * self.span

    def lines(self, row: Any, step: Any) -> Any:
        """Bytes from the tile's start to a row (a multiple of 8) at a step of 32 bytes along its columns."""
        each = self.span // STEP
        return step // each * self.box_bytes + row * self.span + step % each * STEP

    def turned(self, column: Any, step: Any) -> Any:
        """Bytes to a column (a multiple of a piece) at a step of 16 rows."""
        return column // self.piece * self.box_bytes + step * (TURNED_DEPTH * self.span)

    def descriptor(self, turned: bool) -> tuple[int, int, int]:
        """(leading offset, stride offset, layout) of a matrix descriptor, offsets in 16 bytes."""
        if turned:
            return self.box_bytes >> 4, 8 * self.span >> 4, LAYOUTS[self.span]
        return 1, 8 * self.span >> 4, LAYOUTS[self.span]


def plain_tile(buffer: Any) -> TensorTile | None:
    """A tile row by row; None where no bulk copy writes one."""
    rows, columns = (int(extent) for extent in (1, *buffer.shape)[-2:])
    itemsize = element_bytes(buffer)
    tile = TensorTile(rows, columns, itemsize, columns * itemsize, False)
    one_of_many = any(int(extent) != 1 for extent in buffer.shape[:-2])
    return None if tile.span % 16 or (one_of_many and tile.bytes % PLAIN_ALIGNMENT) else tile


def tensor_tile(buffer: Any, most: int | None = MOST_ROWS) -> TensorTile | None:
    """The layout of a shared tile whose last two dimensions hold a matrix; None where there is none.

    most: rows that it may have; None for one that no bulk copy moves, whose boxes are of any height.
    """
    if len(buffer.shape) < 2:
        return None
    rows, columns = (int(extent) for extent in buffer.shape[-2:])
    itemsize = element_bytes(buffer)
    span = next((span for span in LAYOUTS if columns * itemsize % span == 0), 0)
    tile = TensorTile(rows, columns, itemsize, span)
    if not span or rows % ROWS_OF_SWIZZLE or (most is not None and rows > most):
        return None
    return tile


def out_of_step(region: Any, tile: TensorTile, turned: bool) -> str:
    """Why no matrix descriptor sees a region of a swizzled tile, in words of the text; "" where one does.

    turned: its rows in memory run along the depth of the product.
    """
    name, (row, column) = region.buffer.name, region.begin[-2:]
    if not is_multiple(row, ROWS_OF_SWIZZLE):
        return f"wgmma takes rows that begin at a multiple of {ROWS_OF_SWIZZLE}: of `{name}` they are not known to"
    each = tile.piece if turned else STEP // tile.itemsize
    if not is_multiple(column, each):
        return f"wgmma takes columns that begin at a multiple of {each}: of `{name}` they are not known to"
    columns = int(region.extent[-1])
    if turned and columns % each:
        return f"wgmma takes whole pieces of {each} columns of `{name}`, and these are {columns}"
    return ""


def is_multiple(index: Any, of: int) -> bool:
    """Is an index known to be one?"""
    known = constant(index)
    return known % of == 0 if known is not None else constant(Analyzer().simplify(tir.floormod(index, of))) == 0


def misfit(buffer: Any) -> str:
    """Why the last two dimensions of a shared tile are no swizzled boxes, in words of the text; "" where they are."""
    rows, columns = (int(extent) for extent in (1, *buffer.shape)[-2:])
    itemsize = element_bytes(buffer)
    size = columns * itemsize
    if size % STEP:
        fitting = -(-size // STEP) * STEP // itemsize
        have = f"those of `{buffer.name}`, {columns} of {dtype_of(buffer)}, have {size:,}; {fitting} columns would do"
        return f"bulk copies and wgmma take rows of multiples of {STEP} bytes: {have}"
    if rows % ROWS_OF_SWIZZLE:
        return f"bulk copies and wgmma take rows in whole eights: `{buffer.name}` has {rows}"
    if rows > MOST_ROWS:
        return f"bulk copies take tiles of up to {MOST_ROWS} rows: `{buffer.name}` has {rows}"
    return ""


@dataclass(frozen=True)
class Box:
    """What one instruction moves of a region of a tile.

    row, column: of its first element in the region.
    """

    row: int
    column: int
    rows: int
    columns: int


def boxes_of(tile: TensorTile, shared: Any) -> list[Box]:
    """The boxes of a region of a shared tile, in their order; none where no bulk copies move it.

    shared: the region, with constant extents: whole rows of the tile.
    """
    rows, columns = rows_and_columns(shared)
    if tile.swizzled:
        return [Box(0, box * tile.piece, rows, tile.piece) for box in range(tile.boxes)]
    if columns <= MOST_ROWS:
        high = next(part for part in range(min(rows, MOST_ROWS), 0, -1) if rows % part == 0)
        if high * tile.span % PLAIN_ALIGNMENT and high != rows:
            return []
        return [Box(row, 0, high, columns) for row in range(0, rows, high)]
    step = PLAIN_ALIGNMENT // tile.itemsize
    wide = next((part for part in range(MOST_ROWS // step * step, 0, -step) if columns % part == 0), 0)
    if not wide or rows * (columns // wide) > MOST_BOXES:
        return []
    return [Box(row, column, 1, wide) for row in range(rows) for column in range(0, columns, wide)]


def place_of(tile: TensorTile, shared: Any, box: Box) -> list[Any]:
    """The indices in memory of the first element of a box of a region: pieces of swizzled rows stand one box after the
    other.
    """
    begin = list(shared.begin)
    if not tile.swizzled:
        begin[-1] = begin[-1] + box.column if box.column else begin[-1]
        if box.row:
            begin[-2] = begin[-2] + box.row
        return begin
    element = begin[-2] * tile.piece + box.column * tile.rows
    return [*begin[:-2], tir.floordiv(element, tile.columns), tir.floormod(element, tile.columns)]


def rows_and_columns(shared: Any) -> tuple[int, int]:
    """The extents of a region that is a matrix or a vector."""
    rows, columns = (int(extent) for extent in (1, *shared.extent)[-2:])
    return rows, columns


def bytes_of(tile: TensorTile, shared: Any) -> int:
    """Of a region of a tile."""
    rows, columns = rows_and_columns(shared)
    return rows * columns * tile.itemsize
