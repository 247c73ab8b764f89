"""Types and shapes of operands: a cast written out, a constant that fits, a keyword that makes shapes fit."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator

from .. import catalogue as say
from ..diagnostic import Fix
from ..syntax_tree import Places
from ..text import Span
from .reading import end, inserted, language, replaced, the


def fitting(message: say.ShapeMismatch, span: Span, at: Places) -> Iterator[Fix]:
    """The tile allocated with the shape that fits; the keyword with which the shapes do."""
    if message.tile:
        yield from _allocation(message, at)
    yield from keyword(message, span, at)


def _allocation(message: say.ShapeMismatch, at: Places) -> Iterator[Fix]:
    """The shape in the only statement that binds the tile, where no copy into it says that the shape is meant."""
    copies = [node for node in at.spans if isinstance(node, ast.Call) and len(node.args) > 1]
    copies = [node for node in copies if isinstance(node.func, ast.Attribute) and node.func.attr == "copy"]
    if any(ast.unparse(node.args[1]) == message.tile and _has_extents(node.args[0]) for node in copies):
        return
    bound = [
        node
        for node in at.spans
        if isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == [message.tile]
    ]
    call = bound[0].value if len(bound) == 1 else None
    if isinstance(call, ast.Call) and call.args and ast.unparse(call.args[0]) == message.shape:
        yield replaced(f"allocate `{message.tile}` with shape {message.wanted}", at, call.args[0], message.wanted)


def _has_extents(source: ast.expr) -> bool:
    """Whether an operand of a copy has a shape of its own; `A[i, j]` takes that of the other side."""
    if not isinstance(source, ast.Subscript):
        return True
    return any(isinstance(part, ast.Slice) for part in ast.walk(source.slice))


def keyword(message: say.ShapeMismatch, span: Span, at: Places) -> Iterator[Fix]:
    """The keyword with which the shapes fit, added to the call or set in it."""
    name, _, value = message.keyword.partition("=")
    if not value:
        return
    call = the(at, span, ast.Call, lambda node: bool(node.args) and at.spans[node] == span)
    if call is None or any(keyword.arg is None for keyword in call.keywords):
        return
    given = next((keyword for keyword in call.keywords if keyword.arg == name), None)
    if given is not None:
        yield replaced(f"write `{message.keyword}`", at, given.value, value)
    else:
        last = max(end(at, node) for node in (*call.args, *(keyword.value for keyword in call.keywords)))
        last = max(last, *(end(at, keyword) for keyword in call.keywords), last)
        yield inserted(f"add `{message.keyword}`", *last, f", {message.keyword}")


def only_element(message: say.OneElement, span: Span, at: Places) -> Iterator[Fix]:
    """`m[0]` for the buffer `m` of one element."""
    name = message.buffer
    used = [node for node in at.inside(span, ast.Name) if at.written(node) == name and not _inside_element(at, node)]
    if len(used) == 1:
        yield replaced(f"write `{message.example}`", at, used[0], message.example)


def _inside_element(at: Places, node: ast.AST) -> bool:
    parent = at.parents.get(node)
    return isinstance(parent, ast.Subscript) and parent.value is node


def one_bracket(message: say.WrongNumberOfIndices, span: Span, at: Places) -> Iterator[Fix]:
    """`A[i, j]` for `A[i][j]`."""
    node = the(at, span, ast.Subscript, lambda node: at.spans[node] == span)
    outer = at.parents.get(node) if node is not None else None
    rank = 1
    while isinstance(outer, ast.Subscript) and outer.value is node:
        node, outer, rank = outer, at.parents.get(outer), rank + 1
    if node is not None and rank > 1 and rank == int(message.rank):
        yield replaced(f"write `{message.example}`", at, node, message.example)


def cast_of_stored(message: say.ImplicitFloatToInteger, span: Span, at: Places) -> Iterator[Fix]:
    """`T.cast` around the stored value; an operation that converts whole tiles has no such place."""
    yield from _cast(message.dtype, span, at)


def cast_of_rebound(message: say.TypeConflict, span: Span, at: Places) -> Iterator[Fix]:
    """`T.cast` around the new value, where the type that the name has holds every value of the other."""
    if _holds(message.target, message.first) and _holds(message.target, message.second):
        yield from _cast(message.target, span, at)


def _cast(dtype: str, span: Span, at: Places) -> Iterator[Fix]:
    node = the(
        at, span, (ast.Name, ast.Subscript, ast.Assign, ast.AugAssign, ast.AnnAssign), lambda n: at.spans[n] == span
    )
    statement = at.statement(node) if node is not None else None
    title = f"cast to {dtype}"
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        if node in (statement, statement.targets[0]) and not isinstance(statement.targets[0], (ast.Tuple, ast.List)):
            written = f'{language(at)}.cast({at.written(statement.value)}, "{dtype}")'
            yield replaced(title, at, statement.value, written)
    elif isinstance(statement, ast.AugAssign) and node in (statement, statement.target):
        target, operator = at.written(statement.target), OPERATORS[type(statement.op)]
        written = f'{target} = {language(at)}.cast({target} {operator} ({at.written(statement.value)}), "{dtype}")'
        yield replaced(title, at, statement, written)


OPERATORS = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
    ast.LShift: "<<",
    ast.RShift: ">>",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.MatMult: "@",
}


def _holds(target: str, other: str) -> bool:
    """Whether a type keeps the values of the other, up to rounding of floats."""
    a, b = (re.fullmatch(r"(float|int|uint)(\d+)", name) for name in (target, other))
    if a is None or b is None:
        return False
    if a[1] == "float":
        return b[1] != "float" or int(a[2]) >= int(b[2])
    return a[1] == b[1] and int(a[2]) >= int(b[2])


def region_store(message: say.RegionStore, span: Span, at: Places) -> Iterator[Fix]:
    """`T.fill(region, value)` or `T.copy(source, region)`."""
    node = the(at, span, ast.Subscript)
    statement = at.parents.get(node) if node is not None else None
    if not message.operation or not isinstance(statement, ast.Assign) or statement.targets != [node]:
        return
    target, value = at.written(node), at.written(statement.value)
    called = f"{language(at)}.{message.operation}"
    arguments = f"{value}, {target}" if message.operation == "copy" else f"{target}, {value}"
    yield replaced(f"write `{called}`", at, statement, f"{called}({arguments})")


def whole_number(message: say.LossyConstant, span: Span, at: Places) -> Iterator[Fix]:
    """The constant without its fraction."""
    try:
        value = float(message.value)
    except ValueError:
        return
    if not math.isfinite(value) or value == int(value):
        return
    node = the(at, span, ast.expr, lambda n: _constant(n) == value)
    if node is None:
        statement = next((at.statement(n) for n in at.inside(span, ast.expr) if at.spans[n] == span), None)
        stored = getattr(statement, "value", None)
        node = stored if isinstance(statement, (ast.Assign, ast.AnnAssign)) and _constant(stored) == value else None
    if node is not None:
        yield replaced(f"write `{int(value)}`: the fraction is dropped", at, node, str(int(value)))


def _constant(node: ast.AST | None) -> float | None:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _constant(node.operand)
        return None if inner is None else -inner
    value = node.value if isinstance(node, ast.Constant) else None
    return value if isinstance(value, float) else None
