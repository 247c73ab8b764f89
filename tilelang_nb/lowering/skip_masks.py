"""skip-masks: a condition that holds for a whole tile is not asked for every element.

Before: `for i, j in T.Parallel(...)` chooses values by conditions such as `row + i >= column + j`.  After: an `if`
asks whether the conditions hold at the worst of all elements, which is one question for the block; its first branch
has the loop without them, its second branch as it was.

It is done for loops over fragments, whose elements are written out one by one, and for comparisons of integers that
every loop variable moves in one direction.  A product of warp groups then clears where the loop would write zeros.
"""

from __future__ import annotations

from typing import Any

import tvm
import tvm_ffi
from tvm import tirx as tir

from .context import FRAGMENT, LaunchContext
from .hopper.clears import clear_in_products
from .nests import perfect_nest
from .own_names import with_own_names
from .rewrite import (
    Load,
    branch,
    constant,
    dtype_of,
    has,
    manageable,
    map_children,
    scope,
    statements,
    substitute,
    variables,
    walk,
)
from .uniformity import Uniformity

_COMPARISONS = (tir.GE, tir.GT, tir.LE, tir.LT)


def skip_masks(function: Any, launch: LaunchContext) -> Any:
    """The stage."""
    uniformity: list[Uniformity] = []

    def uniform(expr: Any) -> bool:
        if not uniformity:
            uniformity.append(Uniformity(function.body, launch.axes))
        return uniformity[0].is_uniform(expr)

    def visit(node: Any) -> Any:
        if type(node) is not tir.For or int(node.kind) != tir.ForKind.PARALLEL:
            return map_children(node, visit)
        return _Nest(node, launch, uniform).divided()

    body = clear_in_products(visit(function.body), launch)
    return function if body.same_as(function.body) else function.with_body(body)


class _Nest:
    def __init__(self, outer: Any, launch: LaunchContext, uniform: Any):
        self.outer, self.launch, self.uniform = outer, launch, uniform
        self.loops, self.body = perfect_nest(outer)
        self.bound = {one.var: one.value for one in statements(self.body) if isinstance(one, tir.Bind)}

    def divided(self) -> Any:
        if not self._touches_fragments() or any(constant(one.extent) is None for one in self.loops):
            return self.outer
        questions: list[tuple[Any, Any]] = []  # condition, and what it is for the worst element
        for choice in self._choices():
            condition = _parts(choice)[0]
            if any(condition.same_as(known) for known, _ in questions):
                continue
            worst = self._worst(condition)
            if worst is not None:
                questions.append((condition, worst))
        if not questions:
            return self.outer
        whole = questions[0][1]
        for _, worst in questions[1:]:
            whole = tir.And(whole, worst)

        def taken(choice: Any) -> Any:
            condition, value = _parts(choice)
            return value if any(tvm_ffi.structural_equal(condition, known) for known, _ in questions) else choice

        plain = tvm_ffi.structural_map(
            self.loops[-1].body,
            [(tir.Select, taken), (tvm.ir.Call, lambda call: taken(call) if _chooses(call) else call)],
        )
        plain = with_own_names(self._around(plain))
        return branch(whole, plain, self.outer, self.outer.span)

    def _around(self, body: Any) -> Any:
        for one in reversed(self.loops):
            body = tir.For(
                one.loop_var,
                one.min,
                one.extent,
                tir.ForKind(one.kind),
                body,
                annotations=one.annotations,
                span=one.span,
            )
        return body

    def _touches_fragments(self) -> bool:
        return any(isinstance(var.ty, tir.BufferType) and scope(var) == FRAGMENT for var in variables(self.body))

    def _choices(self) -> list[Any]:
        found: list[Any] = []
        walk(
            self.body,
            (tir.Select, found.append),
            (tvm.ir.Call, lambda call: found.append(call) if _chooses(call) else None),
        )
        return found

    def _worst(self, condition: Any) -> Any | None:
        """A condition that holds where this one holds for every element; None where there is no such simple one."""
        if isinstance(condition, tvm.ir.Var) and condition in self.bound:
            return self._worst(self.bound[condition])
        if isinstance(condition, tir.And):
            one, other = self._worst(condition.a), self._worst(condition.b)
            return None if one is None or other is None else tir.And(one, other)
        if not isinstance(condition, _COMPARISONS) or not dtype_of(condition.a).startswith("int"):
            return None
        values = {var: value for var, value in self.bound.items() if not has(value, (Load, tvm.ir.Call))}
        for _ in range(4):
            condition = substitute(condition, values)
        if has(condition, (Load, tvm.ir.Call)) or not manageable(condition):
            return None
        simplify = self.launch.analyzer.simplify
        rising = isinstance(condition, tir.GE | tir.GT)
        larger, smaller = (condition.a, condition.b) if rising else (condition.b, condition.a)
        used, worst = variables(condition), {}
        for one in self.loops:
            var, first, extent = one.loop_var, constant(one.min), constant(one.extent)
            if var not in used:
                continue
            gap = larger - smaller
            step = constant(simplify(substitute(gap, {var: var + 1}) - gap))
            if step is None or first is None or extent is None:
                return None
            worst[var] = tir.const(first if step >= 0 else first + extent - 1, dtype_of(var))
        result = substitute(condition, worst)
        if not worst or constant(simplify(result)) is not None or not self.uniform(result):
            return None
        return simplify(result)


def _chooses(call: Any) -> bool:
    return getattr(call.op, "name", "").endswith("if_then_else")


def _parts(choice: Any) -> tuple[Any, Any]:
    """(condition, value where it holds)"""
    return (choice.condition, choice.true_value) if isinstance(choice, tir.Select) else (choice.args[0], choice.args[1])
