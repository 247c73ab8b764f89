"""A report as JSON, version 1: all that a viewer needs, and the only form that JavaScript sees.

Lines count from 1, columns from 0, ends are exclusive.  A reader refuses another version.

    {format, version, generator, ok, target, arch, source{name, text, first_line}, diagnostics, kernels}
    kernel      {name, ok, span, parameters, stages, unroll, launches, facts, arena, findings, printed}
    diagnostic  {code, slug, severity, message, label, help, span, notes[{message, span}],
                 fixes[{title, span, replacement}]}
    stage       {name, reason, milliseconds, changed, language, plus, minus, text | same_as,
                 lines[[first, count, [source line, ...]]], statements[[first, count, first statement]]}
    unroll      {kind, line, label, definition_line, iterations[{value, statements[first, last], children}]}
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from ..source.diagnostic import Diagnostic
from ..source.text import Span
from .facts import changes, facts, launch_shapes, lowered
from .stage_text import stage_statements

FORMAT = "tilelang_nb.trace"
VERSION = 1
PRODUCT = __name__.partition(".")[0]


def to_json(subject: Any) -> str:
    """The report of a Compilation or of one Kernel."""
    return json.dumps(to_data(subject), ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def to_data(subject: Any) -> dict[str, Any]:
    """The same as dicts, lists, strings and numbers."""
    kernels = getattr(subject, "kernels", None)
    text = subject.text
    return {
        "format": FORMAT,
        "version": VERSION,
        "generator": f"{PRODUCT} {getattr(sys.modules[PRODUCT], '__version__', '')}".strip(),
        "ok": bool(subject.ok),
        "target": subject.target.kind,
        "arch": subject.target.arch,
        "source": {"name": text.name, "text": _string(text.source), "first_line": text.first_line},
        "diagnostics": [diagnostic(found) for found in subject.diagnostics],
        "kernels": [
            kernel(one, name) for name, one in (kernels.items() if kernels is not None else [(subject.name, subject)])
        ],
    }


def kernel(one: Any, name: str) -> dict[str, Any]:
    """One kernel, under the name that the cell gives it."""
    program = lowered(one)
    return {
        "name": name,
        "ok": bool(one.ok),
        "span": _span(one.span),
        "parameters": [
            {
                "name": parameter.name,
                "kind": parameter.kind,
                "dtype": str(parameter.dtype),
                "shape": [_extent(extent) for extent in parameter.shape],
                "strides": None if parameter.strides is None else [_extent(stride) for stride in parameter.strides],
            }
            for parameter in one.parameters
        ],
        "stages": stages(one),
        "unroll": unroll(one.unroll) if one.program is not None else None,
        "launches": [
            {"name": shape.name, "grid": list(shape.grid), "block": list(shape.block)} for shape in launch_shapes(one)
        ],
        "facts": [
            {"name": fact.name, "value": fact.value, "detail": fact.detail, "origin": fact.origin}
            for fact in facts(one)
        ],
        "arena": [
            {"name": buffer.name, "offset": buffer.offset, "bytes": buffer.bytes}
            for buffer in (program.shared_memory if program else ())
        ],
        "findings": [diagnostic(found) for found in one.findings],
        "printed": [_string(line) for line in one.printed],
    }


def stages(one: Any) -> list[dict[str, Any]]:
    """The stages in order; the text of one that is equal to an earlier one is given by the name of that."""
    seen: dict[str, str] = {}
    result = []
    spans = one.program.statement_spans if one.program is not None else ()
    for stage, change in zip(one.stages, changes(one.stages)):
        entry: dict[str, Any] = {
            "name": stage.name,
            "reason": stage.reason,
            "milliseconds": round(float(stage.milliseconds), 3),
            "changed": bool(stage.changed),
            "language": "python" if stage.name == "source" else "tir",
            "plus": len(change.new),
            "minus": change.removed,
        }
        if stage.text in seen:
            entry["same_as"] = seen[stage.text]
        else:
            seen[stage.text] = stage.name
            entry["text"] = _string(stage.text)
            entry["lines"] = [[first, count, list(lines)] for first, count, lines in runs(stage.lines) if lines]
            entry["statements"] = numbered(stage_statements(stage.module, spans)) if stage.module is not None else []
        result.append(entry)
    return result


def runs(values: Iterable[Any]) -> list[tuple[int, int, Any]]:
    """Equal neighbours as (number of the first from 1, how many, value)."""
    result: list[tuple[int, int, Any]] = []
    for number, value in enumerate(values, 1):
        if result and result[-1][2] == value:
            first, count, _ = result[-1]
            result[-1] = (first, count + 1, value)
        else:
            result.append((number, 1, value))
    return result


def numbered(statements: Sequence[int | None]) -> list[list[int]]:
    """Lines of consecutive statements as [first line, how many, number of the first statement]."""
    keys = [None if number is None else number - line for line, number in enumerate(statements)]
    return [[first, count, key + first - 1] for first, count, key in runs(keys) if key is not None]


def unroll(node: Any) -> dict[str, Any]:
    """The record of compile-time expansion.  Statement numbers are those of `statements` in the stages."""
    return {
        "kind": node.kind,
        "line": node.line,
        "label": _string(node.label),
        "definition_line": node.definition_line,
        "iterations": [
            {
                "value": _string(turn.value),
                "statements": [turn.first_statement, turn.last_statement],
                "children": [unroll(child) for child in turn.children],
            }
            for turn in node.iterations
        ],
    }


def diagnostic(found: Diagnostic) -> dict[str, Any]:
    """A diagnostic or finding with all its texts and places."""
    return {
        "code": found.code,
        "slug": found.slug,
        "severity": found.severity,
        "message": _string(found.message),
        "label": _string(found.label),
        "help": _string(found.help),
        "span": _span(found.span),
        "notes": [{"message": _string(note.message), "span": _span(note.span)} for note in found.notes],
        "fixes": [
            {"title": _string(fix.title), "span": _span(fix.span), "replacement": _string(fix.replacement)}
            for fix in found.fixes
        ],
    }


def _span(span: Span | None) -> list[int] | None:
    return [span.line, span.column, span.end_line, span.end_column] if span else None


def _extent(extent: Any) -> int | str:
    return extent if isinstance(extent, int) else str(extent)


def _string(text: str) -> str:
    """Half of a surrogate pair, which no encoding can carry, is replaced."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
