"""How source text looks on a screen of fixed-width cells: escapes, tab stops and display widths.

Carets stand under the right characters only if every character left of them is counted as wide as it is drawn, and text
that could act on a terminal or reorder a line is drawn as an escape instead.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

TAB_STOP = 4
JOINER = "\u200d"
EMOJI_STYLE = "\ufe0f"


def escaped(character: str) -> str:
    """The character, or `\\x1b`, `\\u202e` for what must not reach a screen: control, format and bidi characters."""
    category = unicodedata.category(character)
    # The joiner only builds emoji and some scripts' letters; it is kept because hiding it would split them.
    if character == JOINER or category not in ("Cc", "Cf", "Cs", "Zl", "Zp"):
        return character
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def plain(text: str) -> str:
    """`text` on one line, with everything escaped that could act on a screen; a tab becomes a space."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(" " if character == "\t" else escaped(character) for character in text)


def cells(line: str) -> Iterator[tuple[str, int]]:
    """What each character of a line is drawn as, and how many cells wide."""
    column, previous = 0, ""
    for character in line:
        if character == "\t":
            drawn = " " * (TAB_STOP - column % TAB_STOP)
            width = len(drawn)
        else:
            drawn = escaped(character)
            width = len(drawn) if len(drawn) > 1 else _width(character, previous)
        yield drawn, width
        column, previous = column + width, character


def width(text: str) -> int:
    """The number of cells that `text` takes at the start of a line."""
    return len(text) if text.isascii() and text.isprintable() else sum(cell for _, cell in cells(text))


def _width(character: str, previous: str) -> int:
    if character.isascii():
        return 1
    if character == EMOJI_STYLE:  # turns a narrow symbol into a wide picture
        return 1 if previous and _width(previous, "") == 1 else 0
    code = ord(character)
    if character == JOINER or unicodedata.category(character) in ("Mn", "Me") or 0x1160 <= code <= 0x11FF:
        return 0
    if previous == JOINER and code >= 0x2190:  # one picture out of several characters
        return 0
    if 0x1F3FB <= code <= 0x1F3FF and previous and _width(previous, "") == 2:  # skin tone of the picture before it
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1
