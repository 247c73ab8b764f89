"""What the commands write: diagnostics for people, for programs and for GitHub."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

from ..source.diagnostic import Diagnostic
from ..source.text import Text
from .compiling import Found


def show(text: Text, diagnostics: tuple[Diagnostic, ...]) -> None:
    """Diagnostics with their lines, on standard error."""
    from ..source.render import render

    if diagnostics:
        print(render(text, diagnostics, colour=sys.stderr.isatty()), end="", file=sys.stderr)


def _write_text(found: list[Found]) -> None:
    for item in found:
        d = item.diagnostic
        place = f"{item.unit.place}:{d.span.line}:{d.span.column + 1}" if d.span else item.unit.place
        severity = "" if d.severity == "error" else f"{d.severity}: "
        print(f"{place}: {d.code} {severity}{' '.join(d.message.split())}")
    errors = sum(item.diagnostic.severity == "error" for item in found)
    others = len(found) - errors
    said = [f"{n} {word}{'s' * (n != 1)}" for n, word in ((errors, "error"), (others, "warning")) if n]
    print(f"Found {' and '.join(said)}." if said else "All checks passed!")


def _write_json(found: list[Found]) -> None:
    print(json.dumps([_as_json(item) for item in found], indent=2, ensure_ascii=False))


def _as_json(item: Found) -> dict[str, Any]:
    d = item.diagnostic
    span = d.span
    return {
        "path": str(item.unit.path),
        "cell": item.unit.cell,
        "line": span.line if span else None,
        "column": span.column + 1 if span else None,
        "end_line": span.end_line if span else None,
        "end_column": span.end_column + 1 if span else None,
        "code": d.code,
        "slug": d.slug,
        "severity": d.severity,
        "message": d.message,
        "help": d.help,
        "notes": [{"message": note.message, "line": note.span.line if note.span else None} for note in d.notes],
        "fixes": [
            {
                "title": fix.title,
                "line": fix.span.line,
                "column": fix.span.column + 1,
                "end_line": fix.span.end_line,
                "end_column": fix.span.end_column + 1,
                "replacement": fix.replacement,
            }
            for fix in d.fixes
        ],
    }


def _write_github(found: list[Found]) -> None:
    """Workflow commands, which GitHub shows as annotations at the lines of the file."""
    kinds = {"error": "error", "warning": "warning", "note": "notice"}
    for item in found:
        d = item.diagnostic
        fields = {"file": str(item.unit.path), "title": f"{d.code} ({d.slug})"}
        said = d.message + (f"\nhelp: {d.help}" if d.help else "")
        if item.unit.cell is not None:
            # A line of the cell is no line of the notebook's file.
            said = f"cell {item.unit.cell}, line {d.span.line if d.span else '?'}: {said}"
        elif d.span:
            fields |= {"line": str(d.span.line), "col": str(d.span.column + 1)}
            fields |= {"endLine": str(d.span.end_line), "endColumn": str(d.span.end_column + 1)}
        written = ",".join(f"{key}={_escaped(value, ':,')}" for key, value in fields.items())
        print(f"::{kinds[d.severity]} {written}::{_escaped(said)}")


def _escaped(text: str, more: str = "") -> str:
    for character in "%\r\n" + more:
        text = text.replace(character, f"%{ord(character):02X}")
    return text


FORMATS: dict[str, Callable[[list[Found]], None]] = {"text": _write_text, "json": _write_json, "github": _write_github}
