"""Pictures of layouts: a corner of a tile as text, and as an HTML table whose colours tell threads or banks apart.

The HTML has inline styles only, so that a notebook that is not trusted shows it too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .maps import FragmentMap, SharedMap

ROWS, COLUMNS = 16, 16  # of a picture
HUES = 8


def shape_text(shape: Sequence[int]) -> str:
    """A shape as Python writes it."""
    if not shape:
        return "()"
    return f"({shape[0]},)" if len(shape) == 1 else f"({', '.join(map(str, shape))})"


def fragment_text(one: FragmentMap) -> str:
    """`thread.register` of the elements in the upper left corner."""
    cells = _corner(one.shape, 1, lambda *index: f"{one.threads(*index)[0]}.{one.register(*index)}")
    return "\n".join([one.summary, *_notes(one.note), f"thread.register{_where(one.shape, 1)}:", *_lines(cells, 1)])


def fragment_html(one: FragmentMap) -> str:
    """The same with a colour for each thread."""

    def cell(*index: int) -> tuple[str, int]:
        thread = one.threads(*index)[0]
        return f"{thread}.{one.register(*index)}", thread

    return _html(one.summary, one.note, f"thread.register{_where(one.shape, 1)}", _corner(one.shape, 1, cell), 1)


def shared_text(one: SharedMap) -> str:
    """The banks of the elements in the upper left corner."""
    step = _step(one)
    cells = _corner(one.shape, step, lambda *index: str(one.bank(*index)))
    said = [*_notes(one.note), *map(_use, one.uses)]
    return "\n".join([one.summary, *said, f"bank{_where(one.shape, step)}:", *_lines(cells, step)])


def shared_html(one: SharedMap) -> str:
    """The same with a colour for each group of four banks, which serve 16 bytes."""
    step = _step(one)

    def cell(*index: int) -> tuple[str, int]:
        bank = one.bank(*index)
        return str(bank), bank // 4

    note = "\n".join([*_notes(one.note), *map(_use, one.uses)])
    return _html(one.summary, note, f"bank{_where(one.shape, step)}", _corner(one.shape, step, cell), step)


def _step(one: SharedMap) -> int:
    """Columns from one to the next that is shown: where eight 16-byte chunks fit, chunks; else banks."""
    columns, chunk = one.shape[-1], max(16 // one.itemsize, 1)
    if columns % chunk == 0 and columns // chunk >= 4:
        return chunk
    return max(4 // one.itemsize, 1)


def _where(shape: Sequence[int], step: int) -> str:
    parts = []
    rows, columns = (1, 1, *shape)[-2:]
    if rows > ROWS:
        parts.append(f"the first {ROWS} of {rows} rows")
    if step > 1:
        parts.append(f"every {_ordinal(step)} of {columns} columns")
    elif columns > COLUMNS:
        parts.append(f"the first {COLUMNS} of {columns} columns")
    if len(shape) > 2:
        parts.append(f"index {', '.join('0' * (len(shape) - 2))} of the leading dimensions")
    return f" ({', '.join(parts)})" if parts else ""


def _ordinal(number: int) -> str:
    endings = {1: "st", 2: "nd", 3: "rd"}
    return f"{number}{'th' if number % 100 in (11, 12, 13) else endings.get(number % 10, 'th')}"


def _corner(shape: Sequence[int], step: int, cell: Callable[..., Any]) -> list[list[Any]]:
    leading = (0,) * (len(shape) - 2)
    rows = range(min(shape[-2], ROWS)) if len(shape) > 1 else range(1)
    columns = range(0, min(shape[-1], COLUMNS * step), step) if shape else range(1)
    if not shape:
        return [[cell()]]
    if len(shape) == 1:
        return [[cell(column) for column in columns]]
    return [[cell(*leading, row, column) for column in columns] for row in rows]


def _use(use: Any) -> str:
    """What bulk copies or products make of a tile."""
    return f"{use.subject}{f' (line {use.line})' if use.line else ''}: {use}"


def _notes(note: str) -> list[str]:
    return [note] if note else []


def _lines(cells: list[list[str]], step: int) -> list[str]:
    heads = [str(number * step) for number in range(len(cells[0]))]
    width = max(len(text) for row in (heads, *cells) for text in row)
    side = len(str(len(cells) - 1))
    lines = [" " * side + "  " + " ".join(text.rjust(width) for text in heads)]
    lines += [f"{number:>{side}}  " + " ".join(text.rjust(width) for text in row) for number, row in enumerate(cells)]
    return lines


def _html(summary: str, note: str, caption: str, cells: list[list[tuple[str, int]]], step: int) -> str:
    head = "".join(f'<th style="{_HEAD}">{number * step}</th>' for number in range(len(cells[0])))
    body = "".join(
        f'<tr><th style="{_HEAD}">{number}</th>'
        + "".join(f'<td style="{_CELL};background-color:{_colour(kind)}">{text}</td>' for text, kind in row)
        + "</tr>"
        for number, row in enumerate(cells)
    )
    said = "".join(f"<div>{escape(line)}</div>" for line in note.split("\n") if line)
    return (
        f'<div style="margin:0.5em 0"><div><b>{escape(summary)}</b></div>{said}<div>{escape(caption)}</div>'
        f'<div style="overflow-x:auto"><table style="border-collapse:collapse"><tr><th style="{_HEAD}"></th>{head}</tr>'
        f"{body}</table></div></div>"
    )


_HEAD = "padding:0 4px;font:11px monospace;text-align:right;font-weight:normal;opacity:0.7"
_CELL = "padding:0 4px;font:11px monospace;text-align:right;color:#111;border:1px solid #fff"


def _colour(kind: int) -> str:
    """One of a few hues, lighter with every round through them."""
    red, green, blue = _HUES[kind % HUES]
    lift = min(kind // HUES % 4, 3) * 14
    return f"#{min(red + lift, 255):02x}{min(green + lift, 255):02x}{min(blue + lift, 255):02x}"


_HUES = (
    (158, 197, 232),
    (244, 192, 149),
    (167, 214, 167),
    (232, 166, 166),
    (196, 178, 222),
    (211, 180, 160),
    (240, 184, 217),
    (214, 210, 140),
)
