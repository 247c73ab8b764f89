"""T.set_max_nreg: registers of each thread of a warp group, from then on."""

from __future__ import annotations

from tvm import tirx as tir
from tvm.script.tirx import ptx

from tilelang_nb.language.tile_program import TileCall

from ..context import LaunchContext


def lower(call: TileCall, launch: LaunchContext) -> tir.Stmt:
    """setmaxnreg, executed by whole warp groups."""
    action = "inc" if call.boolean("increase") else "dec"
    return tir.Evaluate(ptx[f"setmaxnreg.{action}.sync.aligned.u32"](call.integer("count")), call.span)
