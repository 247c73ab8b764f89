"""T.use_swizzle, which changes no result: recorded in `launch.facts`."""

from __future__ import annotations

from tvm import tirx as tir

from tilelang_nb.language.tile_program import TileCall

from ..context import LaunchContext
from ..rewrite import nothing


def lower(call: TileCall, launch: LaunchContext) -> tir.Stmt:
    """Records the hint."""
    launch.facts["swizzle"] = (call.integer("panel_size"), call["order"], call.boolean("enable"))
    return nothing(call.span)
