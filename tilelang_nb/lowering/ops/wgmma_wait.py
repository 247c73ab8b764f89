"""What stands around products that run on.

wait_wgmma: all but the last products that T.wgmma_gemm started are finished; nothing where none runs on.
written_accumulator: what was stored into an accumulator is in its registers before a product starts.
pack_operand: source, a fragment of 16-bit elements; packed, a per-thread array from which products take it.
"""

from __future__ import annotations

from tvm import tirx as tir

from tilelang_nb.language.tile_program import TileCall

from ..context import LaunchContext
from ..gemm import wgmma


def lower(call: TileCall, launch: LaunchContext) -> tir.Stmt:
    """wgmma.wait_group, executed by whole warp groups."""
    return _LOWERINGS[call.name](call, launch)


_LOWERINGS = {"wait_wgmma": wgmma.wait, "written_accumulator": wgmma.written, "pack_operand": wgmma.pack}
