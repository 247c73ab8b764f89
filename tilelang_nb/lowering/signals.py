"""Calls by which threads of a block wait for each other, warps signal each other, and blocks of a cluster do."""

from __future__ import annotations

from collections.abc import Set
from typing import Any

import tvm
import tvm_ffi

WARP_SIGNALS = (
    "tirx.cuda.mbarrier_wait",
    "tirx.cuda.mbarrier_wait_acquire_cluster",
    "tirx.ptx.bar_arrive",
)
CLUSTER_BARRIER = "tirx.ptx.barrier_cluster_wait"
TURNS = "barriers of turns"  # the fact: names of barriers that order the turns of loops that all threads run
SIGNALS = (*WARP_SIGNALS, CLUSTER_BARRIER)  # threads, or blocks of a cluster, are not in step


def is_at(call: Any, names: Set[str]) -> bool:
    """Does a call wait at a barrier of one of these names?"""
    if not names:
        return False
    found: list[str] = []
    tvm_ffi.structural_walk(call.args[0], (tvm.ir.TensorLoad, lambda load: found.append(load.source.name)))
    return not names.isdisjoint(found)


def is_barrier(expr: Any, threads: int, count: int) -> bool:
    """The expression makes all threads wait for each other: the `count` ones of `T.ws`, or with 0 all of the block."""
    if type(expr) is not tvm.ir.Call:
        return False
    name = expr.op.name
    if name == "tirx.call_extern":
        return str(expr.args[0].value).startswith("__syncthreads")
    if name == CLUSTER_BARRIER:
        return not count
    return name == "tirx.tvm_storage_sync" or (
        name == "tirx.ptx.bar_sync_count" and int(expr.args[1]) == (count or threads)
    )


def signals(body: Any, turns: Set[str] = frozenset()) -> bool:
    """Do warps signal each other, other than at the barriers of these names?"""
    found: list[Any] = []

    def visit(call: Any) -> None:
        if getattr(call.op, "name", "") in WARP_SIGNALS and not is_at(call, turns):
            found.append(call)

    tvm_ffi.structural_walk(body, (tvm.ir.Call, visit))
    return bool(found)
