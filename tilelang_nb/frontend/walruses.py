"""Which names an expression has bound by `:=`, as far as its value tells which of its operands were evaluated."""

from __future__ import annotations

import ast


def bound_where(node: ast.expr, holds: bool) -> tuple[str, ...]:
    """Names that an expression has certainly bound by `:=` where it is true, or where it is false."""
    found: dict[str, None] = {}
    _bound(node, holds, found)
    return tuple(found)


def _bound(node: ast.AST, holds: bool | None, found: dict[str, None]) -> None:
    if isinstance(node, ast.BoolOp):
        every = holds is isinstance(node.op, ast.And)
        for part in node.values if every else node.values[:1]:
            _bound(part, holds if every else None, found)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        _bound(node.operand, None if holds is None else not holds, found)
    elif isinstance(node, ast.Compare):
        for part in (node.left, *node.comparators) if holds else (node.left, node.comparators[0]):
            _bound(part, None, found)
    elif isinstance(node, ast.IfExp):
        _bound(node.test, None, found)
    elif not isinstance(node, (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
        for part in ast.iter_child_nodes(node):
            _bound(part, holds if isinstance(node, ast.NamedExpr) else None, found)
        if isinstance(node, ast.NamedExpr):
            found[node.target.id] = None
