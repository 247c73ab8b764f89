"""From a function object to its text: cells by the session they were run in, modules by their file."""

from __future__ import annotations

import ast
import linecache
import weakref
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from types import CodeType
from typing import Any

from ..source import catalogue as say
from ..source.diagnostic import Diagnostic, Refusal
from ..source.text import Text
from .names import bound_names

SESSION = "__tilelang_cell__"  # key among the built-ins of functions that a cell defined


@dataclass(eq=False)
class Definition:
    """The text of a function.

    codes: expressions compiled so far, by node; they serve every build.  mistakes: what Python refused when it compiled
    the text.  refused: the statements that hold these mistakes, with the first of theirs.
    """

    node: ast.FunctionDef
    text: Text
    codes: dict[Any, Any] = field(default_factory=dict)
    mistakes: tuple[Diagnostic, ...] = ()
    refused: Mapping[ast.stmt, Diagnostic] = field(default_factory=dict)

    @cached_property
    def local_names(self) -> frozenset[str]:
        """Names that the function binds."""
        arguments = self.node.args
        every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
        return frozenset([*bound_names(*self.node.body), *(a.arg for a in every if a is not None)])

    @cached_property
    def outside_names(self) -> frozenset[str]:
        """Names that the function reads and does not bind."""
        read = {
            node.id for node in ast.walk(self.node) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
        }
        return frozenset(read - self.local_names)

    @cached_property
    def attribute_names(self) -> frozenset[str]:
        """Names of the attributes that the function reads."""
        return frozenset(node.attr for node in ast.walk(self.node) if isinstance(node, ast.Attribute))


def parameters(node: ast.FunctionDef) -> list[ast.arg]:
    """All parameters of a definition."""
    a = node.args
    return [*a.posonlyargs, *a.args, *([a.vararg] if a.vararg else []), *a.kwonlyargs, *([a.kwarg] if a.kwarg else [])]


class Definitions:
    """The functions of one text, by name and first line (that of the first decorator)."""

    def __init__(self, text: Text, tree: ast.AST):
        self._found: dict[tuple[str, int], Definition] = {}
        for node in ast.walk(tree):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
                self._found[(node.name, first)] = Definition(node, text)  # type: ignore[arg-type]

    def find(self, code: CodeType) -> Definition | None:
        return self._found.get((code.co_name, code.co_firstlineno))

    def of(self, node: ast.AST) -> Definition | None:
        """The definition whose text is this node."""
        return next((found for found in self._found.values() if found.node is node), None)


@lru_cache(maxsize=64)
def _of_file(filename: str, source: str) -> Definitions | None:
    text = Text(source, filename)
    try:
        return Definitions(text, ast.parse(text.source))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


_owners: dict[int, tuple[Any, Any]] = {}  # id of a code object of a cell -> (weak reference to it, session)


def register_code(code: CodeType, session: Any) -> None:
    """From now on functions made from `code`, or from code nested in it, belong to the session.

    Code objects compare by content, so cells of the same text would share a key: the key is the identity.
    """
    key = id(code)
    _owners[key] = (weakref.ref(code, lambda _: _owners.pop(key, None)), session)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            register_code(constant, session)


def session_of(function: Any) -> Any:
    """The session of the cell that defined a function; None for functions of modules."""
    owner = _owners.get(id(getattr(function, "__code__", None)))
    if owner is not None:
        return owner[1]
    return getattr(function, "__builtins__", {}).get(SESSION)  # text that the cell gave to `exec`


def definition_of(function: Any) -> Definition:
    """The text of a function; TL001 where it cannot be had."""
    code = getattr(function, "__code__", None)
    if isinstance(function, type):
        raise Refusal(say.NoFunction(function=f"the class `{function.__name__}`"))
    if getattr(code, "co_name", "") == "<lambda>":
        raise Refusal(say.NoFunction(function="a lambda"))
    if not isinstance(code, CodeType):
        raise Refusal(say.SourceUnavailable(function=getattr(function, "__name__", type(function).__name__)))
    session = session_of(function)
    found = None
    if session is not None and id(code) in _owners:
        found = session.definitions.find(code)
    elif not code.co_filename.startswith("<") or linecache.getlines(code.co_filename):
        found = _in_file(code)
    if found is None:
        raise Refusal(say.SourceUnavailable(function=function.__name__))
    if isinstance(found.node, ast.AsyncFunctionDef):
        remedy = "write `def`"
        raise Refusal(say.GeneratorKernel(what="`async def`", remedy=remedy), found.text.span(found.node))
    return found


def _in_file(code: CodeType) -> Definition | None:
    linecache.checkcache(code.co_filename)
    lines = linecache.getlines(code.co_filename)
    definitions = _of_file(code.co_filename, "".join(lines)) if lines else None
    return definitions.find(code) if definitions else None
