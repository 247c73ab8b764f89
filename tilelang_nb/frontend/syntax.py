"""Statements: every class of Python's `ast.stmt` is in HANDLERS or in REFUSALS, never in both; a test counts."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from ..source.diagnostic import Poisoned, Refusal
from .assign import annotated, assign, augmented, delete
from .branches import assertion, expression, if_statement, match_statement, return_statement
from .control import Leave, ReturnValue
from .expressions import too_deep
from .launches import with_statement
from .loops import for_statement, leave, while_statement
from .refusals import STATEMENTS as REFUSALS
from .unreached import search, suites

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
    except Refusal as refusal:
        recover(walker, depth, scope, turn)
        walker.report(refusal, node)
        walker.complete = False
        walker.search_operands(node, refusal)
    except (ReturnValue, Leave, KeyboardInterrupt):
        raise
    except RecursionError:
        recover(walker, depth, scope, turn)
        walker.report(Refusal(too_deep("the kernel"), node), node)
        walker.poison(node)
        return
    except BaseException as error:
        recover(walker, depth, scope, turn)
        walker.report(walker.python_exception(error), node)
    search(walker, node, blocks)
    walker.poison(node)
    if walker.loops and any(isinstance(part, (ast.Break, ast.Return)) for part in ast.walk(node)):
        walker.loops[-1].perhaps_left = True


def recover(walker: Any, depth: int, scope: Any, turn: Any) -> None:
    """Leave the scopes and turns that a failed statement left open."""
    walker.record.back_to(turn)
    walker.builder.pending = []  # the kernel is refused: no element has to be read any more
    while walker.scope is not scope:
        walker.close()
    walker.builder.drop_frames(depth)
