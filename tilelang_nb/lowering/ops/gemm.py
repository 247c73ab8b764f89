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
from ..gemm.wgmma import OVER_AT_ONCE
from ..shared_memory import MAPPED, TILES

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
        over = launch.facts.get(OVER_AT_ONCE, {}) if call["asynchronous"] is None else {}
        groups = replace(groups, reason=over.get(call["c"].buffer, ""))
        launch.facts.setdefault("products", []).append((call.span, groups, wgmma.groups(groups)))
        launch.facts.setdefault(wgmma.OPERANDS, []).append((call, groups))
        return wgmma.lower(call, launch, groups)
    engine = choose(call, launch)
    for name in "ab":
        tile = launch.facts.get(TILES, {}).get(call[name].buffer)
        if tile is not None and tile.swizzled:
            launch.facts.setdefault(MAPPED, set()).add(call[name].buffer)
    refused = launch.facts.get(wgmma.REFUSED, {}).get(call["c"].buffer, "")
    if not refused and call["asynchronous"] is not None and launch.arch != WARP_GROUPS:
        refused = f"warp groups multiply on {WARP_GROUPS}, and the kernel is for {launch.arch}"
    if refused and call["asynchronous"] is not None:
        refused = f"`T.wgmma_gemm`: {refused}"
    if engine.instruction is not None and refused:
        engine = replace(engine, reason=refused)
    warps = "" if engine.instruction is None else mma.warps(call, launch, engine.instruction)
    launch.facts.setdefault("products", []).append((call.span, engine, warps))
    if engine.instruction is None:
        return simt.lower(call, launch)
    return mma.lower(call, launch, engine.instruction)
