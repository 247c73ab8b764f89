"""Which copies of accumulators to global memory go through shared memory, and how much of that they get.

Threads hold two neighbouring elements of a row: stored as they are, sectors of 32 bytes are used in parts.  A copy of a
whole accumulator goes through boxes of 64 rows of 128 bytes instead, where shared memory has room for at least one box
of each warp group beside the tiles of the pipelines.  Where the text copies the accumulator into a shared tile, and
nothing but that tile to global memory, the boxes take the place of the tile.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Any

from tvm import tirx as tir

from tilelang_nb.language.tile_program import RegionOperand, TileCall, read, statement_name
from tilelang_nb.layout.wgmma import ROWS

from ..context import FRAGMENT, LaunchContext
from ..gemm.wgmma import GroupEngine
from ..legalise import whole
from ..ops.accumulator_store import STORED, box_of
from ..rewrite import Load, constant, dtype_of, element_bytes, has, scope, statements, variables
from ..uniformity import Uniformity
from .tensor_tiles import ALIGNMENT
from .tile_statements import is_product


@dataclass(frozen=True)
class Epilogue:
    """The copy that is done by bulk copies.  call: to global memory, from `source`, the accumulator, or from `tile`,
    into which `before` copies it.  boxes: of each warp group; slots: boxes that there is room for.  repeated: a block
    does it several times.
    """

    call: TileCall
    source: RegionOperand
    engine: GroupEngine
    boxes: int
    slots: int
    tile: Any = None
    before: TileCall | None = None
    repeated: bool = False

    @property
    def groups(self) -> int:
        return self.engine.grid.down * self.engine.grid.across


def find_epilogue(
    body: Any, engines: dict[Any, GroupEngine], function: Any, launch: LaunchContext, room: int
) -> Epilogue | None:
    """The last statements of a launch, where they are such a copy.

    engines: those of the products, by accumulator.  room: bytes of shared memory that are left.
    """
    end, repeated = _end(body, launch)
    ways = [_copy(one) for one in end[-2:]]
    call = ways[-1]
    if call is None:
        return None
    source, target = call["source"], call["target"]
    tile, before = None, ways[0]
    if scope(source.buffer).startswith("shared"):
        if before is None or len(ways) < 2 or not _only_through(source, before, body):
            return None
        tile, source = source.buffer, before["source"]
        if dtype_of(tile) != dtype_of(target.buffer):
            return None
        room += size_of_tile(tile)
    engine = engines.get(source.buffer)
    if engine is None or scope(target.buffer) != "global" or target.buffer not in function.params:
        return None
    stored = dtype_of(target.buffer)
    if stored not in STORED.get(dtype_of(source.buffer), ()):
        return None
    box = box_of(stored)
    if tuple(target.buffer.ty.strides or ()):
        return None
    shape = [constant(extent) for extent in source.buffer.shape]
    extents = [constant(extent) for extent in target.extent]
    rows, columns = shape[-2:]
    width = constant(target.buffer.shape[-1])
    if (
        rows is None
        or columns is None
        or width is None
        or width * box.itemsize % 16
        or len(shape) != 2
        or len(extents) > 5
    ):
        return None
    if [one for one in extents if one != 1] != shape or extents[-1] != columns:
        return None
    if [constant(extent) for extent in source.extent] != shape or any(constant(begin) != 0 for begin in source.begin):
        return None
    if any(has(begin, Load) or set(launch.axes) & variables(begin) for begin in target.begin):
        return None
    if any(dtype_of(begin) != "int32" for begin in target.begin) or not _alone(body, source.buffer):
        return None
    if sum(target.buffer in variables(part) for part in parts_of(body)) != 1:
        return None  # bulk copies are not in the order of other accesses to the array
    if repeated and not _in_tiles(target, shape, launch):
        return None
    grid = engine.grid
    if rows % (ROWS * grid.down) or columns % (box.columns * grid.across):
        return None
    boxes = rows // grid.down // ROWS * (columns // grid.across // box.columns)
    most = min(boxes, room // (box.bytes * grid.down * grid.across))
    # A divisor: the boxes of the next work of a block go on in the same order, which waiting for them counts on.
    slots = next((count for count in range(most, 0, -1) if boxes % count == 0), 0)
    if not slots:
        return None
    return Epilogue(call, source, engine, boxes, slots, tile, None if tile is None else before, repeated)


def _in_tiles(target: RegionOperand, shape: list[Any], launch: LaunchContext) -> bool:
    """Does the region begin at a multiple of its extents, so that two of them are one place or have nothing in common?

    The same warp group stores the same rows of it then, and waits for its own copies.
    """
    wide = [dim for dim, extent in enumerate(target.extent) if constant(extent) != 1]
    for dim, extent in zip(wide, shape):
        known = launch.analyzer.modular_set(target.begin[dim])
        if int(known.coeff) % extent or int(known.base) % extent:
            return False
    return True


def _end(body: Any, launch: LaunchContext) -> tuple[list[Any], bool]:
    """The statements that a launch ends with, also inside of loops and conditions that all threads follow; whether it
    comes to them several times.
    """
    found, repeated = statements(body), False

    @cache
    def uniform() -> Uniformity:
        return Uniformity(body, launch.axes)

    while True:
        last = found[-1]
        if isinstance(last, tir.For) and int(last.kind) in (tir.ForKind.SERIAL, tir.ForKind.UNROLLED):
            found, repeated = statements(last.body), True
        elif isinstance(last, tir.IfThenElse) and last.else_case is None:
            if has(last.condition, Load) or not uniform().is_uniform(last.condition):
                return found, repeated
            found = statements(last.then_case)
        else:
            return found, repeated


def size_of_tile(tile: Any) -> int:
    """Bytes of shared memory, a multiple of what swizzles need."""
    size = element_bytes(tile) * math.prod(int(extent) for extent in tile.shape)
    return -(-size // ALIGNMENT) * ALIGNMENT


def _copy(node: Any) -> TileCall | None:
    return read(node.value, node.span) if statement_name(node) == "copy" else None


def _only_through(source: RegionOperand, before: TileCall, body: Any) -> bool:
    """The whole tile is filled by the copy before, read by this one, and used by nothing else."""
    filled = before["target"]
    if filled.buffer != source.buffer or not whole(filled) or not whole(source):
        return False
    return sum(source.buffer in variables(part) for part in parts_of(body)) == 2


def _alone(body: Any, accumulator: Any) -> bool:
    """No statement but products uses the accumulator and another fragment of as many dimensions, which might give it
    another layout.
    """
    for node in parts_of(body):
        used = variables(node)
        if accumulator in used and not is_product(node):
            others = [one for one in used if one != accumulator and _is_fragment(one)]
            if any(len(one.shape) >= len(accumulator.shape) for one in others):
                return False
    return True


def parts_of(node: Any) -> list[Any]:
    """Single statements and loop nests of threads."""
    if isinstance(node, tir.SeqStmt):
        return [part for one in node.seq for part in parts_of(one)]
    if isinstance(node, tir.For) and int(node.kind) != tir.ForKind.PARALLEL:
        return parts_of(node.body)
    if isinstance(node, tir.IfThenElse):
        return [*parts_of(node.then_case), *([] if node.else_case is None else parts_of(node.else_case))]
    if isinstance(node, tir.AttrStmt | tir.While):
        return parts_of(node.body)
    if isinstance(node, tir.AllocBuffer):
        return []
    return [node]


def _is_fragment(variable: Any) -> bool:
    return isinstance(variable.ty, tir.BufferType) and scope(variable) == FRAGMENT
