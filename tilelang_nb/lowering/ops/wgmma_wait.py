"""What stands around products that run on.

wait_wgmma: all but the last products that T.wgmma_gemm started are finished; nothing where none runs on.
pack_operand: source, a fragment of 16-bit elements; packed, a per-thread array from which products take it.
"""

from __future__ import annotations

from tvm import tirx as tir

from tilelang_nb.language.tile_program import TileCall

from ..context import LaunchContext
from ..gemm import wgmma


def lower(call: TileCall, launch: LaunchContext) -> tir.Stmt:
    """wgmma.wait_group, executed by whole warp groups."""
    return wgmma.pack(call, launch) if call.name == "pack_operand" else wgmma.wait(call, launch)
