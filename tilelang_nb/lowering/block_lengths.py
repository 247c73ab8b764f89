"""Whether blocks have more to do along the grid, by the number of turns of their loops, and their order by length."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from typing import Any

import tvm
from tvm import tirx as tir

from .rewrite import constant, substitute, variables


def growth(body: Any, block: Any, width: int) -> int:
    """1 where loops have more turns in the last block along an axis than in the first, -1 for fewer, 0 where they do
    not differ, or not in one direction, or depend on more than the block.

    body: of a launch, inside of its axes.  block: the variable of the axis; width: its extent.
    """
    inside = _outside_loops(body)
    bound = _bound(inside)
    places = sorted({0, width // 4, width // 2, 3 * width // 4, width - 1})
    change = 0
    for node in inside:
        if not isinstance(node, tir.For) or constant(node.extent) is not None:
            continue
        extent = substitute(node.extent, bound)
        if variables(extent) != {block}:
            continue
        turns: list[Any] = _turns(extent, block, places)
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
    bound = _bound(_outside_loops(body))
    total = [0] * width
    for node in loops:
        extent = substitute(node.extent, bound)
        if not variables(extent) <= {block}:
            return None
        for at, turns in enumerate(_turns(extent, block, range(width))):
            if turns is None:
                return None
            total[at] += max(turns, 0)
    return total


def placed_by_length(
    number: Any,
    width: int,
    rows: int,
    together: int,
    change: int,
    named: Callable[[str, Any], Any] = lambda _, value: value,
) -> tuple[Any, Any]:
    """(place along the first axis, row) of a number, where the longest come first, of some rows of the grid together.

    width: of a row.  change: as `growth` says.  named: what stands for a value that is used several times, by a name.
    """
    together = min(together, rows)
    group = named("group", tir.floordiv(number, width * together))
    inside = named("in_group", tir.floormod(number, width * together))
    height: Any = together
    if rows % together:
        height = named("group_height", tir.min(tir.const(together, "int32"), rows - group * together))
    step, row = tir.floordiv(inside, height), group * together + tir.floormod(inside, height)
    return width - 1 - step if change > 0 else step, row


def _turns(extent: Any, block: Any, places: Iterable[int]) -> list[int | None]:
    """The extent of a loop in some blocks, by their place along an axis; None where it is not known."""
    analyzer = tvm.sym.Analyzer()
    return [constant(analyzer.simplify(substitute(extent, {block: tir.const(at, "int32")}))) for at in places]


def _bound(inside: list[Any]) -> dict[Any, Any]:
    """The variables that statements bind, with their values over the axes of the launch."""
    found: dict[Any, Any] = {}
    for node in inside:
        if isinstance(node, tir.Bind):
            found[node.var] = substitute(node.value, found)
    return found


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
