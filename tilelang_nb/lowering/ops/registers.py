"""T.set_max_nreg: registers of each thread of a warp group, from then on."""

from __future__ import annotations

from tvm import tirx as tir
from tvm.script.tirx import ptx

from tilelang_nb.language.tile_program import TileCall

from ..context import LaunchContext, ThreadSet
from ..rewrite import nothing


def divides_registers(launch: LaunchContext, threads: ThreadSet | None = None) -> bool:
    """Whether registers are divided where these threads (those of now) say so: in `T.ws`, on sm_90a."""
    return launch.arch == "sm_90a" and (threads or launch.set).group is not None


def lower(call: TileCall, launch: LaunchContext) -> tir.Stmt:
    """setmaxnreg, executed by whole warp groups; nothing where they are not divided."""
    if not divides_registers(launch):
        return nothing(call.span)
    action = "inc" if call.boolean("increase") else "dec"
    return tir.Evaluate(ptx[f"setmaxnreg.{action}.sync.aligned.u32"](call.integer("count")), call.span)
