"""place-copies: the copies for a later turn start between the products of a turn, not all at its beginning.

Before: a turn of a pipelined loop waits for its tiles, starts all copies for a later turn, and then computes.  All
warps start them at one time, and the operands of the first product wait behind them.  After: where the registers of a
thread are enough, every step of the first product starts a part of them.  Where they are not, the copies of tiles that
only later products read start in front of the second product: a branch that statements do not move over, so that what
stands before it and after it need not be in registers together.

It is done for turns of several products, as those of an attention; a turn of one product has its operands a step ahead.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tvm import tirx as tir

from .accesses import starts_copy, waits_for_copies
from .context import LaunchContext
from .index_arithmetic import fold_indices
from .operands_ahead import MOST_REGISTERS, OTHERS, REGISTER_FILE, arrays_in, commits, products_of, stored_arrays, words
from .rewrite import (
    branch,
    constant,
    dtype_of,
    loop,
    map_children,
    scope,
    sequence,
    size,
    statements,
    substitute,
    variables,
)


def place_copies(function: Any, launch: LaunchContext) -> Any:
    """The stage."""
    return in_loops_ahead(function, launch, _placed)


def in_loops_ahead(function: Any, launch: LaunchContext, change: Callable[[Any, LaunchContext], Any]) -> Any:
    """The launch with a change of each loop whose copies run ahead."""
    loops = {plan.loop.loop_var for plan in launch.facts.get("pipelines", ()) if plan.stages > 1}

    def visit(node: Any) -> Any:
        if isinstance(node, tir.For) and node.loop_var in loops:
            return change(node, launch)
        return map_children(node, visit)

    body = visit(function.body) if loops else function.body
    return function if body.same_as(function.body) else function.with_body(body)


def is_short_of_registers(parts: list[Any], launch: LaunchContext) -> bool:
    """Do the accumulators and operands of a turn's products, and what else a thread holds, need more than there are?"""
    products = [statements(parts[at].body) for at in products_of(parts)]
    loaded = [{array for one in product[:-1] for array in stored_arrays(one)} for product in products]
    held = {var for product in products for var in arrays_in(product[-1])}.difference(*loaded)
    needed = sum(map(words, held)) + max(sum(map(words, arrays)) for arrays in loaded) + OTHERS
    return needed > min(MOST_REGISTERS, REGISTER_FILE // launch.threads)


@dataclass(frozen=True)
class Turn:
    """The statements of a turn, in their order: those before its wait, the wait, copies for a later turn, which stand
    under a condition or under none, the end of their group, and the rest.
    """

    before: list[Any]
    wait: Any
    condition: Any
    copies: list[Any]
    commit: Any
    after: list[Any]

    @property
    def products(self) -> list[int]:
        """Positions in `after`."""
        return products_of(self.after)


def turn_of_products(parts: list[Any]) -> Turn | None:
    """The turn of several products that these statements are; None where other statements stand among its copies, or
    it starts none.
    """
    products = products_of(parts)
    waits = [at for at, one in enumerate(parts) if isinstance(one, tir.Evaluate) and waits_for_copies(one.value)]
    ends = [at for at, one in enumerate(parts) if isinstance(one, tir.Evaluate) and commits(one.value)]
    if len(products) < 2 or len(waits) != 1 or len(ends) != 1 or not waits[0] < ends[0] < products[0]:
        return None
    started = parts[waits[0] + 1 : ends[0]]
    condition = None
    if len(started) == 1 and isinstance(started[0], tir.IfThenElse) and started[0].else_case is None:
        condition, started = started[0].condition, statements(started[0].then_case)
    if not started or not all(map(_only_copies, started)):
        return None
    return Turn(parts[: waits[0]], parts[waits[0]], condition, started, parts[ends[0]], parts[ends[0] + 1 :])


def _placed(node: Any, launch: LaunchContext) -> Any:
    parts = statements(node.body)
    turn = turn_of_products(parts)
    if turn is None or not all(map(_copies_alone, turn.copies)):
        return node
    after, condition, started = turn.after, turn.condition, turn.copies
    first, second = turn.products[:2]
    if is_short_of_registers(parts, launch):
        used = {var for at, one in enumerate(after) if at < second for var in variables(one)}
        early = [one for one in started if not used.isdisjoint(_tiles(one))]
        late = [one for one in started if used.isdisjoint(_tiles(one))]
        if not late:
            return node
        while isinstance(after[second - 1], tir.AllocBuffer):
            second -= 1
        placed = [
            *under(condition, early),
            *after[:second],
            *under(condition, late),
            turn.commit,
            *after[second:],
        ]
    else:
        steps = _with_copies(after[first], started, condition, launch)
        placed = [*after[:first], steps, turn.commit, *after[first + 1 :]]
    return loop(node, body=sequence([*turn.before, turn.wait, *placed], node.body.span))


def _with_copies(steps: Any, copies: list[Any], condition: Any, launch: LaunchContext) -> Any:
    """A product each of whose steps starts a part of the copies, behind its loads."""
    *loads, product = statements(steps.body)
    parts = [_part(one, steps, launch) for one in copies]
    return loop(steps, body=sequence([*loads, *under(condition, parts), product], steps.body.span))


def _part(copy: Any, steps: Any, launch: LaunchContext) -> Any:
    """The turns of a loop of copies that belong to a step: as many in each, and none when all are started."""
    count, turns = size(steps.extent), size(copy.extent)
    each = -(-turns // count)
    inner = tir.Var(copy.loop_var.name, dtype_of(copy.loop_var))
    at = copy.min + steps.loop_var * each + inner if each > 1 else copy.min + steps.loop_var
    body = fold_indices(substitute(copy.body, {copy.loop_var: at}), launch.analyzer)
    if each * count > turns:
        body = branch(at - copy.min < turns, body, None, copy.span)
    return loop(copy, loop_var=inner, min=0, extent=each, kind=tir.ForKind.UNROLLED, body=body) if each > 1 else body


def under(condition: Any, parts: list[Any]) -> list[Any]:
    """Statements under a condition, or under none."""
    return parts if condition is None or not parts else [branch(condition, sequence(parts), None, parts[0].span)]


def _only_copies(node: Any) -> bool:
    """Does a statement start asynchronous copies, in loops and under conditions, and do nothing else?"""
    if isinstance(node, tir.For):
        return _only_copies(node.body)
    if isinstance(node, tir.IfThenElse):
        return node.else_case is None and _only_copies(node.then_case)
    if isinstance(node, tir.SeqStmt):
        return all(map(_only_copies, statements(node)))
    return isinstance(node, tir.Evaluate) and starts_copy(node.value)


def _copies_alone(node: Any) -> bool:
    """Is a statement a loop, with a known number of turns, of asynchronous copies and nothing else?"""
    inner = node
    while isinstance(inner, tir.For) and constant(inner.extent) is not None:
        inner = inner.body
    if not isinstance(node, tir.For) or constant(node.min) != 0 or not isinstance(inner, tir.Evaluate):
        return False
    return starts_copy(inner.value)


def _tiles(node: Any) -> set[Any]:
    return {array for array in arrays_in(node) if scope(array).startswith("shared")}
