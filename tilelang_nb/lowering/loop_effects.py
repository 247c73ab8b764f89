"""What a statement of a pipelined loop does with memory: what keeps a copy from running ahead of it."""

from __future__ import annotations

from typing import Any

import tvm
import tvm_ffi
from tvm import tirx as tir

from tilelang_nb.language.tile_effects import WRITTEN
from tilelang_nb.language.tile_program import RegionOperand, TileCall, operation_name, read

from .rewrite import Load, variables
from .views import root

# Operations that take a tile with a leading dimension of 1 as they take the tile.
READERS = {
    "gemm": ("a", "b"),
    "copy": ("source",),
    "async_copy": ("source",),
    "cp_async": ("source",),
    "transpose": ("source",),
}


class Effects:
    """Of one statement, with all that is inside it.

    reads: buffers that plain loads or operations that take any version of a tile read.  writes: owners of what may be
    written, variables of this turn included.  other: buffers that are used in another way.  orders: what other blocks
    wrote may be known after it only, or they may write after it: an atomic operation with an order, or one that asks
    for what others store.
    """

    def __init__(self, node: Any, sources: dict[Any, Any]):
        self.reads: set[Any] = set()
        self.writes: set[Any] = set()
        self.other: set[Any] = set()
        self.orders = False
        self.sources = sources
        tvm_ffi.structural_walk(
            node,
            [
                (tvm.ir.Call, self._call),
                (Load, lambda load: self.reads.add(load.source)),
                (tir.BufferStore, lambda store: self._write(store.buffer)),
                (tir.DeclBuffer, lambda view: self.other.add(root(view.buffer, sources))),
                (tir.AllocBuffer, lambda made: self.other.add(made.buffer)),
            ],
            order="pre",
        )

    def _write(self, buffer: Any) -> None:
        self.writes.add(root(buffer, self.sources))

    def _call(self, call: Any) -> Any:
        name = operation_name(call)
        if name == "region":
            return None
        if name is not None:
            return self._operation(read(call))
        if getattr(call.op, "name", "") in ("tirx.address_of", "tirx.tvm_access_ptr", "tirx.buffer_data"):
            for var in variables(call):
                self.other.add(var)
                self._write(var)
        return None

    def _operation(self, call: TileCall) -> Any:
        self.orders = self.orders or orders_blocks(call)
        written = WRITTEN.get(call.name, ())
        known = READERS.get(call.name, ())
        for field, value in call.operands.items():
            if isinstance(value, RegionOperand):
                for index in (*value.begin, *value.extent):
                    self._expression(index)
                if field in known:
                    self.reads.add(value.buffer)
                elif field in written or call.name not in WRITTEN:
                    self._write(value.buffer)
                    if call.name != "copy":
                        self.other.add(value.buffer)
                else:
                    self.other.add(value.buffer)
            elif value is not None and not isinstance(value, str):
                self._expression(value)
        return tvm_ffi.WalkResult.SKIP

    def _expression(self, expr: Any) -> None:
        tvm_ffi.structural_walk(
            expr, [(tvm.ir.Call, self._call), (Load, lambda load: self.reads.add(load.source))], order="pre"
        )


def orders_blocks(call: TileCall) -> bool:
    """Does an operation give accesses before and after it an order that other blocks rely on?

    A load that is atomic is asked for what others store, whatever its order; a fence orders what is not.
    """
    if call.name in ("atomic_load", "thread_fence"):
        return True
    return call.name.startswith("atomic_") and call.operands.get("memory_order") not in (None, "relaxed")
