"""mbarriers: initialised once by one thread, every executing thread arrives and waits for itself."""

from __future__ import annotations

from typing import Any

from tvm import tirx as tir
from tvm.script.tirx import cuda, ptx

from tilelang_nb.language.tile_program import TileCall

from ..context import LaunchContext
from ..rewrite import as_int32, dtype_of

ACROSS = "barriers across blocks"  # the fact: barriers that other blocks arrive at
BY_HAND = "bulk copies by hand"  # the fact: the text has bulk copies, and barriers that count their bytes


def lower(call: TileCall, launch: LaunchContext) -> tir.Stmt:
    """barrier: a region of one element of "shared.barrier" memory."""
    if call.name == "fence_barrier_init":
        fence = tir.Evaluate(ptx["fence.mbarrier_init.release.cluster"](), call.span)
        return tir.IfThenElse(tir.EQ(launch.block_thread, tir.const(0, "int32")), fence, None, call.span)
    barrier = call["barrier"]
    address = tir.address_of(tir.BufferLoad(barrier.buffer, list(barrier.begin)))
    if call.name == "barrier_init":
        start = tir.Evaluate(ptx["mbarrier.init.shared.b64"](address, _unsigned(call["arrive_count"])), call.span)
        if BY_HAND in launch.facts or launch.cluster != (1, 1, 1):
            start = tir.SeqStmt([start, tir.Evaluate(ptx["fence.mbarrier_init.release.cluster"](), call.span)])
        return tir.IfThenElse(tir.EQ(launch.block_thread, tir.const(0, "int32")), start, None, call.span)
    if call.name == "barrier_arrive" and call["block"] is not None:
        arrive = tir.call_extern("void", "tl_arrive_at_block", address, as_int32(call["block"]))
        return tir.Evaluate(arrive, call.span)
    if call.name == "barrier_arrive":
        return tir.Evaluate(ptx["mbarrier.arrive.shared::cta.b64"](address), call.span)
    if call.name == "copies_arrive":
        return tir.Evaluate(ptx["cp.async.mbarrier.arrive.noinc.shared.b64"](address), call.span)
    if call.name == "barrier_expect_tx":
        expect = ptx["mbarrier.expect_tx.relaxed.cta.shared::cta.b64"]
        return tir.Evaluate(expect(address, _unsigned(call["bytes"])), call.span)
    if barrier.buffer in launch.facts.get(ACROSS, ()):  # what other blocks of the cluster wrote is visible then
        return tir.Evaluate(cuda.mbarrier_wait_acquire_cluster(address, call["parity"]), call.span)
    return tir.Evaluate(cuda.mbarrier_wait(address, call["parity"]), call.span)


def _unsigned(value: Any) -> Any:
    if isinstance(value, tir.IntImm):
        return tir.const(int(value.value), "uint32")
    return value if dtype_of(value) == "uint32" else tir.Cast("uint32", value)
