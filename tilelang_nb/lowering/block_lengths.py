"""Whether blocks have more to do along the grid: how the number of turns of their loops changes from block to block."""

from __future__ import annotations

import itertools
from typing import Any

import tvm
from tvm import tirx as tir

from .rewrite import constant, substitute, variables


def growth(body: Any, block: Any, width: int) -> int:
    """1 where loops have more turns in the last block along an axis than in the first, -1 for fewer, 0 where they do
    not differ, or not in one direction, or depend on more than the block.

    body: of a launch, inside of its axes.  block: the variable of the axis; width: its extent.
    """
    analyzer = tvm.sym.Analyzer()
    bound: dict[Any, Any] = {}
    change = 0
    for node in _outside_loops(body):
        if isinstance(node, tir.Bind):
            bound[node.var] = substitute(node.value, {var: bound[var] for var in variables(node.value) if var in bound})
        if not isinstance(node, tir.For) or constant(node.extent) is not None:
            continue
        extent = substitute(node.extent, {var: bound[var] for var in variables(node.extent) if var in bound})
        if variables(extent) != {block}:
            continue
        places = sorted({0, width // 4, width // 2, 3 * width // 4, width - 1})
        turns: list[Any] = [
            constant(analyzer.simplify(substitute(extent, {block: tir.const(at, "int32")}))) for at in places
        ]
        if None in turns:
            return 0
        steps = {(b > a) - (b < a) for a, b in itertools.pairwise(turns)} - {0}
        if len(steps) > 1 or (steps and change and change not in steps):
            return 0
        change = steps.pop() if steps else change
    return change


def lengths(loops: list[Any], body: Any, block: Any, width: int) -> list[int] | None:
    """Turns of some loops of a launch, together, by the block along an axis; None where more than the block decides.

    body, block, width: as for `growth`.
    """
    analyzer = tvm.sym.Analyzer()
    bound = {node.var: node.value for node in _outside_loops(body) if isinstance(node, tir.Bind)}
    total = [0] * width
    for node in loops:
        extent = node.extent
        for _ in range(len(bound)):
            extent = substitute(extent, {var: bound[var] for var in variables(extent) if var in bound})
        if not variables(extent) <= {block}:
            return None
        for at in range(width):
            turns = constant(analyzer.simplify(substitute(extent, {block: tir.const(at, "int32")})))
            if turns is None:
                return None
            total[at] += max(turns, 0)
    return total


def _outside_loops(node: Any) -> list[Any]:
    """The statements outside of loops, those of all roles."""
    if isinstance(node, tir.SeqStmt):
        return [part for one in node.seq for part in _outside_loops(one)]
    if isinstance(node, tir.AttrStmt):
        return _outside_loops(node.body)
    if isinstance(node, tir.IfThenElse):
        other = [] if node.else_case is None else _outside_loops(node.else_case)
        return [*_outside_loops(node.then_case), *other]
    return [node]
