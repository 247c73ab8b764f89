"""Lines of a cell are those of the editor, whatever stands above the magic."""

from __future__ import annotations

import pytest

from tilelang_nb.notebook.cell_text import hoist_magic, lines_above

BODY = "def f():\n    pass\n"


@pytest.mark.parametrize(
    ("above", "lines"),
    [
        ("%%tilelang\n", 1),
        ("\n\n%%tilelang\n", 3),
        ("%%time\n%%tilelang --quiet\n", 2),
        ("%%capture c\n%%time\n%%tilelang\n", 3),
    ],
)
@pytest.mark.parametrize("tail", ["", "\n", "\n\n   "])
def test_lines_above_the_body_are_counted_in_the_cell_as_typed(above: str, lines: int, tail: str) -> None:
    assert lines_above(BODY, above + BODY + tail) == lines


def test_a_body_that_is_no_part_of_the_cell_has_the_magic_line_above() -> None:
    assert lines_above(BODY, "") == 1
    assert lines_above(BODY, "get_ipython().run_cell_magic('tilelang', '', text)") == 1
    assert lines_above("", "%%tilelang\n") == 1


def test_comments_above_the_magic_move_below_it_and_the_body_stays() -> None:
    cell = ["# what this is\n", "\n", "%%tilelang --quiet\n", "x = 1\n"]
    moved = hoist_magic(cell)
    assert moved == ["%%tilelang --quiet\n", "# what this is\n", "\n", "x = 1\n"]
    assert moved.index("x = 1\n") == cell.index("x = 1\n")


@pytest.mark.parametrize("line", ["%%tilelang --help", "%%tilelang -h\n"])
def test_a_question_for_help_alone_gets_an_empty_body(line: str) -> None:
    assert hoist_magic([line]) == [line.rstrip() + "\n", "\n"]
    assert hoist_magic(["%%tilelang\n"]) == ["%%tilelang\n"]


def test_a_magic_line_that_ends_the_text_still_ends_with_a_newline() -> None:
    assert hoist_magic(["# only\n", "%%tilelang"]) == ["%%tilelang\n", "# only\n"]


@pytest.mark.parametrize(
    "cell",
    [
        ["x = 1\n", "%%tilelang\n"],
        ["%%time\n", "%%tilelang\n"],
        ["# note\n", "x = 1\n"],
        ["%%tilelang_other\n", "x\n"],
        ["'''\n", "%%tilelang\n", "'''\n"],
        [],
    ],
)
def test_other_cells_are_left_alone(cell: list[str]) -> None:
    assert hoist_magic(cell) == cell


def test_a_tab_after_the_magic_separates_its_options() -> None:
    assert hoist_magic(["%%tilelang\t--quiet\n", "x\n"])[0] == "%%tilelang --quiet\n"
