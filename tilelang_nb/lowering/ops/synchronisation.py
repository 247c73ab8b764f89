"""Barriers that the user wrote: T.sync_threads, T.named_barrier_arrive, T.sync_warp, T.sync_grid."""

from __future__ import annotations

from typing import Any

from tvm import tirx as tir
from tvm.ir import StringImm
from tvm.script.tirx import ptx

from tilelang_nb.language.tile_program import TileCall

from ..context import LaunchContext
from ..rewrite import dtype_of


def lower(call: TileCall, launch: LaunchContext) -> tir.Stmt:
    """sync_threads: of the block, or a named barrier of some of its warps."""
    if call.name == "sync_grid":
        return tir.Evaluate(tir.call_intrin("void", "tirx.tvm_storage_sync", StringImm("global")), call.span)
    if call.name == "sync_warp":
        mask = call["mask"]
        if mask is None:
            mask = tir.const(0xFFFFFFFF, "uint32")
        return tir.Evaluate(tir.call_extern("void", "__syncwarp", _unsigned(mask)), call.span)
    if call.name == "named_arrive":
        numbers = [tir.const(call.integer(name), "uint32") for name in ("barrier_id", "arrive_count")]
        return tir.Evaluate(ptx["bar.arrive"](*numbers), call.span)
    if call["barrier_id"] is None:
        return tir.Evaluate(tir.call_intrin("void", "tirx.tvm_storage_sync", StringImm("shared")), call.span)
    count = call["arrive_count"]
    threads = launch.thread_count if count is None else int(count)
    return tir.Evaluate(ptx["bar.sync"](int(call["barrier_id"]), threads), call.span)


def _unsigned(value: Any) -> Any:
    if isinstance(value, tir.IntImm):
        return tir.const(int(value.value) & 0xFFFFFFFF, "uint32")
    return value if dtype_of(value) == "uint32" else tir.Cast("uint32", value)
