"""Spans of lines and headers, and the name that compiled expressions carry: what needs no device value."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..source.syntax_tree import KERNEL_TEXT, places
from ..source.text import Span, Text

MARK = KERNEL_TEXT  # co_filename of compiled expressions


def line_span(text: Text, line: int) -> Span | None:
    """The written part of a line."""
    if not text.first_line <= line <= text.last_line:
        return None
    written = text.line(line)
    begin = len(written) - len(written.lstrip()) if written.strip() else 0
    return Span(line, begin, line, max(len(written.rstrip()), 1))


def header_span(text: Text, node: ast.AST) -> Span:
    """The span of a node; of a compound statement only its header, to the colon."""
    span = text.span(node)
    body = getattr(node, "body", None) or getattr(node, "cases", None)
    if not isinstance(node, (ast.stmt, ast.match_case)) or not isinstance(body, list):
        return span
    line, column = span.line, span.column
    for part in _header_parts(node):
        end = text.span(part)
        line, column = max((line, column), (end.end_line, end.end_column))
    while line <= span.end_line:  # the colon may stand behind parentheses, on a later line
        found = text.line(line).find(":", column)
        if found >= 0:
            return Span(span.line, span.column, line, found + 1)
        line, column = line + 1, 0
    return span


def narrowed(text: Text, span: Span) -> Span:
    """Only the header, where a span is that of a whole compound statement."""
    if span.line == span.end_line:
        return span
    at = places(text)
    whole = (node for node, place in at.spans.items() if place == span and isinstance(node, ast.stmt)) if at else ()
    return next((header_span(text, node) for node in whole), span)


def _header_parts(node: ast.AST) -> Iterator[ast.AST]:
    """What a header holds before its colon."""
    for name in ("target", "iter", "test", "subject", "args", "returns"):
        part = getattr(node, name, None)
        if isinstance(part, ast.arguments):
            yield from (inner for inner in ast.walk(part) if hasattr(inner, "lineno"))
        elif isinstance(part, ast.AST):
            yield part
    for item in getattr(node, "items", ()):
        yield item.optional_vars or item.context_expr
    yield from getattr(node, "bases", ())
    yield from (keyword.value for keyword in getattr(node, "keywords", ()))
