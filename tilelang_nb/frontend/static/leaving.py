"""What `return`, `break` and `continue` of a block may leave, as far as its text tells."""

from __future__ import annotations

import ast
from enum import IntEnum


class Left(IntEnum):
    """What the end of a block has left, perhaps."""

    NOTHING = 0
    LOOP = 1
    FUNCTION = 2


def may_leave(body: list[ast.stmt]) -> Left:
    """What statements that may run may leave: the function, or the loop around them."""
    found = Left.NOTHING
    for node in body:
        if isinstance(node, ast.Return):
            return Left.FUNCTION
        if isinstance(node, (ast.Break, ast.Continue)):
            found = Left.LOOP
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                continue
            if isinstance(child, (ast.stmt, ast.match_case, ast.ExceptHandler)):
                inner = may_leave([child] if isinstance(child, ast.stmt) else child.body)
                if inner is Left.LOOP and isinstance(node, (ast.For, ast.While)) and child in node.body:
                    continue
                found = max(found, inner)
    return found


def breaks(body: list[ast.stmt]) -> bool:
    """Whether a `break` of the loop around these statements stands in them."""
    pending: list[ast.AST] = list(body)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Break):
            return True
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        if isinstance(node, (ast.For, ast.While, ast.AsyncFor)):
            pending.extend(node.orelse)
        else:
            pending.extend(child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.expr))
    return False
