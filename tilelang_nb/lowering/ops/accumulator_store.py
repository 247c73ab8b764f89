"""Accumulators of warp groups to global memory: through shared memory, by bulk copies.

source: a whole fragment in the layout of `layout/wgmma.py`.  target: a region of a global array of a type in `STORED`
for the fragment's.  staging: boxes of 64 rows of 128 bytes, `slots` for each warp group.  Every warp group stores the
elements of a box into a swizzled one, those of 16 bits as matrices, and one of its threads copies the box to global
memory; elements over the edge of the array are left out.  Between the stores and the copy stand a fence, so that the
copy sees them, and a barrier of the warp group.  wait_boxes: the boxes have been read, as they must before the block
ends.
"""

from __future__ import annotations

from typing import Any

import tvm
from tvm import tirx as tir
from tvm.script.tirx import ptx

from tilelang_nb.language.tile_program import RegionOperand, TileCall
from tilelang_nb.layout.wgmma import GROUP, ROWS, GroupGrid, group_accumulator

from ..context import LaunchContext
from ..gemm.packing import packed
from ..hopper.tensor_maps import MOVED, Moved
from ..hopper.tensor_tiles import TensorTile
from ..index_arithmetic import fold
from ..rewrite import dtype_of, sequence
from .all_reduce import unrolled
from .tensor_copies import store_box, tensor_map

ROW = 128  # bytes of a row of a box
FIRST_BARRIER = 8  # barriers with lower numbers are those of `T.ws`
PACKING = {"float16": "cvt.rn.f16x2.f32", "bfloat16": "cvt.rn.bf16x2.f32"}
# Types of accumulators -> those in which they are stored.
STORED = {"float32": {"float16", "bfloat16", "float32"}, "float16": {"float16"}, "int32": {"int32", "float32"}}
_MATRICES = "stmatrix.sync.aligned.m8n8.x4.shared.b16"


def box_of(dtype: str) -> TensorTile:
    """A box of elements of a type in `STORED`."""
    itemsize = tvm.DataType(dtype).bits // 8
    return TensorTile(ROWS, ROW // itemsize, itemsize, ROW)


def lower(call: TileCall, launch: LaunchContext) -> tir.Stmt:
    """Statements of one thread."""
    if call.name == "wait_boxes":
        lead = tir.EQ(launch.thread % GROUP, 0)
        return tir.IfThenElse(lead, tir.Evaluate(ptx["cp.async.bulk.wait_group.read"](0)), None, call.span)
    return _Store(call, launch).statement()


class _Store:
    def __init__(self, call: TileCall, launch: LaunchContext):
        self.call, self.launch = call, launch
        source = call["source"].buffer
        rows, columns = (int(extent) for extent in source.ty.shape[-2:])
        self.grid = GroupGrid(call.integer("down"), call.integer("across"))
        assert launch.layouts[source] == group_accumulator((rows, columns), self.grid), "accumulators were moved"
        self.registers = launch.registers[source]
        self.rows, self.columns = rows // self.grid.down, columns // self.grid.across  # of a warp group
        self.slots = int(call["staging"].buffer.ty.shape[0]) // (self.grid.down * self.grid.across)
        self.stored, self.held = dtype_of(call["target"].buffer), dtype_of(source)
        self.tile = box_of(self.stored)
        self.packed = launch.local(4, "uint32", "packed") if self.tile.itemsize == 2 else None
        thread = launch.thread
        self.group, self.lane = fold(thread // GROUP, launch.analyzer), thread % 32
        self.warp, self.lead = thread % GROUP // 32, tir.EQ(thread % GROUP, 0)

    def statement(self) -> tir.Stmt:
        boxes = self.rows // ROWS * (self.columns // self.tile.columns)
        local = [] if self.packed is None else [tir.AllocBuffer(self.packed)]
        return sequence([*local, unrolled("box", boxes, self._box)], self.call.span)

    def _box(self, box: Any) -> tir.Stmt:
        wide = self.columns // self.tile.columns
        slab, strip = box // wide, box % wide
        slot = self.group * self.slots + box % self.slots
        parts: list[Any] = []
        if self.call.boolean("reused"):  # the copy that last read this box must be over
            waiting = tir.Evaluate(ptx["cp.async.bulk.wait_group.read"](self.slots - 1))
            parts += [tir.IfThenElse(self.lead, waiting, None), self._meet()]
        parts += [
            unrolled("q", self.tile.columns // 16, lambda q: self._matrices(box, slot, q))
            if self.packed is not None
            else unrolled("j", self.tile.columns // 8, lambda j: self._pairs(box, slot, j)),
            tir.Evaluate(ptx["fence.proxy.async.shared::cta"]()),
            self._meet(),
            tir.IfThenElse(self.lead, self._copy(slab, strip, slot), None),
        ]
        return sequence(parts)

    def _matrices(self, box: Any, slot: Any, q: Any) -> tir.Stmt:
        """16 rows and 16 columns of every warp: four matrices of 8 by 8."""
        first = box * (self.tile.columns // 2) + q * 8
        parts: list[Any] = []
        for j in range(4):
            low, high = (tir.BufferLoad(self.registers, [first + 2 * j + p]) for p in (0, 1))
            word = tir.BufferLoad(self.packed, [j])
            if self.held == self.stored:
                parts.append(tir.BufferStore(self.packed, packed([low, high]), [j]))
            else:
                parts.append(tir.Evaluate(ptx[PACKING[self.stored]](word, high, low)))
        row = self.warp * 16 + self.lane % 16
        chunk = tir.bitwise_xor(q * 2 + self.lane // 16, self.lane % 8)
        place = tir.address_of(tir.BufferLoad(self.call["staging"].buffer, [slot, row, chunk * 8]))
        words = [tir.BufferLoad(self.packed, [j]) for j in range(4)]
        return sequence([*parts, tir.Evaluate(ptx[_MATRICES](place, *words))])

    def _pairs(self, box: Any, slot: Any, j: Any) -> tir.Stmt:
        """16 rows and 8 columns of every warp: a thread has two neighbours of two rows."""
        parts: list[Any] = []
        for half in range(2):
            row = self.warp * 16 + self.lane // 4 + half * 8
            chunk = tir.bitwise_xor(j * 2 + self.lane % 4 // 2, self.lane // 4)
            which = tir.Var("pair", "int32")
            first = box * (self.tile.columns // 2) + j * 4 + half * 2
            value = tir.BufferLoad(self.registers, [first + which])
            value = value if self.held == self.stored else tir.Cast(self.stored, value)
            place = [slot, row, chunk * 4 + self.lane % 2 * 2 + which]
            store = tir.BufferStore(self.call["staging"].buffer, value, place)
            parts.append(tir.For(which, 0, 2, tir.ForKind.VECTORIZED, store))
        return sequence(parts)

    def _copy(self, slab: Any, strip: Any, slot: Any) -> tir.Stmt:
        target: RegionOperand = self.call["target"]
        down, across = self.group % self.grid.down, self.group // self.grid.down % self.grid.across
        row, column = down * self.rows + slab * ROWS, across * self.columns + strip * self.tile.columns
        dims = _matrix_dims(target)
        moved, sides = dict(zip(dims, (row, column))), dict(zip(dims, (ROWS, self.tile.columns)))
        begin = tuple(index + moved[dim] if dim in moved else index for dim, index in enumerate(target.begin))
        extent = tuple(sides.get(dim, 1) for dim in range(len(begin)))
        tensor = tensor_map(RegionOperand(target.buffer, begin, extent), self.tile, self.launch)
        start = tir.BufferLoad(self.call["staging"].buffer, [slot, 0, 0])
        commit = tir.Evaluate(ptx["cp.async.bulk.commit_group"]())
        boxes = self.rows // ROWS * (self.columns // self.tile.columns) * self.grid.down * self.grid.across
        stores = Moved(self.call.span, self.call["staging"].buffer, tensor, boxes, False)
        self.launch.facts.setdefault(MOVED, []).append(stores)
        return sequence([store_box(tensor, begin, start, self.call.span), commit])

    def _meet(self) -> tir.Stmt:
        """The threads of the warp group wait for each other."""
        number = tir.Cast("uint32", self.group + FIRST_BARRIER)
        return tir.Evaluate(ptx["bar.sync"](number, tir.const(GROUP, "uint32")))


def _matrix_dims(region: RegionOperand) -> tuple[int, int]:
    """The two dimensions of a region that have more than one element."""
    first, second = (dim for dim, extent in enumerate(region.extent) if int(extent) != 1)
    return first, second
