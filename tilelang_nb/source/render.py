"""Diagnostics as text: header, place, the source line with carets and label, notes, help, and a count.

`rows` gives the lines as parts with a role, from which plain text, coloured text and HTML are made; `render` is the
plain text.  The form:

    error[TL101]: chained assignment
     --> In[3]:6:9
    6 |         x = y = A[i]
      |         ^^^^^^^^^^^^ one target per assignment in a kernel
      = help: write `x = A[i]` and `y = x`
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from .diagnostic import Diagnostic
from .display import cells, plain
from .text import Span, Text

WIDEST_LINE = 160
LEFT_CONTEXT = 48
TextOf = Text | Callable[[Span], Text]


class Part(NamedTuple):
    """A piece of a rendered line; role: severity, message, gutter, place, source, caret, label, note or help."""

    role: str
    text: str


Row = list[Part]


LONGEST = 60_000  # characters of diagnostics; those after them are counted only


def render(text_of: TextOf, diagnostics: Iterable[Diagnostic], *, colour: bool = False, bold: bool = False) -> str:
    """The diagnostics, as many as fit into `LONGEST` characters, and a count line, ready to print; "" for none.

    text_of: the text that the spans speak of, or a function from a span to its text.
    colour: with ANSI colours, for a terminal.  bold: with ANSI bold alone: notebooks show colours of their own for
    ANSI's, which no theme makes readable on its background of errors.
    """
    found = tuple(diagnostics)
    if not found:
        return ""
    blocks: list[str] = []
    size = 0
    for diagnostic in found:
        if size > LONGEST:
            blocks.append(f"... and {len(found) - len(blocks):,} more: correct these first")
            break
        blocks.append("\n".join(_line(row, diagnostic, colour, bold) for row in rows(text_of, diagnostic)))
        size += len(blocks[-1])
    return "\n\n".join([*blocks, count(found)]) + "\n"


def count(diagnostics: Iterable[Diagnostic]) -> str:
    """`2 errors, 1 warning`."""
    numbers = Counter(diagnostic.severity for diagnostic in diagnostics)
    named = [(numbers[word], word) for word in ("error", "warning", "note") if numbers[word]]
    return ", ".join(f"{number} {word}{'s' if number > 1 else ''}" for number, word in named) or "no diagnostics"


def rows(text_of: TextOf, diagnostic: Diagnostic) -> list[Row]:
    """The lines of one diagnostic."""
    spans = [span for span in (diagnostic.span, *(note.span for note in diagnostic.notes)) if span]
    gutter = max((len(str(span.end_line)) for span in spans), default=1)
    first, *more = diagnostic.message.split("\n")
    header = [Part("severity", f"{diagnostic.severity}[{diagnostic.code}]"), Part("message", f": {plain(first)}")]
    result = [header, *([Part("message", " " * (gutter + 3) + plain(line))] for line in more)]
    if diagnostic.span:
        result += _snippet(text_of, diagnostic.span, gutter, "^", diagnostic.label)
    for note in diagnostic.notes:
        result += _remark("note", note.message, gutter)
        if note.span:
            result += _snippet(text_of, note.span, gutter, "-", "")
    if diagnostic.help:
        result += _remark("help", diagnostic.help, gutter)
    return result


def _remark(kind: str, text: str, gutter: int) -> list[Row]:
    first, *more = text.split("\n")
    start = [Part("gutter", " " * (gutter + 1) + "= "), Part(kind, f"{kind}: "), Part("message", plain(first))]
    return [start, *([Part("message", " " * (gutter + 5 + len(kind)) + plain(line))] for line in more)]


def _snippet(text_of: TextOf, span: Span, gutter: int, mark: str, label: str) -> Iterator[Row]:
    text = text_of if isinstance(text_of, Text) else text_of(span)
    yield [Part("gutter", " " * gutter + "--> "), Part("place", f"{plain(text.name)}:{span.line}:{span.column + 1}")]
    if not text.first_line <= span.line <= text.last_line:
        return
    if span.end_line == span.line:
        yield from _marked(text, span.line, span.column, span.end_column, gutter, mark, label)
        return
    # The label stands at the first line: the arrow's column is there, and the last line may be far away.
    yield from _marked(text, span.line, span.column, len(text.line(span.line).rstrip()), gutter, mark, label)
    if span.end_line > span.line + 1:
        yield [Part("gutter", "...")]
    last = text.line(span.end_line)
    yield from _marked(text, span.end_line, len(last) - len(last.lstrip()), span.end_column, gutter, mark, "")


def _marked(text: Text, line: int, start: int, stop: int, gutter: int, mark: str, label: str) -> Iterator[Row]:
    """A source line and the line of carets under its characters start..stop, at least one caret."""
    drawn = list(cells(text.line(line)))
    while drawn and drawn[-1][0].isspace() and len(drawn) > max(start, stop):
        drawn.pop()
    before = sum(width for _, width in drawn[:start]) + max(0, start - len(drawn))
    under = max(1, sum(width for _, width in drawn[start:stop]))
    source, before, under = _clip(drawn, start, before, under)
    yield [Part("gutter", f"{line:>{gutter}} | "), Part("source", source)]
    marks = [Part("gutter", " " * gutter + " | "), Part("caret", " " * before + mark * under)]
    yield [*marks, Part("label", f" {plain(label)}")] if label else marks


def _clip(drawn: list[tuple[str, int]], start: int, before: int, under: int) -> tuple[str, int, int]:
    """The drawn line, cut to what fits around the marked place, with where the carets begin and how many they are."""
    if sum(width for _, width in drawn) <= WIDEST_LINE:
        return "".join(cell for cell, _ in drawn), before, under
    first, dropped = 0, 0
    if before + under > WIDEST_LINE:
        while first < min(start, len(drawn)) and before - dropped > LEFT_CONTEXT:
            dropped += drawn[first][1]
            first += 1
    shown, room = [], WIDEST_LINE
    for cell, width in drawn[first:]:
        if width > room:
            break
        shown.append(cell)
        room -= width
    left, right = ("..." if first else ""), ("..." if first + len(shown) < len(drawn) else "")
    column = before - dropped
    return left + "".join(shown) + right, column + len(left), max(1, min(under, WIDEST_LINE - column))


COLOURS = {"gutter": "34", "caret": "1", "label": "1", "place": "34", "note": "1", "help": "1"}
SEVERITIES = {"error": "1;31", "warning": "1;33", "note": "1;36"}


def _line(row: Row, diagnostic: Diagnostic, colour: bool, bold: bool) -> str:
    if not colour and not bold:
        return "".join(part.text for part in row).rstrip()
    painted = []
    for role, text in row:
        code = SEVERITIES[diagnostic.severity] if role in ("severity", "caret", "label") else COLOURS.get(role)
        if not colour:
            code = "1" if code and code.startswith("1") else None
        painted.append(f"\x1b[{code}m{text}\x1b[0m" if code and text.strip() else text)
    return "".join(painted)
