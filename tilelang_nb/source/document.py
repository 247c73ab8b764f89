"""A file with texts to compile, a `.py` file or a notebook, and the same file with other texts in it.

Whatever does not belong to a changed text stays as it is, character for character: line ends, a byte order mark, the
layout of a notebook's JSON, its outputs and other cells.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from .text import Text

MAGIC = re.compile(r"%%tilelang(\s|$)")
_BLANK = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()


class NotReadable(ValueError):
    """The file is no text, or no notebook."""


def without_magic(text: str) -> str:
    """The text of a cell, its `%%tilelang` line left blank: the other lines keep their numbers."""
    if "%%tilelang" not in text:
        return text
    lines = text.splitlines(keepends=True)
    for number, line in enumerate(lines):
        if MAGIC.match(line):
            lines[number] = line[len(line.rstrip("\r\n")) :]
            return "".join(lines)
        if line.strip() and not line.lstrip().startswith("#"):
            break
    return text


@dataclass(frozen=True)
class Unit:
    """A text to compile: a whole file, or one `%%tilelang` cell of a notebook with its number among all cells.

    options: what stands behind `%%tilelang`.
    """

    path: Path
    source: str
    first_line: int = 1
    cell: int | None = None
    options: str = ""

    @property
    def place(self) -> str:
        return f"{self.path}:cell {self.cell}" if self.cell is not None else str(self.path)

    @property
    def text(self) -> Text:
        return Text(self.source, self.place, self.first_line)


@dataclass(frozen=True)
class PlainCell:
    """The lines of a notebook's cell without `%%tilelang`."""

    lines: tuple[str, ...]


@dataclass(frozen=True)
class Document:
    """raw: the text of the file behind its byte order mark, with the line ends that it has."""

    path: Path
    raw: str
    mark: bool = False

    @staticmethod
    def read(path: Path) -> Document:
        """OSError: it cannot be read; NotReadable: it is no UTF-8."""
        found = path.read_bytes()
        mark = found.startswith(codecs.BOM_UTF8)
        try:
            return Document(path, found.decode("utf-8-sig"), mark)
        except UnicodeDecodeError:
            raise NotReadable("it is no UTF-8 text") from None

    def write(self) -> None:
        """Write the file.  OSError: it cannot be written."""
        self.path.write_bytes((codecs.BOM_UTF8 if self.mark else b"") + self.raw.encode("utf-8"))

    def parts(self) -> Iterator[Unit | PlainCell]:
        """The texts in order, with the plain cells between them.  NotReadable: the file is no notebook."""
        if self.path.suffix != ".ipynb":
            yield Unit(self.path, self.raw)
            return
        try:
            cells = list(json.loads(self.raw)["cells"])
        except (ValueError, KeyError, TypeError):
            raise NotReadable("it is no notebook") from None
        for number, cell in enumerate(cells, 1):
            if cell.get("cell_type") != "code":
                continue
            lines = "".join(cell.get("source", "")).split("\n")
            above = _magic_line(lines)
            if above is None:
                yield PlainCell(tuple(lines))
            else:
                options = lines[above - 1].removeprefix("%%tilelang").strip()
                yield Unit(self.path, "\n".join(lines[above:]), above + 1, number, options)

    def with_texts(self, sources: Mapping[Unit, str]) -> Document:
        """The file with other sources for some of its units."""
        if self.path.suffix != ".ipynb":
            return replace(self, raw=next(iter(sources.values()), self.raw))
        raw = self.raw
        for unit, source in sorted(sources.items(), key=lambda item: item[0].cell or 0, reverse=True):
            start, stop = _source_place(raw, (unit.cell or 1) - 1)
            head = "".join(json.loads(raw[start:stop])).split("\n")[: unit.first_line - 1]
            raw = raw[:start] + _rewritten(raw[start:stop], "\n".join([*head, source]), raw.isascii()) + raw[stop:]
        return replace(self, raw=raw)


def _magic_line(lines: list[str]) -> int | None:
    """The number of the line of `%%tilelang`, counted from 1; None if the cell has none at its top."""
    for index, line in enumerate(lines):
        if MAGIC.match(line):
            return index + 1
        if line.strip() and not line.lstrip().startswith("#"):
            return None
    return None


# -- the text of a JSON document --------------------------------------------------------------------------------------


def _source_place(raw: str, cell: int) -> tuple[int, int]:
    """From where to where the `source` of a cell stands in a notebook's text."""
    cells = dict(_members(raw, _past_blanks(raw, 0)))["cells"][0]
    return dict(_members(raw, list(_elements(raw, cells))[cell][0]))["source"]


def _members(raw: str, at: int) -> Iterator[tuple[str, tuple[int, int]]]:
    """The keys of the object that starts at a place, with where their values stand."""
    at = _past_blanks(raw, at + 1)
    while raw[at] != "}":
        key, at = _DECODER.raw_decode(raw, at)
        start = _past_blanks(raw, _past_blanks(raw, at) + 1)
        stop = _DECODER.raw_decode(raw, start)[1]
        yield key, (start, stop)
        at = _past_comma(raw, stop)


def _elements(raw: str, at: int) -> Iterator[tuple[int, int]]:
    """Where the elements of the array that starts at a place stand."""
    at = _past_blanks(raw, at + 1)
    while raw[at] != "]":
        stop = _DECODER.raw_decode(raw, at)[1]
        yield at, stop
        at = _past_comma(raw, stop)


def _past_comma(raw: str, at: int) -> int:
    at = _past_blanks(raw, at)
    return _past_blanks(raw, at + 1) if raw[at] == "," else at


def _past_blanks(raw: str, at: int) -> int:
    found = _BLANK.match(raw, at)
    return found.end() if found else at


def _rewritten(written: str, text: str, ascii_only: bool) -> str:
    """A cell's source, a string or a list of lines, with another text; lines that stay keep their spelling."""
    if not written.startswith("["):
        return json.dumps(text, ensure_ascii=ascii_only)
    places = list(_elements(written, 0))
    spelt: dict[Any, str] = {json.loads(written[start:stop]): written[start:stop] for start, stop in places}
    opening, closing = written[: places[0][0]], written[places[-1][1] :]
    comma = written[places[0][1] : places[1][0]] if len(places) > 1 else "," + (opening[1:] or " ")
    lines = [line for line in re.split(r"(?<=\n)", text) if line]
    return (
        opening + comma.join(spelt.get(line) or json.dumps(line, ensure_ascii=ascii_only) for line in lines) + closing
    )
