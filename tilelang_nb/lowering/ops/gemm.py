"""T.gemm: C += op(A) @ op(B). A, B: regions of shared tiles (or whole fragments for tensor cores); C: a whole fragment.

The engine is chosen in `gemm/engine.py`; what it was and why is in `launch.facts["products"]`.
"""

from __future__ import annotations

from dataclasses import replace

from tvm import tirx as tir

from tilelang_nb.language.tile_program import TileCall

from ..context import Inference, LaunchContext
from ..gemm import mma, simt, wgmma
from ..gemm.engine import choose
from ..hopper.tensor_tiles import misfit
from ..rewrite import scope
from ..shared_memory import MAPPED, TILES
from .mbarriers import BY_HAND

WARP_GROUPS = "sm_90a"  # the architecture that has them


def constrain(call: TileCall, inference: Inference) -> None:
    """The accumulator has the layout that the engine wants."""
    groups = wgmma.engine_of(call, inference.launch, inference.threads)
    if groups is not None:
        wgmma.constrain(call, inference, groups)
        return
    engine = choose(call, inference.launch)
    if engine.instruction is None:
        simt.constrain(call, inference)
    else:
        mma.constrain(call, inference, engine.instruction)


def lower(call: TileCall, launch: LaunchContext) -> tir.Stmt:
    """Statements of one thread."""
    groups = wgmma.engine_of(call, launch, launch.thread_count)
    if groups is not None:
        launch.facts.setdefault("products", []).append((call.span, groups, wgmma.groups(groups)))
        launch.facts.setdefault(wgmma.OPERANDS, []).append((call, groups))
        return wgmma.lower(call, launch, groups)
    engine = choose(call, launch)
    for name in "ab":
        tile = launch.facts.get(TILES, {}).get(call[name].buffer)
        if tile is not None and tile.swizzled:
            launch.facts.setdefault(MAPPED, set()).add(call[name].buffer)
    refused = launch.facts.get(wgmma.REFUSED, {}).get(call["c"].buffer, "")
    if not refused and call["asynchronous"] is not None:
        refused = _not_by_warp_groups(call, launch)
    if engine.instruction is not None and refused:
        engine = replace(engine, reason=refused)
    warps = "" if engine.instruction is None else mma.warps(call, launch, engine.instruction)
    launch.facts.setdefault("products", []).append((call.span, engine, warps))
    if engine.instruction is None:
        return simt.lower(call, launch)
    return mma.lower(call, launch, engine.instruction)


def _not_by_warp_groups(call: TileCall, launch: LaunchContext) -> str:
    """Why `T.wgmma_gemm` is none of warp groups."""
    if launch.arch != WARP_GROUPS:
        return f"`T.wgmma_gemm`: warp groups multiply on {WARP_GROUPS}, and the kernel is for {launch.arch}"
    if BY_HAND in launch.facts:
        return f"`T.wgmma_gemm`: {_not_bulk(call, launch)}"
    return "`T.wgmma_gemm`: the options of the compilation do not ask for products of warp groups"


def _not_bulk(call: TileCall, launch: LaunchContext) -> str:
    """Why wgmma does not take the operands of a product, in a text that copies in bulk."""
    tiles = launch.facts.get(TILES, {})
    for name in "ab":
        buffer = call[name].buffer
        if not scope(buffer).startswith("shared"):
            return f"beside `T.tma_copy` it takes tiles in shared memory, and `{buffer.name}` is a fragment"
        if buffer not in tiles:
            return f"beside `T.tma_copy` wgmma takes tiles that only such copies fill, and threads fill `{buffer.name}`"
        if not tiles[buffer].swizzled and misfit(buffer):
            return misfit(buffer)
    names = " or ".join(f"`{call[name].buffer.name}`" for name in "ab")
    return f"other statements than bulk copies and products use {names}, or wgmma does not take this product"
