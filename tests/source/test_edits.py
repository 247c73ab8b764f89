"""Edits of a text: exact in characters, none over another, line ends kept."""

from __future__ import annotations

import pytest

from tilelang_nb.source.diagnostic import Diagnostic, Fix
from tilelang_nb.source.edits import apply, chosen
from tilelang_nb.source.text import Span, Text


def fix(line: int, column: int, end_column: int, replacement: str, end_line: int | None = None) -> Fix:
    return Fix("", Span(line, column, end_line or line, end_column), replacement)


def diagnostic(*fixes: Fix) -> Diagnostic:
    return Diagnostic("TL101", "", "error", "", "", "", fixes[0].span, (), fixes)


def test_columns_count_characters() -> None:
    assert (
        apply(Text("变é = '\U0001f600'; x = y"), [fix(1, 10, 11, "z"), fix(1, 0, 2, "ab")])
        == "ab = '\U0001f600'; z = y"
    )


def test_lines_count_from_the_first_line_of_the_cell() -> None:
    assert apply(Text("a\nb\nc", "In[1]", 2), [fix(3, 0, 1, "B")]) == "a\nB\nc"


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
def test_new_lines_end_as_the_others_do(ending: str) -> None:
    assert apply(Text(f"a{ending}b{ending}"), [fix(1, 0, 1, "x\ny")]) == f"x{ending}y{ending}b{ending}"
    assert apply(Text(f"a{ending}b"), [fix(2, 0, 1, "x\ny")]) == f"a{ending}x{ending}y"


def test_a_form_feed_is_no_line_end() -> None:
    assert apply(Text("a\x0cb\nc"), [fix(1, 2, 3, "B"), fix(2, 0, 1, "C")]) == "a\x0cB\nC"


def test_an_edit_over_several_lines() -> None:
    assert apply(Text("one\ntwo\nthree"), [fix(1, 2, 3, "E\nT", end_line=3)]) == "onE\nTee"


@pytest.mark.parametrize("wrong", [fix(4, 0, 0, "x"), fix(1, 9, 9, "x"), fix(0, 0, 0, "x")])
def test_an_edit_outside_the_text_is_refused(wrong: Fix) -> None:
    with pytest.raises(ValueError, match="outside the text"):
        apply(Text("a\nb"), [wrong])


def test_edits_that_overlap_are_refused_and_never_chosen_together() -> None:
    a, b, c = fix(1, 0, 3, "x"), fix(1, 2, 4, "y"), fix(1, 4, 5, "z")
    with pytest.raises(ValueError, match="meet"):
        apply(Text("abcdef"), [a, b])
    assert [edit for _, edit in chosen([diagnostic(a), diagnostic(b), diagnostic(c)])] == [a, c]


def test_of_alternatives_only_the_first_is_chosen() -> None:
    a, b = fix(1, 0, 1, "x"), fix(1, 2, 3, "y")
    assert [edit for _, edit in chosen([diagnostic(a, b)])] == [a]
