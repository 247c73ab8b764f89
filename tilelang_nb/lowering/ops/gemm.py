"""T.gemm: C += op(A) @ op(B). A, B: regions of shared tiles; C: a whole fragment. The engine is chosen here."""

from __future__ import annotations

from tvm import tirx as tir

from tilelang_nb.language.tile_program import TileCall

from ..context import Inference, LaunchContext
from ..gemm import simt


def constrain(call: TileCall, inference: Inference) -> None:
    """The accumulator has the layout that the engine wants; one settled by an earlier product stays."""
    simt.constrain(call, inference)


def lower(call: TileCall, launch: LaunchContext) -> tir.Stmt:
    """Statements of one thread."""
    return simt.lower(call, launch)
