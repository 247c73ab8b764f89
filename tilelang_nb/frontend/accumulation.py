"""How a scalar is carried from one iteration to the next, as far as the text of the loop tells: a sum, a maximum."""

from __future__ import annotations

import ast

from ..source import catalogue as say

_OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "sum",
    ast.Sub: "sum",
    ast.BitAnd: "bitand",
    ast.BitOr: "bitor",
    ast.BitXor: "bitxor",
}
_GREATER, _LESS = (ast.Gt, ast.GtE), (ast.Lt, ast.LtE)
_REMEDIES = {
    "sum": "use `T.reduce_sum` of a tile, or add into a buffer with `T.atomic_add` or a `T.alloc_reducer`",
    **dict.fromkeys(
        ("max", "min"),
        "use `T.reduce_{}` of a tile, or a buffer with `T.atomic_{}` or a `T.alloc_reducer`",
    ),
    **dict.fromkeys(("bitand", "bitor", "bitxor"), "use `T.reduce_{}` of a tile"),
    "": "loop with `T.serial`: its iterations run one after the other",
}


def carried(name: str, statement: ast.AST | None, loop: ast.AST | None) -> say.ScalarAccumulatedInParallel:
    """TL134 with the reduction that does what the loop means.  statement: the one that binds the name anew."""
    operation = _of_statement(name, statement) or _of_condition(name, statement, loop)
    remedy = _REMEDIES[operation].format(operation, operation)
    return say.ScalarAccumulatedInParallel(name=name, remedy=remedy)


def _of_statement(name: str, node: ast.AST | None) -> str:
    if isinstance(node, ast.AugAssign):
        return _OPERATORS.get(type(node.op), "")
    value = node.value if isinstance(node, (ast.Assign, ast.AnnAssign)) else None
    if isinstance(value, ast.BinOp):
        first = [value.left] if isinstance(value.op, ast.Sub) else [value.left, value.right]
        return _OPERATORS.get(type(value.op), "") if any(_is(part, name) for part in first) else ""
    if isinstance(value, ast.IfExp):
        taken = value.body if _is(value.orelse, name) else value.orelse
        kept = _is(value.orelse, name) or _is(value.body, name)
        return _chosen(name, value.test, taken, _is(value.orelse, name)) if kept else ""
    if not isinstance(value, ast.Call):
        return ""
    called = value.func.attr if isinstance(value.func, ast.Attribute) else getattr(value.func, "id", "")
    if called in ("if_then_else", "Select", "where") and len(value.args) == 3:
        test, then, other = value.args
        kept = _is(other, name) or _is(then, name)
        return _chosen(name, test, then if _is(other, name) else other, _is(other, name)) if kept else ""
    operation = {"maximum": "max", "minimum": "min", "fmax": "max", "fmin": "min"}.get(called, called)
    return operation if operation in ("max", "min") and any(_is(part, name) for part in value.args) else ""


def _of_condition(name: str, node: ast.AST | None, loop: ast.AST | None) -> str:
    """`if x > best: best = x`."""
    value = node.value if isinstance(node, ast.Assign) else None
    if value is None or loop is None:
        return ""
    for branch in ast.walk(loop):
        if isinstance(branch, ast.If) and node in branch.body:
            return _chosen(name, branch.test, value, True)
    return ""


def _chosen(name: str, test: ast.expr, taken: ast.expr, when_true: bool) -> str:
    """Which extreme is kept where `taken` replaces the name when the test holds, or when it does not."""
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return ""
    left, right, operator = test.left, test.comparators[0], test.ops[0]
    written = ast.unparse(taken)
    if _is(left, name) and ast.unparse(right) == written:
        greater, less = _LESS, _GREATER
    elif _is(right, name) and ast.unparse(left) == written:
        greater, less = _GREATER, _LESS
    else:
        return ""
    largest, smallest = ("max", "min") if when_true else ("min", "max")
    return largest if isinstance(operator, greater) else smallest if isinstance(operator, less) else ""


def _is(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name
