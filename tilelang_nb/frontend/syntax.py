"""Statements: every class of Python's `ast.stmt` is in HANDLERS or in REFUSALS, never in both; a test counts."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from ..source.diagnostic import Poisoned, Refusal
from ..source.interrupts import pass_on_interrupt
from .assign import annotated, assign, augmented, delete
from .branches import assertion, expression, if_statement, match_statement, return_statement
from .control import Leave, ReturnValue
from .expressions import too_deep
from .launches import with_statement
from .loops import for_statement, leave, while_statement
from .names import POISON
from .refusals import STATEMENTS as REFUSALS
from .unreached import search, suites
from .unreached_operands import operands

HANDLERS: dict[type[ast.stmt], Callable[[Any, Any], None]] = {
    ast.Assign: assign,
    ast.AugAssign: augmented,
    ast.AnnAssign: annotated,
    ast.Assert: assertion,
    ast.Break: leave,
    ast.Continue: leave,
    ast.Delete: delete,
    ast.Expr: expression,
    ast.For: for_statement,
    ast.If: if_statement,
    ast.Match: match_statement,
    ast.Pass: lambda walker, node: None,
    ast.Return: return_statement,
    ast.While: while_statement,
    ast.With: with_statement,
}
OF_CONTAINERS = frozenset(("TL116", "TL133"))  # mistakes that are the same whatever a container holds


def walk_statement(walker: Any, node: ast.stmt) -> None:
    """Walk one statement.

    A mistake in it is reported, the names it would have bound are poisoned, and the walk goes on behind it.
    """
    walker.statement = node
    walker.frame.calls = 0
    walker.builder.at(node, walker.frame.text)
    walker.builder.hint = None
    depth, scope, turn = len(walker.builder.frames), walker.scope, walker.record.stack[-1]
    given, first = len(walker.record.given), walker.builder.count
    blocks = suites(node)
    for _, block in blocks:
        walker.entered.discard(id(block))
    try:
        mistake = walker.frame.refused.get(node)
        if mistake is not None:
            raise Refusal(mistake.said, mistake.span, unevaluated=True)
        handler = HANDLERS.get(type(node))
        if handler is None:
            raise Refusal(REFUSALS[type(node).__name__](node), node)
        handler(walker, node)
        if len(walker.record.given) > given:
            walker.record.use(given, first, node.lineno)
        return
    except Poisoned as poisoned:
        recover(walker, depth, scope, turn)
        walker.complete = False
        walker.search_operands(node, poisoned)
        search_doubtful(walker, node, (depth, scope, turn))
    except Refusal as refusal:
        recover(walker, depth, scope, turn)
        walker.report(refusal, node)
        walker.complete = False
        walker.search_operands(node, refusal)
        search_doubtful(walker, node, (depth, scope, turn))
    except (ReturnValue, Leave):
        raise
    except RecursionError:
        recover(walker, depth, scope, turn)
        walker.report(Refusal(too_deep("the kernel"), node), node)
        walker.poison(node)
        return
    except BaseException as error:
        pass_on_interrupt(error)
        recover(walker, depth, scope, turn)
        walker.report(walker.python_exception(error), node)
    walker.lose_attributes(node)
    reached = _branch_at_hand(walker, node)
    search(walker, reached, suites(reached))
    walker.poison(node)
    if walker.loops and any(isinstance(part, (ast.Break, ast.Return)) for part in ast.walk(node)):
        walker.loops[-1].perhaps_left = True


def _branch_at_hand(walker: Any, node: ast.stmt) -> ast.stmt:
    """The `elif` whose condition was refused: what stands before it is not built."""
    branch = node
    while isinstance(branch, ast.If) and branch is not walker.statement:
        if len(branch.orelse) != 1 or not isinstance(branch.orelse[0], ast.If):
            return node
        branch = branch.orelse[0]
    return branch


def search_doubtful(walker: Any, node: ast.stmt, state: tuple[int, Any, Any]) -> None:
    """What is wrong with the use of containers that an earlier refused statement would have changed.

    Only what does not depend on their contents is said.
    """
    frame = walker.frame
    own = [part for operand, _ in operands(node) for part in ast.walk(operand) if isinstance(part, ast.Name)]
    known = {part.id: walker.doubtful.get((frame, part.id)) for part in own if frame.states.get(part.id) is POISON}
    if walker.said_only or not any(known.values()):
        return
    walker.said_only = OF_CONTAINERS
    for name, binding in known.items():
        if binding is not None:
            frame.set(name, binding)
    try:
        if suites(node):
            for operand, certain in operands(node):
                if certain:
                    walker.evaluate(operand)
        else:
            HANDLERS[type(node)](walker, node)
    except (Refusal, Poisoned) as mistake:
        if isinstance(mistake, Refusal):
            walker.report(mistake, node)
        walker.search_operands(node, mistake)
    except BaseException as error:  # what is in the container is not known
        pass_on_interrupt(error)
    finally:
        recover(walker, *state)
        walker.said_only = frozenset()
        for name in known:
            frame.set(name, POISON)


def recover(walker: Any, depth: int, scope: Any, turn: Any) -> None:
    """Leave the scopes and turns that a failed statement left open."""
    walker.record.back_to(turn)
    walker.builder.pending = []  # the kernel is refused: no element has to be read any more
    while walker.scope is not scope:
        walker.close()
    walker.builder.drop_frames(depth)
