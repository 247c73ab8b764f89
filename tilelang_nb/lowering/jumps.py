"""`continue` in the body of a T.Parallel loop: the rest of the iteration is skipped.

Threads run several iterations of such a loop in one go, so there is no loop left to continue.  The statements after
the `if` that continues move into its other branch; where both branches may go on, a flag says whether to.
"""

from __future__ import annotations

from typing import Any

from tvm import tirx as tir

from .context import LaunchContext
from .rewrite import branch, has, map_children, nothing, sequence, statements, with_body


def structured_continues(body: Any, launch: LaunchContext) -> Any:
    """After: no Continue belongs to a PARALLEL loop."""
    if not has(body, tir.Continue):
        return body

    def visit(node: Any) -> Any:
        if isinstance(node, tir.For) and int(node.kind) == tir.ForKind.PARALLEL:
            inner = node.body
            if isinstance(inner, tir.For) and int(inner.kind) == tir.ForKind.PARALLEL:
                return with_body(node, visit(inner))
            return with_body(node, _without_continue(visit(inner), launch, node.span))
        return map_children(node, visit)

    return visit(body)


def _continues(node: Any) -> bool:
    """Is there a Continue for the loop whose body this is (not for a loop inside)?"""
    if isinstance(node, tir.Continue):
        return True
    if isinstance(node, tir.SeqStmt):
        return any(_continues(one) for one in node.seq)
    if isinstance(node, tir.IfThenElse):
        return _continues(node.then_case) or (node.else_case is not None and _continues(node.else_case))
    return isinstance(node, tir.AttrStmt) and _continues(node.body)


def _without_continue(body: Any, launch: LaunchContext, span: Any) -> Any:
    if not _continues(body):
        return body
    flag: list[Any] = []  # made when needed
    result = _sequence(statements(body), flag, launch)
    if not flag:
        return result
    start = tir.BufferStore(flag[0], tir.const(0, "int32"), [tir.const(0, "int32")], span)
    return sequence([tir.AllocBuffer(flag[0], None, span), start, result], span)


def _sequence(parts: list[Any], flag: list[Any], launch: LaunchContext) -> Any:
    """The statements up to the first that may continue, and the rest guarded by it."""
    for number, node in enumerate(parts):
        if not _continues(node):
            continue
        before, rest = parts[:number], parts[number + 1 :]
        if isinstance(node, tir.Continue):
            return sequence(before)
        if isinstance(node, tir.AttrStmt):
            raise NotImplementedError(f"continue inside {node.attr_key}")
        then, other = statements(node.then_case), [] if node.else_case is None else statements(node.else_case)
        if _always(then):
            return sequence(
                [
                    *before,
                    branch(node.condition, _sequence(then, flag, launch), _tail(other, rest, flag, launch), node.span),
                ]
            )
        if _always(other):
            return sequence(
                [
                    *before,
                    branch(node.condition, _tail(then, rest, flag, launch), _sequence(other, flag, launch), node.span),
                ]
            )
        if not rest:
            return sequence(
                [
                    *before,
                    branch(node.condition, _sequence(then, flag, launch), _sequence(other, flag, launch), node.span),
                ]
            )
        return sequence([*before, _flagged(node, rest, flag, launch)])
    return sequence(parts)


def _tail(branch_body: list[Any], rest: list[Any], flag: list[Any], launch: LaunchContext) -> Any:
    return _sequence([*branch_body, *rest], flag, launch)


def _always(parts: list[Any]) -> bool:
    """Does every way through end in a Continue?"""
    for node in parts:
        if isinstance(node, tir.Continue):
            return True
        if isinstance(node, tir.IfThenElse) and node.else_case is not None:
            if _always(statements(node.then_case)) and _always(statements(node.else_case)):
                return True
    return False


def _flagged(node: Any, rest: list[Any], flag: list[Any], launch: LaunchContext) -> Any:
    """`node` sets the flag where it continues; the rest runs where it is not set."""
    if not flag:
        flag.append(tir.decl_buffer((1,), "int32", launch.fresh("skipped"), scope="local.var", layout=None))
    zero = tir.const(0, "int32")

    def marked(part: Any) -> Any:
        if isinstance(part, tir.Continue):
            return tir.BufferStore(flag[0], tir.const(1, "int32"), [zero], part.span)
        if isinstance(part, tir.IfThenElse):
            other = nothing() if part.else_case is None else marked(part.else_case)
            return branch(part.condition, marked(part.then_case), other, part.span)
        if isinstance(part, tir.SeqStmt):
            return _marked_sequence(list(part.seq), marked, flag)
        return part

    go_on = tir.EQ(tir.BufferLoad(flag[0], [zero]), zero)
    return sequence([marked(node), branch(go_on, _sequence(rest, flag, launch), None, node.span)])


def _marked_sequence(parts: list[Any], marked: Any, flag: list[Any]) -> Any:
    zero = tir.const(0, "int32")
    for number, part in enumerate(parts):
        if not _continues(part):
            continue
        rest = parts[number + 1 :]
        if isinstance(part, tir.Continue) or not rest:
            return sequence([*parts[:number], marked(part)])
        go_on = tir.EQ(tir.BufferLoad(flag[0], [zero]), zero)
        return sequence(
            [*parts[:number], marked(part), branch(go_on, _marked_sequence(rest, marked, flag), None, part.span)]
        )
    return sequence(parts)
