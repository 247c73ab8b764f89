"""Places in the user's text: from TVM's spans, which every statement carries, to ours."""

from __future__ import annotations

from typing import Any

from tilelang_nb.source.text import Span


def source_span(span: Any) -> Span | None:
    """The place that a TVM span stands for (its columns count from 1, ours from 0); None for no span."""
    if span is None:
        return None
    return Span(int(span.line), int(span.column) - 1, int(span.end_line), int(span.end_column) - 1)


def line_of(span: Any) -> int | None:
    """The line of the cell where a TVM span begins; None for no span."""
    place = source_span(span)
    return None if place is None else place.line
