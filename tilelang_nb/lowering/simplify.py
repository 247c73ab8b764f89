"""simplify: fold what the stages left behind.

Indices and conditions over indices are folded, loops of one turn and branches that are never taken go, empty
statements go; neighbours under an equal condition become one `if`.
Float arithmetic stays as it is written: `x * 0` and `x - x` are not 0 for infinities and NaN.
"""

from __future__ import annotations

from typing import Any

import tvm
import tvm_ffi
from tvm import tirx as tir
from tvm.ir import Range

from .context import LaunchContext
from .equal_conditions import joined
from .index_arithmetic import fold_indices
from .rewrite import (
    Load,
    branch,
    constant,
    dtype_of,
    manageable,
    map_children,
    nothing,
    statements,
    substitute,
    with_body,
)


def simplify(function: Any, launch: LaunchContext) -> Any:
    """The stage."""
    body = _Simplifier(launch).statement(function.body)
    return function if body.same_as(function.body) else function.with_body(body)


class _Simplifier:
    def __init__(self, launch: LaunchContext):
        self.analyzer = launch.analyzer

    def statement(self, node: Any) -> Any:
        kind = type(node)
        if kind is tir.For:
            return self._for(node)
        if kind is tir.IfThenElse:
            return self._if(node)
        if kind is tir.BufferStore:
            return fold_indices(node, self.analyzer)
        after = map_children(node, self.statement)
        return joined(after) if kind is tir.SeqStmt else after

    def _for(self, node: Any) -> Any:
        low, extent = constant(node.min), constant(node.extent)
        if extent is not None and extent <= 0:
            return nothing(node.span)
        if extent == 1 and low is not None and not _jumps(node.body):
            value = tir.const(low, dtype_of(node.loop_var))
            return self.statement(substitute(node.body, {node.loop_var: value}))
        if extent is not None and low is not None:
            self.analyzer.bind(node.loop_var, Range(low, low + extent), True)
        elif low is not None and dtype_of(node.loop_var).startswith("int"):
            with self.analyzer.constraint_scope(node.loop_var >= tir.const(low, dtype_of(node.loop_var))):
                return with_body(node, self.statement(node.body))
        return with_body(node, self.statement(node.body))

    def _if(self, node: Any) -> Any:
        condition = self._condition(node.condition)
        known = constant(condition)
        then, other = node.then_case, node.else_case
        if known is not None:
            taken = then if known else other
            return nothing(node.span) if taken is None else self.statement(taken)
        then = self.statement(then)
        other = None if other is None else self.statement(other)
        if condition.same_as(node.condition) and then.same_as(node.then_case):
            if other is None or other.same_as(node.else_case):
                return node
        return branch(condition, then, other, node.span)

    def _condition(self, condition: Any) -> Any:
        """Fold a condition over indices; one that reads memory, calls or compares floats stays."""
        if constant(condition) is not None:
            return condition
        if tvm_ffi.structural_walk(condition, ((Load, tvm.ir.Call, tir.FloatImm), tvm_ffi.VisitInterrupt)) is not None:
            return fold_indices(condition, self.analyzer)
        floats: list[Any] = []
        tvm_ffi.structural_walk(
            condition, (tvm.ir.Var, lambda var: floats.append(var) if "float" in dtype_of(var) else None)
        )
        return condition if floats or not manageable(condition) else self.analyzer.simplify(condition)


def _jumps(body: Any) -> bool:
    """Is there a break or continue for the loop whose body this is?"""
    for node in statements(body):
        if isinstance(node, tir.Break | tir.Continue):
            return True
        if isinstance(node, tir.IfThenElse):
            if _jumps(node.then_case) or (node.else_case is not None and _jumps(node.else_case)):
                return True
        elif isinstance(node, tir.AttrStmt) and _jumps(node.body):
            return True
    return False
