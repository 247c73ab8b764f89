"""Groups of asynchronous copies: T.ptx_commit_group, T.ptx_wait_group; T.fence_proxy_async before bulk copies.

An architecture without asynchronous copies has made them when the next statement runs: nothing is left to wait for.
"""

from __future__ import annotations

from tvm import tirx as tir
from tvm.script.tirx import ptx

from tilelang_nb.language.tile_program import TileCall

from ..architecture import capability
from ..context import LaunchContext
from ..plan_pipelines import FIRST
from ..rewrite import nothing

BULK = 90  # the architecture that has bulk copies


def lower(call: TileCall, launch: LaunchContext) -> tir.Stmt:
    """cp.async.commit_group; cp.async.wait_group with the number of groups that may still be under way."""
    if call.name == "fence_proxy_async":
        if capability(launch.arch) < BULK:
            return nothing(call.span)
        return tir.Evaluate(ptx["fence.proxy.async.shared::cta"](), call.span)
    if capability(launch.arch) < FIRST:
        return nothing(call.span)
    if call.name == "commit_group":
        return tir.Evaluate(ptx.cp.async_.commit_group(), call.span)
    return tir.Evaluate(ptx.cp.async_.wait_group(call.integer("pending")), call.span)
