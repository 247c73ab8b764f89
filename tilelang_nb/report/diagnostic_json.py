"""Diagnostics in the JSON report: their places, their fixes as edits and as the patched cell, the pages of their codes.

diagnostic  {code, slug, severity, message, label, help, span, notes[{message, span}], fixes}
fix         {title, sure, span, replacement, edits[[line, column, end line, end column, text]], patched}
page        {slug, severity, title, meaning, bad, said, good}
patched     {text, titles}: the cell with one fix of every diagnostic that has one
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..source.catalogue.page import UnknownCode, page
from ..source.diagnostic import Diagnostic, Fix
from ..source.edits import apply, chosen
from ..source.text import Span, Text


def diagnostic(found: Diagnostic, text: Text, whole: Text | None = None) -> dict[str, Any]:
    """A diagnostic or finding with all its texts and places.

    text: what its places are in.  whole: the cell as typed, with the same line numbers, which fixes give patched.
    """
    return {
        "code": found.code,
        "slug": found.slug,
        "severity": found.severity,
        "message": string(found.message),
        "label": string(found.label),
        "help": string(found.help),
        "span": place(found.span),
        "notes": [{"message": string(note.message), "span": place(note.span)} for note in found.notes],
        "fixes": [_fix(fix, whole or text) for fix in found.fixes],
    }


def _fix(fix: Fix, text: Text) -> dict[str, Any]:
    span = place(fix.span)
    assert span is not None
    return {
        "title": string(fix.title),
        "sure": True,  # an edit is attached to a message only where it keeps the meaning
        "span": span,
        "replacement": string(fix.replacement),
        "edits": [[*span, string(fix.replacement)]],
        "patched": _applied(text, [fix]),
    }


def patched(diagnostics: Sequence[Diagnostic], text: Text, whole: Text | None = None) -> dict[str, Any] | None:
    """The cell with every fix made that does not meet another; None where nothing can be mended."""
    taken = [fix for _, fix in chosen(diagnostics)]
    new = _applied(whole or text, taken) if taken else None
    return None if new is None else {"text": new, "titles": [string(fix.title) for fix in taken]}


def _applied(text: Text, fixes: Sequence[Fix]) -> str | None:
    try:
        return string(apply(text, fixes))
    except (ValueError, IndexError):  # a place outside the text: of a kernel from another cell
        return None


def pages(said: Iterable[Diagnostic]) -> dict[str, dict[str, str]]:
    """The pages of the codes that occur."""
    found = {}
    for code in dict.fromkeys(one.code for one in said):
        try:
            about = page(code)
        except UnknownCode:
            continue
        found[code] = {
            "slug": about.slug,
            "severity": about.severity,
            "title": about.title,
            "meaning": about.meaning,
            "bad": about.bad,
            "said": about.said,
            "good": about.good,
        }
    return found


def place(span: Span | None) -> list[int] | None:
    """[line, column, end line, end column]."""
    return [span.line, span.column, span.end_line, span.end_column] if span else None


def string(text: str) -> str:
    """Half of a surrogate pair, which no encoding can carry, is replaced."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
