"""Folding of index arithmetic, and of nothing else: float expressions are never touched."""

from __future__ import annotations

from typing import Any

import tvm
import tvm_ffi
from tvm import tirx as tir
from tvm.sym import Analyzer

from tilelang_nb.language.expression_size import BINARY, LEAVES

from .rewrite import Load, dtype_of, elements, has, loads, manageable

_LEAVES = frozenset([tir.IntImm, tvm.ir.Var])


def fold(expr: Any, analyzer: Analyzer) -> Any:
    """An integer index, simplified.  Indices that read memory stay as they are, but for the indices of those reads."""
    if type(expr) in _LEAVES or not dtype_of(expr).startswith(("int", "uint")):
        return expr
    if isinstance(expr, tir.Cast):
        # Left where it stands: the simplifier would move it inwards, and all arithmetic would be done in the wide type.
        inner = fold(expr.value, analyzer)
        return expr if inner.same_as(expr.value) else tir.Cast(dtype_of(expr), inner)
    return analyzer.simplify(expr) if manageable(expr) and not _is_opaque(expr) else expr


def _is_opaque(expr: Any) -> bool:
    """Are there reads, calls or casts?  Plain arithmetic is looked through here: starting a structural walk costs more
    than that.
    """
    kind = type(expr)
    if kind in LEAVES:
        return False
    if kind in BINARY:
        return _is_opaque(expr.a) or _is_opaque(expr.b)
    return has(expr, (Load, tvm.ir.Call, tir.Cast))


def _folded(indices: Any, analyzer: Analyzer) -> list[Any] | None:
    """The indices folded; None where nothing changes."""
    before = elements(indices)
    after = [fold(index, analyzer) for index in before]
    return None if all(a is b or a.same_as(b) for a, b in zip(after, before)) else after


def _is_plain(store: Any) -> bool:
    """All indices are numbers and variables: the usual thing in code that a compile-time loop wrote out."""
    return all(type(index) in _LEAVES for access in (store, *loads(store.value)) for index in elements(access.indices))


def fold_indices(node: Any, analyzer: Analyzer) -> Any:
    """Fold the indices of all loads and stores of an expression or statement."""
    if isinstance(node, tir.BufferStore) and _is_plain(node):
        return node

    def load(access: Any) -> Any:
        folded = _folded(access.indices, analyzer)
        return access if folded is None else tir.BufferLoad(access.source, folded)

    def store(access: Any) -> Any:
        folded = _folded(access.indices, analyzer)
        return access if folded is None else tir.BufferStore(access.buffer, access.value, folded, access.span)

    return tvm_ffi.structural_map(node, [(Load, load), (tir.BufferStore, store)])
