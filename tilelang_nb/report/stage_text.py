"""A stage as text: readable lines, and for each the place in the user's text that it comes from."""

from __future__ import annotations

from typing import Any

from ..lowering.printed import printed_lines
from ..source.text import Span
from .readable import readable

WIDEST_HEADER = 100


def stage_text(module: Any) -> tuple[list[str], list[Span | None]]:
    """The functions of a module, one after the other, and per line the span it comes from (None: from no line).

    Never fails: what cannot be made readable is shown as TVM prints it.
    """
    lines: list[str] = []
    spans: list[Span | None] = []
    for _, function in sorted(module.functions.items(), key=lambda item: item[0].name_hint):
        printed = _printed(function)
        shown = [
            (part, span)
            for line, (_, span) in zip(readable(line for line, _ in printed), printed)
            for part in _wrapped(line)
        ]
        if lines:
            shown = [("", None), *shown]
        lines += [line for line, _ in shown]
        spans += [span for _, span in shown]
    return lines, spans


def _printed(function: Any) -> list[tuple[str, Span | None]]:
    try:
        return printed_lines(function)
    except Exception:  # printing with places is a convenience; the text alone is better than no text
        try:
            return [(line, None) for line in str(function).splitlines()]
        except Exception as error:
            return [(f"# this function cannot be printed: {type(error).__name__}", None)]


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
