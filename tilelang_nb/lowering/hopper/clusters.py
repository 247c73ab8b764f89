"""Launches in clusters: what their texts leave to the compiler.

A block may touch the shared memory of another one only after that has begun and started its barriers, and before it
ends.  So a launch whose blocks reach each other begins, behind the start of its barriers, and ends with a barrier of
the cluster.  `T.copy_cluster` of a mask becomes a bulk copy with a barrier and the parity of its own, between a barrier
of the cluster, after which nobody reads the tiles any more, and the wait for the bytes.
"""

from __future__ import annotations

import math
from typing import Any

import tvm_ffi
from tvm import tirx as tir

from tilelang_nb.language.tile_program import TileCall, operation_name, read, statement_name
from tilelang_nb.source import catalogue as say

from ..architecture import capability
from ..context import LaunchContext, ThreadSet
from ..launches import THREAD_EXTENT
from ..nests import WARP_GROUPS, threads_of_part
from ..ops.mbarriers import ACROSS
from ..rewrite import map_children, sequence, statements, with_body
from ..shared_memory import MBARRIER
from .persistent import BLOCKS
from .tile_statements import element, encoded, evaluate

FIRST = 90  # the architecture that has clusters
RAW = "raw tiles"  # the fact: shared tiles that bulk copies between blocks move byte by byte


def prepare_clusters(function: Any, launch: LaunchContext) -> Any:
    """The launch with such barriers and copies; TL302 where the architecture has no clusters."""
    if math.prod(launch.cluster) == 1:
        return function
    if capability(launch.arch) < FIRST:
        problem = f"clusters of blocks need sm_{FIRST}, and the kernel is for {launch.arch}"
        message = say.TargetUnavailable(problem=problem, remedy="launch with `T.Kernel`, without `cluster_dims`")
        launch.report(message, function.body.span)
        return function
    launch.options = {**launch.options, BLOCKS: 0}  # blocks that stay would leave their clusters
    found = _Reaching(launch)
    body = found.statement(function.body, launch.set)
    launch.facts[RAW], launch.facts[ACROSS] = found.tiles, found.barriers
    return function.with_body(_guarded(body, found.begin)) if found.reaches else function


class _Reaching:
    """reaches: does a block touch another one's memory?  tiles, barriers: that are touched.  begin: what the copies of
    a mask need at the start.
    """

    def __init__(self, launch: LaunchContext):
        self.launch = launch
        self.reaches = False
        self.tiles: set[Any] = set()
        self.barriers: set[Any] = set()
        self.begin: list[Any] = []

    def statement(self, node: Any, threads: ThreadSet) -> Any:
        if isinstance(node, tir.AttrStmt) and node.attr_key == WARP_GROUPS:
            threads = threads_of_part(node, self.launch) or threads
        name = statement_name(node)
        if name in ("barrier_arrive", "tma_copy", "copy_to_block", "copy_to_blocks"):
            call = read(node.value, node.span)
            if name == "copy_to_blocks":
                self.reaches = True
                return self._copied(call, threads)
            if name == "copy_to_block":
                self.tiles |= {call["source"].buffer, call["target"].buffer}
            reaching = name == "copy_to_block" or _reaches(call)
            self.reaches |= reaching
            if reaching and name != "tma_copy" and call["barrier"] is not None:
                self.barriers.add(call["barrier"].buffer)
        return map_children(node, lambda child: self.statement(child, threads))

    def _copied(self, call: Any, threads: ThreadSet) -> Any:
        """Nobody reads the tiles any more; the copy; everybody waits for it."""
        span, zero = call.span, tir.const(0, "int32")
        barrier = tir.decl_buffer((1,), "uint64", self.launch.fresh("arrived"), scope=MBARRIER, layout=None)
        phase = tir.decl_buffer((1,), "int32", self.launch.fresh("phase"), scope="local.var", layout=None)
        here = element(barrier, zero)
        self.begin += [
            tir.AllocBuffer(barrier, None, span),
            evaluate("barrier_init", span, here, threads.count),
            tir.AllocBuffer(phase, None, span),
            tir.BufferStore(phase, zero, [zero], span),
        ]
        sides = encoded(call["source"]), encoded(call["target"])
        now = tir.BufferLoad(phase, [zero])
        return tir.SeqStmt(
            [
                evaluate("cluster_arrive", span),
                evaluate("cluster_wait", span),
                evaluate("tma_copy", span, *sides, here, None, call["mask"]),
                evaluate("barrier_arrive", span, here),
                evaluate("barrier_wait", span, here, now),
                tir.BufferStore(phase, 1 - now, [zero], span),
            ],
            span,
        )


def _guarded(node: Any, begin: list[Any]) -> Any:
    """The launch between two barriers of the cluster, the first one behind the start of the barriers."""
    if isinstance(node, tir.AttrStmt) and node.attr_key == THREAD_EXTENT:
        return with_body(node, _guarded(node.body, begin))
    parts = statements(node)
    starts = [at + 1 for at, one in enumerate(parts) if statement_name(one) == "barrier_init"]
    meeting = next((at for at, one in enumerate(parts) if _meets(one)), len(parts))
    first = max((at for at in starts if at <= meeting), default=0)
    span = node.span or parts[0].span
    meet = [evaluate(name, span) for name in ("cluster_arrive", "cluster_wait")]
    again = [evaluate(name, parts[-1].span) for name in ("cluster_arrive", "cluster_wait")]
    return sequence([*parts[:first], *begin, *meet, *parts[first:], *again], span)


def _meets(node: Any) -> bool:
    """Does a statement concern other blocks?"""
    found: list[Any] = []

    def look(one: Any) -> None:
        name = operation_name(one.value)
        reaching = name in ("barrier_arrive", "tma_copy") and _reaches(read(one.value))
        if reaching or name in ("cluster_arrive", "cluster_wait", "copy_to_block", "copy_to_blocks"):
            found.append(one)

    tvm_ffi.structural_walk(node, (tir.Evaluate, look))
    return bool(found)


def _reaches(call: TileCall) -> bool:
    return call["block" if call.name == "barrier_arrive" else "mask"] is not None
