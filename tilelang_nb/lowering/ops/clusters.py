"""Operations of clusters: the barrier of all their threads, and copies into the shared memory of another block.

copy_to_block: source, target: regions of shared tiles; block: a number in the cluster.  With a barrier, rows of whole
16-byte chunks go by bulk copies, which the barrier of the other block counts; all other elements are stored one by one,
and a barrier then gets its arrival when the stores are there.
"""

from __future__ import annotations

import math
from typing import Any

from tvm import tirx as tir
from tvm.ir import StringImm
from tvm.script.tirx import ptx

from tilelang_nb.language.tile_program import RegionOperand, TileCall

from ..context import LaunchContext
from ..rewrite import as_int32, constant, element_bytes, nothing, sequence

CHUNK = 16  # bytes, of which bulk copies move whole numbers
MOST_ROWS = 64  # that one copy starts a bulk copy for


def lower(call: TileCall, launch: LaunchContext) -> tir.Stmt:
    """Statements of all threads of the block, or of those of `T.ws`."""
    if call.name == "copy_to_block":
        return _Copy(call, launch).statement()
    if math.prod(launch.cluster) == 1:  # a cluster of one block: its own barrier
        return nothing(call.span) if call.name == "cluster_arrive" else _meet(launch, call.span)
    action = "arrive.release" if call.name == "cluster_arrive" else "wait.acquire"
    return tir.Evaluate(ptx[f"barrier.cluster.{action}.aligned"](), call.span)


def _meet(launch: LaunchContext, span: Any) -> tir.Stmt:
    """The threads that execute this wait for each other."""
    if launch.set.group is None:
        return tir.Evaluate(tir.call_intrin("void", "tirx.tvm_storage_sync", StringImm("shared")), span)
    return tir.Evaluate(ptx["bar.sync"](launch.set.group + 1, launch.thread_count), span)


class _Copy:
    def __init__(self, call: TileCall, launch: LaunchContext):
        self.call, self.launch, self.span = call, launch, call.span
        self.source: RegionOperand = call["source"]
        self.target: RegionOperand = call["target"]
        self.barrier = call["barrier"]
        self.block = as_int32(call["block"])
        self.itemsize = element_bytes(self.source.buffer)
        self.extents = [int(extent) for extent in self.source.extent if constant(extent) != 1] or [1]
        self.lead = tir.EQ(launch.thread, 0)

    def statement(self) -> tir.Stmt:
        run = min(self._run(self.source), self._run(self.target))
        rows = math.prod(self.extents) // run
        if self.barrier is not None and rows <= MOST_ROWS and run * self.itemsize % CHUNK == 0:
            return self._in_bulk(rows, run)
        if self.barrier is None:
            return self._by_elements()
        arrive = tir.IfThenElse(self.lead, self._at_barrier("tl_arrive_at_block"), None, self.span)
        return sequence([self._by_elements(), _meet(self.launch, self.span), arrive], self.span)

    def _run(self, region: RegionOperand) -> int:
        """How many elements of a region lie side by side."""
        count = 1
        for extent, size in zip(reversed(region.extent), reversed(region.buffer.shape)):
            count *= int(extent)
            if int(extent) != int(size):
                break
        return count

    def _place(self, region: RegionOperand, element: Any) -> list[Any]:
        """The indices of an element of the region by its number."""
        index, rest = list(region.begin), element
        for dim in reversed(range(len(index))):
            extent = int(region.extent[dim])
            if extent == 1:
                continue
            index[dim] = index[dim] + (tir.floormod(rest, extent) if not isinstance(rest, int) else rest % extent)
            rest = tir.floordiv(rest, extent) if not isinstance(rest, int) else rest // extent
        return index

    def _in_bulk(self, rows: int, run: int) -> tir.Stmt:
        size = math.prod(self.extents) * self.itemsize
        parts: list[Any] = [self._at_barrier("tl_expect_at_block", tir.const(size, "int32"))]
        barrier = tir.address_of(tir.BufferLoad(self.barrier.buffer, list(self.barrier.begin)))
        for row in range(rows):
            ends = [
                tir.address_of(tir.BufferLoad(side.buffer, self._place(side, row * run)))
                for side in (self.target, self.source)
            ]
            copy = tir.call_extern(
                "void", "tl_copy_to_block", *ends, tir.const(run * self.itemsize, "int32"), barrier, self.block
            )
            parts.append(tir.Evaluate(copy, self.span))
        fence = tir.Evaluate(ptx["fence.proxy.async.shared::cta"](), self.span)
        return tir.SeqStmt([fence, tir.IfThenElse(self.lead, sequence(parts, self.span), None, self.span)], self.span)

    def _at_barrier(self, name: str, *operands: Any) -> tir.Stmt:
        barrier = tir.address_of(tir.BufferLoad(self.barrier.buffer, list(self.barrier.begin)))
        return tir.Evaluate(tir.call_extern("void", name, barrier, *operands, self.block), self.span)

    def _by_elements(self) -> tir.Stmt:
        """Every thread stores every so many-th element."""
        total, threads = math.prod(self.extents), self.launch.thread_count
        turn = tir.Var("element", "int32")
        number = turn * threads + self.launch.thread
        value = tir.BufferLoad(self.source.buffer, self._place(self.source, number))
        place = tir.address_of(tir.BufferLoad(self.target.buffer, self._place(self.target, number)))
        store: Any = tir.Evaluate(tir.call_extern("void", "tl_store_at_block", place, value, self.block), self.span)
        if total % threads:
            store = tir.IfThenElse(number < total, store, None, self.span)
        count = tir.const(-(-total // threads), "int32")
        return tir.For(turn, tir.const(0, "int32"), count, tir.ForKind.SERIAL, store, annotations={}, span=self.span)
