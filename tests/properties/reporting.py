"""What must hold of the report of any cell whatever: it comes in time, is located, and shows nothing of the compiler."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import tilelang_nb
from tilelang_nb.source.text import Span

INTERNALS = re.compile(r"Traceback \(most recent call last\)|__tl\b|__tb\.|tilelang_nb/")
# What no text of a diagnostic may hold, wherever it comes from: names of the compiler's modules and classes, addresses.
WORDS = re.compile(
    r"\btirx?\b|\btvm\b|\btilelang_nb\.(?!compile_cell)|object at 0x|<kernel>|<locals>|site-packages|\bPrimExpr\b"
    r"|'(?:Value|Buffer|Region|DeviceLoop|Dtype|Macro|Namespace|Refusal|Poisoned|IntImm)'(?: object|$)"
    r"|\b(?:a|an) (?:Value|Buffer|Region|DeviceLoop|Dtype|Macro|NoneType|Tensor|Kernel)\b"
)


@contextmanager
def time_limit(seconds: int) -> Iterator[None]:
    """TimeoutError out of whatever runs longer (where the platform has alarms)."""

    def late(*_: Any) -> None:
        raise LateError(f"no end after {seconds} seconds")

    if not hasattr(signal, "SIGALRM"):
        yield
        return
    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


class LateError(KeyboardInterrupt):
    """A cell takes too long; as the user's own interrupt, no part of the build takes it for a mistake of the cell."""


def compiled(text: str, seconds: int = 20) -> Any:
    """The compilation of a text, whose report is checked."""
    try:
        with time_limit(seconds):
            made = tilelang_nb.compile_cell(text, {})
            shown = made.to_text()
            made.to_json()
            assert made.to_html() or made.ok
    except LateError as late:
        raise AssertionError(f"{late}:\n{text}") from None
    check_report(made, shown)
    return made


def check_report(made: Any, shown: str) -> None:
    """No TL900, nothing internal, and every place within the text."""
    codes = [found.code for found in made.diagnostics]
    assert "TL900" not in codes, shown
    assert not INTERNALS.search(shown), shown
    for found in made.diagnostics:
        for text in (found.message, found.help, found.label, *map(str, found.notes), *map(str, found.fixes)):
            assert not WORDS.search(text), f"{found.code}: {text}"
        assert found.span is not None, shown
        places = [found.span, *(note.span for note in found.notes), *(fix.span for fix in found.fixes)]
        for place in places:
            if place is not None:
                check_inside(place, made.text)


def check_inside(span: Span, text: Any) -> None:
    """The range begins and ends on lines of the text, within their characters."""
    assert text.first_line <= span.line <= span.end_line <= text.last_line, span
    assert 0 <= span.column <= len(text.line(span.line)), span
    assert 0 <= span.end_column <= len(text.line(span.end_line)) + 1, span  # a caret may stand behind the line
    assert (span.line, span.column) <= (span.end_line, span.end_column), span
