"""Fixes applied to a text: from its end to its start, none over another, every other character kept."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence

from .diagnostic import Diagnostic, Fix
from .text import Span, Text

_LINE_END = re.compile(r"\r\n|\r|\n")


def apply(text: Text, fixes: Iterable[Fix]) -> str:
    """The source of `text` with the fixes made.  ValueError: two of them overlap, or one lies outside the text.

    New lines of a replacement end as the line where it starts does.
    """
    source = text.source
    starts, ends = _lines(source)
    placed = sorted(
        ((_offset(text, fix.span.line, fix.span.column, starts), _end(text, fix.span, starts), fix) for fix in fixes),
        key=lambda item: item[:2],
    )
    for (_, end, _), (start, _, following) in itertools.pairwise(placed):
        if start < end:
            raise ValueError(f"two edits meet at line {following.span.line}")
    for start, end, fix in reversed(placed):
        ending = ends[fix.span.line - text.first_line] or next((found for found in ends if found), "\n")
        source = source[:start] + fix.replacement.replace("\n", ending) + source[end:]
    return source


def chosen(diagnostics: Sequence[Diagnostic]) -> list[tuple[Diagnostic, Fix]]:
    """The first fix of every diagnostic that has one, without those that meet an earlier one."""
    taken: list[tuple[Diagnostic, Fix]] = []
    for diagnostic in diagnostics:
        for fix in diagnostic.fixes[:1]:
            if not any(_meet(fix.span, other.span) for _, other in taken):
                taken.append((diagnostic, fix))
    return taken


def _meet(a: Span, b: Span) -> bool:
    """Overlap, or begin at one place: of two insertions there, the second would no longer be where it was meant."""
    if (a.line, a.column) == (b.line, b.column):
        return True
    return (a.line, a.column) < (b.end_line, b.end_column) and (b.line, b.column) < (a.end_line, a.end_column)


def _lines(source: str) -> tuple[list[int], list[str]]:
    """Where the lines of a text start, and how each of them ends."""
    starts, ends = [0], []
    for match in _LINE_END.finditer(source):
        starts.append(match.end())
        ends.append(match[0])
    return starts, [*ends, ""]


def _end(text: Text, span: Span, starts: list[int]) -> int:
    return _offset(text, span.end_line, span.end_column, starts)


def _offset(text: Text, line: int, column: int, starts: list[int]) -> int:
    index = line - text.first_line
    if not 0 <= index < len(starts) or not 0 <= column <= len(text.line(line)):
        raise ValueError(f"an edit outside the text, at line {line}")
    return starts[index] + column
