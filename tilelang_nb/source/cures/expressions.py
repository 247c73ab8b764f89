"""Expressions that ask a device value for something that only a Python object has."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from .. import catalogue as say
from ..diagnostic import Fix
from ..syntax_tree import Places
from ..text import Span
from . import words
from .reading import between, end, language, operand, replaced, start, the

# Functions of `math`, `cmath`-like modules and NumPy that the language has under the same name and meaning.
SAME_IN_LANGUAGE = frozenset(
    ("acos", "asin", "atan", "atan2", "cos", "cosh", "erf", "exp", "exp2", "fabs", "fmod")
    + ("isfinite", "isinf", "isnan", "log", "log10", "log1p", "log2", "sin", "sinh", "sqrt", "tan", "tanh")
)


def shape(message: say.LenOfBuffer, span: Span, at: Places) -> Iterator[Fix]:
    """`A.shape[0]` for `len(A)`."""
    call = the(at, span, ast.Call, lambda node: _calls(node, "len") and len(node.args) == 1)
    if call is not None and message.shaped:
        instead = f"{operand(at, call.args[0])}.shape[0]"
        yield replaced(f"write `{instead}`", at, call, instead)


def dtype_of(message: say.TypeOfDeviceValue, span: Span, at: Places) -> Iterator[Fix]:
    """`x.dtype` for `type(x)`."""
    call = the(at, span, ast.Call, lambda node: _calls(node, "type") and len(node.args) == 1)
    if call is not None:
        instead = f"{operand(at, call.args[0])}.dtype"
        yield replaced(f"write `{instead}`", at, call, instead)


def _calls(node: ast.Call, name: str) -> bool:
    return isinstance(node.func, ast.Name) and node.func.id == name and not node.keywords


def floor_division(message: say.IntegerTrueDivision, span: Span, at: Places) -> Iterator[Fix]:
    """`//`, or the quotient of floats."""
    node = the(at, span, (ast.BinOp, ast.AugAssign), lambda node: isinstance(node.op, ast.Div))
    if node is None:
        return
    left, right = (node.left, node.right) if isinstance(node, ast.BinOp) else (node.target, node.value)
    place = _operator(at, left, right, "/=" if isinstance(node, ast.AugAssign) else "/")
    if place is None:
        return
    word = at.text.slice(place)
    yield Fix(f"write `{word.replace('/', '//')}`: the quotient is rounded down", place, word.replace("/", "//"))
    if isinstance(node, ast.BinOp):
        cast = f'{language(at)}.cast({at.written(left)}, "float32")'
        yield replaced("divide as float32", at, left, cast)


def equality(message: say.IdentityOfDeviceValues, span: Span, at: Places) -> Iterator[Fix]:
    """`==` for `is`, `!=` for `is not`."""
    kind = ast.Is if message.word == "is" else ast.IsNot
    node = the(at, span, ast.Compare, lambda node: any(isinstance(op, kind) for op in node.ops))
    if node is None or sum(isinstance(op, kind) for op in node.ops) != 1:
        return
    number = next(index for index, op in enumerate(node.ops) if isinstance(op, kind))
    left, right = [node.left, *node.comparators][number : number + 2]
    place = _operator(at, left, right, message.word)
    if place is not None:
        yield Fix(f"write `{message.operator}`", place, message.operator)


def _operator(at: Places, left: ast.expr, right: ast.expr, word: str) -> Span | None:
    """Where an operator of one line stands between its operands, whatever parentheses and comments are there too."""
    line, column = end(at, left)
    written = between(at, (line, column), start(at, right))
    pattern = r"\s+".join(re.escape(part) for part in word.split())
    for row in written.split("\n"):
        found = re.search(rf"(?<!\w){pattern}(?!\w)", row.partition("#")[0])
        if found:
            return Span(line, column + found.start(), line, column + found.end())
        line, column = line + 1, 0
    return None


def device_function(message: say.ValueNeededWhileBuilding, span: Span, at: Places) -> Iterator[Fix]:
    """`T.sqrt` for `math.sqrt`."""

    def of_a_module(node: ast.Call) -> bool:
        function = node.func
        return (
            isinstance(function, ast.Attribute)
            and isinstance(function.value, ast.Name)
            and function.value.id in ("math", "np", "numpy")
            and function.attr in SAME_IN_LANGUAGE
        )

    call = the(at, span, ast.Call, of_a_module)
    if call is not None:
        instead = f"{language(at)}.{call.func.attr}"
        yield replaced(f"write `{instead}`", at, call.func, instead)


def attribute(message: say.UnknownAttribute, span: Span, at: Places) -> Iterator[Fix]:
    """The nearest attribute, or the call of the language that a method of an array or scalar is."""
    yield from words.operation(message, span, at)
    node = the(at, span, ast.Attribute, lambda node: node.attr == message.name)
    call = at.parents.get(node) if node is not None else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or call.func is not node:
        return
    if not message.instead or call.keywords:
        return
    given = [at.written(argument) for argument in call.args]
    if "{x}" in message.instead:
        instead = _of_scalar(message.instead, at.written(call.func.value), given)
    else:
        fits = isinstance(at.parents[call], ast.Expr) and len(given) == message.instead.count("{arguments}")
        instead = message.instead.replace("{arguments}", ", ".join(given)) if fits else ""
    if instead:
        instead = re.sub(r"^T\.", f"{language(at)}.", instead)
        yield replaced(f"write `{instead}`", at, call, instead)


def _of_scalar(instead: str, x: str, given: list[str]) -> str:
    """The call with the operand and the arguments in their places; "" where they do not fit."""
    places = [place for place in ("dtype", "low", "high") if re.search(rf"\b{place}\b", instead)]
    if len(places) != len(given) or "other" in instead:
        return ""
    for place, argument in zip(places, given):
        if place == "dtype" and not re.fullmatch(r"""["']\w+["']|T\.\w+""", argument):
            return ""
        instead = argument.join(re.split(rf"\b{place}\b", instead))
    return instead.replace("{x}", x)
