"""Operations that change no result: T.use_swizzle and T.annotate_layout.

What the hints say is recorded in `launch.facts`.
"""

from __future__ import annotations

from tvm import tirx as tir

from tilelang_nb.language.tile_program import TileCall

from ..context import LaunchContext
from ..rewrite import nothing


def lower(call: TileCall, launch: LaunchContext) -> tir.Stmt:
    """Records the hint."""
    if call.name == "use_swizzle":
        launch.facts["swizzle"] = (call.integer("panel_size"), call["order"], call.boolean("enable"))
    elif call.name == "annotate_layout":
        launch.facts.setdefault("annotated layouts", {})[call["buffer"].buffer] = call["layout"]
    return nothing(call.span)
