"""`**`, `<<` and `pow` of Python integers, bounded: a short text may ask for more digits than any memory holds.

CPython neither refuses such an integer nor can be interrupted while it makes one.  In kernels the walk calls `grown`;
in the Python around them `bounded` puts calls of it in place of the operators.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable
from functools import wraps
from types import CodeType
from typing import Any

from ..source import catalogue as say
from ..source.diagnostic import Refusal

GROWN, CHECKED = "bounded operator", "bounded operand"  # among the built-ins of a cell; no text can write these names
OPERATORS = {ast.Pow: "**", ast.LShift: "<<"}


def grown(op: str, left: Any, right: Any, bits: int) -> Any:
    """`left ** right` or `left << right`; TL144 for an integer of more than `bits` bits."""
    check_size(op, left, right, bits)
    return left**right if op == "**" else left << right


def check_size(op: str, left: Any, right: Any, bits: int) -> None:
    """TL144 where the result would be an integer of more than `bits` bits."""
    if isinstance(left, int) and isinstance(right, int) and right > 0 and abs(left) > (op == "**"):
        length = left.bit_length()
        if (length * right if op == "**" else length + right) > bits:
            remedy = "use a smaller exponent or shift; the limit is the setting `bits`"
            exception = f"OverflowError: an integer of more than {bits:,} bits"
            raise Refusal(say.ExceptionWhileBuilding(exception=exception, remedy=remedy))


def host_names(limit: int) -> dict[str, Callable[..., Any]]:
    """What a cell finds among its built-ins so that the code that `bounded` makes runs.

    limit: in bits, of integers in kernels; the Python around them may make larger ones, of about a second each.
    """
    bits = 10 * limit

    @wraps(builtins.pow)
    def power(base: Any, exp: Any, mod: Any = None) -> Any:
        if mod is None:
            check_size("**", base, exp, bits)
        return builtins.pow(base, exp, mod)

    def operand(op: str, left: Any, right: Any) -> Any:
        check_size(op, left, right, bits)
        return right

    return {GROWN: lambda op, left, right: grown(op, left, right, bits), CHECKED: operand, "pow": power}


def compiled(expression: str | ast.expr, name: str) -> CodeType:
    """The code of a host expression with `**` and `<<` bounded."""
    tree = ast.parse(expression, mode="eval") if isinstance(expression, str) else ast.Expression(expression)
    return compile(bounded(tree), name, "eval", dont_inherit=True)


def bounded(node: Any) -> Any:
    """The tree of host code with `**` and `<<` bounded; it is the same object where there are none.

    Nodes that change are copied: those of kernels keep their identity.
    """
    changed: dict[str, Any] = {}
    for name, value in ast.iter_fields(node):
        if isinstance(value, list):
            items = [bounded(item) if isinstance(item, ast.AST) else item for item in value]
            if any(new is not old for new, old in zip(items, value)):
                changed[name] = items
        elif isinstance(value, ast.AST):
            new = bounded(value)
            if new is not value:
                changed[name] = new
    if changed:
        fields = {name: changed.get(name, value) for name, value in ast.iter_fields(node)}
        node = ast.copy_location(type(node)(**fields), node)
    if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        return _call(node, node.op, node.left, node.right)
    if isinstance(node, ast.AugAssign) and type(node.op) in OPERATORS and _readable(node.target):
        read = _loaded(node.target)  # the operator itself stays: `x **= 2` changes an array in place
        checked = _call(node.value, node.op, read, node.value, CHECKED)
        return ast.copy_location(ast.AugAssign(node.target, node.op, checked), node)
    return node


def _readable(target: ast.expr) -> bool:
    """Whether a target may be read once more: nothing is called for it."""
    simple = (ast.Name, ast.Attribute, ast.Subscript, ast.Constant, ast.UnaryOp, ast.unaryop, ast.expr_context)
    return all(isinstance(node, simple) for node in ast.walk(target))


def _loaded(target: Any) -> Any:
    fields = {**dict(ast.iter_fields(target)), "ctx": ast.Load()}
    return ast.copy_location(type(target)(**fields), target)


def _call(place: ast.AST, op: ast.operator, left: ast.expr, right: ast.expr, function: str = GROWN) -> ast.Call:
    name = ast.copy_location(ast.Name(function, ast.Load()), place)
    sign = ast.copy_location(ast.Constant(OPERATORS[type(op)]), place)
    return ast.copy_location(ast.Call(name, [sign, left, right], []), place)
