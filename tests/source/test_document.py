"""A file with other texts in it: everything else stays as it is, character for character."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tilelang_nb.source.document import Document, NotReadable, PlainCell, Unit, without_magic

NOTEBOOK = """{
 "nbformat": 4, "metadata": {"source": ["no"], "é": 1e3},
 "cells": [
  {"cell_type": "markdown", "source": "# \\u00e9"},
  {"outputs": [{"text": ["a\\n"], "source": 1}],   "cell_type":"code",
   "source": [
    "# first\\n",
    "%%tilelang\\n",
    "x = '\\u00e9'\\n",
    "y = 2"
   ], "execution_count": null},
  {"cell_type": "code", "source": "%%tilelang\\nz = 3\\n"},
  {"cell_type": "code", "source": ["plain = 1"]}
 ]
}
"""


def units(file: Document) -> list[Unit]:
    return [part for part in file.parts() if isinstance(part, Unit)]


def test_cells_are_counted_with_all_others_and_lines_from_the_top_of_the_cell(tmp_path: Path) -> None:
    file = Document(tmp_path / "book.ipynb", NOTEBOOK)
    assert [(unit.cell, unit.first_line, unit.source) for unit in units(file)] == [
        (2, 3, "x = 'é'\ny = 2"),
        (3, 2, "z = 3\n"),
    ]
    assert list(file.parts())[-1] == PlainCell(("plain = 1",))


def test_only_the_changed_lines_of_a_notebook_change() -> None:
    file = Document(Path("book.ipynb"), NOTEBOOK)
    first, second = units(file)
    after = file.with_texts({first: "x = 'é'\na = 1\ny = 5", second: "z = 'ü'\n"})
    assert after.raw == NOTEBOOK.replace('"y = 2"', '"a = 1\\n",\n    "y = 5"').replace("z = 3", "z = 'ü'")
    assert [unit.source for unit in units(after)] == ["x = 'é'\na = 1\ny = 5", "z = 'ü'\n"]


def test_text_that_is_ascii_stays_ascii() -> None:
    raw = json.dumps({"cells": [{"cell_type": "code", "source": ["%%tilelang\n", "a = 1"]}]})
    file = Document(Path("book.ipynb"), raw)
    after = file.with_texts({units(file)[0]: "a = 'é'"})
    assert after.raw == raw.replace("a = 1", "a = '\\u00e9'")


@pytest.mark.parametrize("raw", [b"a = 1\r\nb = 2\r\n", b"\xef\xbb\xbfa = 1\n", "a = 'é'".encode()])
def test_bytes_of_a_file_survive(tmp_path: Path, raw: bytes) -> None:
    path = tmp_path / "cell.py"
    path.write_bytes(raw)
    file = Document.read(path)
    file.with_texts({}).write()
    assert path.read_bytes() == raw
    (unit,) = units(file)
    file.with_texts({unit: unit.source.replace("a", "x")}).write()
    assert path.read_bytes() == raw.replace(b"a", b"x")


@pytest.mark.parametrize("raw", ["[]", "{}", "no", '{"cells": 3}'])
def test_what_is_no_notebook_is_said(raw: str) -> None:
    with pytest.raises(NotReadable):
        list(Document(Path("book.ipynb"), raw).parts())


def test_what_is_no_text_is_said(tmp_path: Path) -> None:
    path = tmp_path / "cell.py"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(NotReadable):
        Document.read(path)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("%%tilelang\nx = 1\n", "\nx = 1\n"),
        ("%%tilelang --target sim\r\nx = 1", "\r\nx = 1"),
        ("\n# first\n%%tilelang\nx", "\n# first\n\nx"),
        ("%%tilelang", ""),
        ("x = 1\n%%tilelang\n", "x = 1\n%%tilelang\n"),
        ("%%tilelangs\n", "%%tilelangs\n"),
        ("x = 1\n", "x = 1\n"),
    ],
)
def test_the_magic_line_of_a_cell_is_left_blank(text: str, expected: str) -> None:
    assert without_magic(text) == expected
