"""A stage as text: readable lines, and for each the place in the user's text that it comes from."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from ..lowering.printed import PrintedLine, printed_lines
from ..source.collector import collector_paused
from ..source.text import Span
from .readable import readable

WIDEST_HEADER = 100


def stage_text(module: Any) -> tuple[list[str], list[Span | None]]:
    """The functions of a module, one after the other, and per line the span it comes from (None: from no line).

    Never fails: what cannot be made readable is shown as TVM prints it.
    """
    lines = _lines(module)
    return [line.text for line in lines], [line.span for line in lines]


def stage_statements(module: Any, statement_spans: Sequence[Any]) -> list[int | None]:
    """Per line of `stage_text`, the number of the front end's statement that it comes from.

    statement_spans: `TileProgram.statement_spans`; passes keep these very objects, which tells apart the iterations of
    a compile-time loop that all stand on one line of the text.
    """
    numbers = {span: number for number, span in enumerate(statement_spans) if span is not None}
    return [numbers.get(line.origin) if line.origin is not None else None for line in _lines(module)]


def stage_files(module: Any) -> list[str | None]:
    """Per line of `stage_text`, the name of the text that its place is in; None for a line without a place."""
    names: dict[int, str] = {}  # by span object: many lines share one
    found: list[str | None] = []
    for line in _lines(module):
        if line.origin is None:
            found.append(None)
            continue
        if id(line.origin) not in names:
            names[id(line.origin)] = str(line.origin.source_name.name)
        found.append(names[id(line.origin)])
    return found


@collector_paused()
@lru_cache(maxsize=128)  # text, HTML and JSON of one cell ask for the same stages; modules never change
def _lines(module: Any) -> tuple[PrintedLine, ...]:
    lines: list[PrintedLine] = []
    for _, function in sorted(module.functions.items(), key=lambda item: item[0].name_hint):
        printed = _printed(function)
        lines += [PrintedLine("", None)] if lines else []
        lines += [
            line._replace(text=part)
            for text, line in zip(readable(line.text for line in printed), printed)
            for part in _wrapped(text)
        ]
    return tuple(lines)


def _printed(function: Any) -> list[PrintedLine]:
    try:
        return printed_lines(function)
    except Exception:  # places are a convenience: the text without them is better than none
        try:
            return [PrintedLine(line, None) for line in str(function).splitlines()]
        except Exception as error:
            return [PrintedLine(f"# this function cannot be printed: {type(error).__name__}", None)]


def _wrapped(line: str) -> list[str]:
    """A `def` line with one parameter a line where it is long."""
    if len(line) <= WIDEST_HEADER or not line.startswith("def ") or not line.endswith("):"):
        return [line]
    name, _, inside = line[:-2].partition("(")
    depth, parameters, start = 0, [], 0
    for position, character in enumerate(inside):
        depth += (character in "([{") - (character in ")]}")
        if character == "," and depth == 0:
            parameters.append(inside[start:position].strip())
            start = position + 1
    return [f"{name}(", *(f"    {parameter}," for parameter in [*parameters, inside[start:].strip()]), "):"]
