"""What the text of an eager kernel says before any argument is known: that it is one, which parameters its body
annotates, which sizes it takes from arguments, and mistakes of its syntax.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import Any

from ..source import catalogue as say
from ..source.diagnostic import Diagnostic, Refusal
from . import refusals
from .definitions import Definition, definition_of, parameters
from .expressions import compile_expression
from .places import header_span

LAUNCHES = frozenset({"Kernel", "ClusterKernel"})
COMPILE_TIME = frozenset({"int", "float", "bool", "str", "tuple", "list", "dict"})
_NESTED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


def is_eager(function: Callable[..., Any]) -> bool:
    """Is the body of the function the kernel, not a definition of one?

    Its own body, without functions defined in it, launches, or annotates a parameter; or it takes sizes with `T.const`
    and defines nothing.
    """
    try:
        node = definition_of(function).node
    except Refusal:
        code = getattr(function, "__code__", None)
        return code is not None and not (LAUNCHES | {"const"}).isdisjoint(code.co_names)
    return is_eager_text(node)


def is_eager_text(node: ast.FunctionDef) -> bool:
    """`is_eager`, from the text of the function."""
    own = list(_own(node.body))
    if any(isinstance(part, ast.With) and any(map(_launches, part.items)) for part in own):
        return True
    if annotated_parameters(node):
        return True
    defines = any(isinstance(part, ast.FunctionDef) for part in ast.walk(node) if part is not node)
    return not defines and bool(constant_names(node))


def annotated_parameters(node: ast.FunctionDef) -> frozenset[str]:
    """Parameters that an annotation in the body makes run-time parameters: `A: T.Tensor(...)`, but not `n: int`."""
    names = {parameter.arg for parameter in parameters(node)}
    found = set()
    for part in _own(node.body):
        if isinstance(part, ast.AnnAssign) and part.value is None and isinstance(part.target, ast.Name):
            if not (isinstance(part.annotation, ast.Name) and part.annotation.id in COMPILE_TIME):
                found.add(part.target.id)
    return frozenset(found & names)


def constant_names(node: ast.FunctionDef) -> frozenset[str]:
    """Names of the sizes that `T.const` takes from the arguments, as far as the text holds them."""
    found: set[str] = set()
    for part in _own(node.body):
        if isinstance(part, ast.Call) and _last_name(part.func) == "const" and part.args:
            given = part.args[0]
            if isinstance(given, ast.Constant) and isinstance(given.value, str):
                found.update(given.value.replace(",", " ").split())
    return frozenset(found)


def syntax_mistakes(definition: Definition) -> tuple[Diagnostic, ...]:
    """Statements and expressions that no argument can make right.

    What stands under `if` or `match` is left out: the arguments may choose that it is not built.
    """
    found: dict[Any, Diagnostic] = {}
    for node, in_launch in _always_built(definition.node.body):
        try:
            _check(node, definition, in_launch)
        except Refusal as refusal:
            place = refusal.place if refusal.place is not None else node
            span = header_span(definition.text, place) if isinstance(place, ast.AST) else place
            diagnostic = refusal.message.at(span, refusal.notes, refusal.fixes)
            found.setdefault(diagnostic.key, diagnostic)
    return tuple(sorted(found.values(), key=lambda diagnostic: diagnostic.order))


def _check(node: ast.stmt, definition: Definition, in_launch: bool) -> None:
    refused = refusals.STATEMENTS.get(type(node).__name__)
    if refused is not None:
        raise Refusal(refused(node), node)
    if isinstance(node, ast.Assign) and len(node.targets) > 1 and (in_launch or not refusals.names_only(node)):
        raise refusals.several_targets(node)
    if isinstance(node, (ast.For, ast.While)) and node.orelse:
        raise Refusal(say.LoopElse(), node.orelse[0])
    if isinstance(node, ast.With) and len(node.items) != 1:
        raise refusals.several_items(node)
    for part in ast.iter_child_nodes(node):
        if isinstance(part, ast.expr) and isinstance(getattr(part, "ctx", ast.Load()), ast.Load):
            if part not in definition.codes:
                definition.codes[part] = compile_expression(part)


def _always_built(body: list[ast.stmt], in_launch: bool = False) -> Iterator[tuple[ast.stmt, bool]]:
    """Statements that are reached whatever the arguments are, loops taken as run at least once; and for each whether
    it stands in a launch.
    """
    for node in body:
        yield node, in_launch
        if isinstance(node, (ast.For, ast.While, ast.With)):
            yield from _always_built(node.body, in_launch or isinstance(node, ast.With))


def _own(body: list[Any]) -> Iterator[ast.AST]:
    """All nodes of these statements, without what is inside functions and classes."""
    pending = list(body)
    while pending:
        node = pending.pop()
        yield node
        if not isinstance(node, _NESTED):
            pending.extend(ast.iter_child_nodes(node))


def _launches(item: ast.withitem) -> bool:
    call = item.context_expr
    return isinstance(call, ast.Call) and _last_name(call.func) in LAUNCHES


def _last_name(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""
