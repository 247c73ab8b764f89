"""count-slots: a pipelined loop counts the version of its tiles instead of dividing for it.

Before: turn t uses version `t % stages`, in indices and in names bound to it.  After, where the number of versions is
no power of two: a register holds the version of the turn, a comparison makes the next one of it.  Divisions take long,
and addresses of operands wait for them.
"""

from __future__ import annotations

from typing import Any

import tvm_ffi
from tvm import tirx as tir

from .context import LaunchContext
from .rewrite import constant, dtype_of, has, loop, manageable, map_children, sequence, statements, with_span


def count_slots(function: Any, launch: LaunchContext) -> Any:
    """The stage."""
    stages = {plan.loop.loop_var: plan.stages for plan in launch.facts.get("pipelines", ())}

    def visit(node: Any) -> Any:
        node = map_children(node, visit)
        count = stages.get(node.loop_var, 1) if isinstance(node, tir.For) else 1
        if count & (count - 1) == 0 or dtype_of(node.loop_var) != "int32" or has(node.body, tir.Continue):
            return node
        return _counted(node, count, launch)

    body = visit(function.body)
    return function if body.same_as(function.body) else function.with_body(body)


def _counted(node: Any, stages: int, launch: LaunchContext) -> Any:
    var = node.loop_var
    turn = var if constant(node.min) == 0 else var - node.min
    slot = launch.local(1, "int32", "slot")
    parts, current = statements(node.body), None
    if isinstance(parts[0], tir.Bind) and _ahead(parts[0].value, turn, stages, launch) == 0:
        current, parts = parts[0].var, parts[1:]  # the plan's own name
    else:
        current = tir.Var(launch.fresh("stage"), "int32")

    def later(ahead: int) -> Any:
        if ahead == 0:
            return current
        wraps = stages - ahead
        return tir.Select(current >= wraps, current - wraps, current + ahead)

    def remainder(expr: Any) -> Any:
        ahead = _ahead(expr, turn, stages, launch)
        return expr if ahead is None else later(ahead)

    body = tvm_ffi.structural_map(sequence(parts, node.span), (tir.FloorMod, remainder))
    zero = tir.const(0, "int32")
    begin = [tir.AllocBuffer(slot), tir.BufferStore(slot, zero, [zero])]
    first, last = tir.Bind(current, tir.BufferLoad(slot, [zero])), tir.BufferStore(slot, later(1), [zero])
    inner = sequence([with_span(first, node.span), body, with_span(last, node.span)], node.span)
    return sequence([*(with_span(one, node.span) for one in begin), loop(node, body=inner)], node.span)


def _ahead(expr: Any, turn: Any, stages: int, launch: LaunchContext) -> int | None:
    """n where an expression is `(turn + n) % stages`; None for any other."""
    if not isinstance(expr, tir.FloorMod) or constant(expr.b) != stages or not manageable(expr):
        return None
    ahead = constant(launch.analyzer.simplify(expr.a - turn))
    return None if ahead is None else ahead % stages
