"""T.device_assert: the launch stops where the condition is false in an executing thread."""

from __future__ import annotations

from tvm import tirx as tir
from tvm.ir import StringImm

from tilelang_nb.language.tile_program import TileCall

from ..context import LaunchContext


def lower(call: TileCall, launch: LaunchContext) -> tir.Stmt:
    """condition: a bool expression of the thread; message: text."""
    message = StringImm(call["message"] or "")
    return tir.Evaluate(tir.call_extern("void", "tl_device_assert", call["condition"], message), call.span)
