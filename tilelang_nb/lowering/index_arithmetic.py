"""Folding of index arithmetic, and of nothing else: float expressions are never touched."""

from __future__ import annotations

from typing import Any

import tvm
import tvm_ffi
from tvm import tirx as tir
from tvm.sym import Analyzer

from .rewrite import Load, dtype_of

_LEAVES = (tir.IntImm, tvm.ir.Var)


def fold(expr: Any, analyzer: Analyzer) -> Any:
    """An integer index, simplified.  Indices that read memory stay as they are, but for the indices of those reads."""
    if isinstance(expr, _LEAVES) or not dtype_of(expr).startswith(("int", "uint")):
        return expr
    if tvm_ffi.structural_walk(expr, ((Load, tvm.ir.Call), tvm_ffi.VisitInterrupt)) is not None:
        return expr
    return analyzer.simplify(expr)


def fold_indices(node: Any, analyzer: Analyzer) -> Any:
    """Fold the indices of all loads and stores of an expression or statement."""

    def load(access: Any) -> Any:
        return tir.BufferLoad(access.source, [fold(index, analyzer) for index in access.indices])

    def store(access: Any) -> Any:
        return tir.BufferStore(
            access.buffer, access.value, [fold(index, analyzer) for index in access.indices], access.span
        )

    return tvm_ffi.structural_map(node, [(Load, load), (tir.BufferStore, store)])
