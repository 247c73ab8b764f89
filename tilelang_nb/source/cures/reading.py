"""What the cures ask of a text: the one node that a message means, the name of the language, how a line begins."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable
from typing import Any

from ..diagnostic import Fix
from ..syntax_tree import Places
from ..text import Span


def the(at: Places, span: Span, kind: Any, wanted: Callable[[Any], bool] = lambda node: True) -> Any:
    """The node of a kind at a place, or the only one inside it; None where that is not clear."""
    found = [node for node in at.inside(span, kind) if wanted(node)]
    exact = [node for node in found if at.spans[node] == span]
    return exact[0] if exact else found[0] if len(found) == 1 else None


def replaced(title: str, at: Places, node: ast.AST, replacement: str) -> Fix:
    """A fix that writes something in place of a node."""
    return Fix(title, at.spans[node], replacement)


def inserted(title: str, line: int, column: int, addition: str) -> Fix:
    """A fix that only adds."""
    return Fix(title, Span(line, column, line, column), addition)


def between(at: Places, start: tuple[int, int], end: tuple[int, int]) -> str:
    """The text from one place to another."""
    return at.text.slice(Span(*start, *end))


def start(at: Places, node: ast.AST) -> tuple[int, int]:
    """The line and column where a node begins."""
    span = at.spans[node]
    return span.line, span.column


def end(at: Places, node: ast.AST) -> tuple[int, int]:
    """The line and column behind a node."""
    span = at.spans[node]
    return span.end_line, span.end_column


def language(at: Places) -> str:
    """What the text calls the namespace of the language: `T`, unless its kernels are written with another name."""
    for node in at.parents:
        if (
            isinstance(node, ast.Attribute)
            and node.attr in ("Kernel", "prim_func")
            and isinstance(node.value, ast.Name)
        ):
            return node.value.id
    return "T"


def indentation(at: Places, node: ast.AST) -> str | None:
    """The blanks before a statement; None if something else stands before it in its line."""
    span = at.spans[node]
    before = at.text.line(span.line)[: span.column]
    return before if not before.strip() else None


def joined(at: Places, node: ast.AST, statements: list[str]) -> str:
    """Statements to write in place of one: a line each, or behind semicolons where it shares its line."""
    blanks = indentation(at, node)
    return "; ".join(statements) if blanks is None else f"\n{blanks}".join(statements)


def operand(at: Places, node: ast.expr) -> str:
    """The text of an expression as something that `.` and `[` may follow, and that binds like a name."""
    written = at.written(node)
    closed = isinstance(node, (ast.Name, ast.Attribute, ast.Subscript, ast.Call, ast.List, ast.Tuple))
    return written if closed else f"({written})"


def quoted(text: str) -> str:
    """A text as Python writes it, on one line, in double quotes."""
    return json.dumps(" ".join(text.split()), ensure_ascii=False)


def fresh(at: Places, name: str) -> str:
    """A name that the text does not have yet."""
    taken, found, number = at.names(), name, 2
    while found in taken:
        found, number = f"{name}_{number}", number + 1
    return found
