"""Diagnostics as text: the form of the page, carets under the right cells, nothing that acts on a terminal."""

from __future__ import annotations

import re

import pytest

from tilelang_nb.source import catalogue as say
from tilelang_nb.source.diagnostic import Diagnostic, Note
from tilelang_nb.source.display import width
from tilelang_nb.source.render import WIDEST_LINE, count, render
from tilelang_nb.source.text import Span, Text

KERNEL = """@T.prim_func
def k(A: T.Tensor((16,), "float32")):
    with T.Kernel(1, threads=16):
        for i in T.Parallel(16):
            x = y = A[i]
            A[i] = x"""


def on(text: Text, line: int, fragment: str) -> Span:
    column = text.line(line).index(fragment)
    return Span(line, column, line, column + len(fragment))


def chained(span: Span | None, **more) -> Diagnostic:
    return say.ChainedAssignment(statements="`x = A[i]` and `y = x`").at(span, **more)


def test_the_sample_of_the_specification_is_rendered_character_by_character():
    text = Text("\n\n\n\n\n        x = y = A[i]", "In[3]")
    assert render(text, [chained(on(text, 6, "x = y = A[i]"))]) == (
        "error[TL101]: chained assignment\n"
        " --> In[3]:6:9\n"
        "6 |         x = y = A[i]\n"
        "  |         ^^^^^^^^^^^^ one target per assignment in a kernel\n"
        "  = help: write `x = A[i]` and `y = x`\n"
        "\n"
        "1 error\n"
    )


def test_a_cell_of_several_diagnostics_with_notes(golden):
    text = Text(KERNEL, "In[3]", first_line=6)
    here = on(text, 10, "x = y = A[i]")
    loop = Note("in the iterations of this loop", on(text, 9, "for i in T.Parallel(16):"))
    found = [
        chained(here, notes=(loop, Note("Python evaluates the value once"))),
        say.UninitialisedRead(buffer="x").at(on(text, 11, "x")),
        say.InternalError(problem="no text\nsecond line", report="a\nb").at(None),
    ]
    golden(render(text, found), "source/render/several.txt")


LEFT_OF_THE_CARET = {
    "ascii": "value = ",
    "accents": "é_ü = ",
    "combining": "e\u0301e\u0301 = ",
    "cjk": "変数 = ",
    "halfwidth": "\uff76\uff85 = ",
    "fullwidth": "\uff21\uff22 = ",
    "hangul_jamo": "\u1112\u1161\u11ab = ",
    "tab": "\tif x:\ty = ",
    "emoji": '"🚀", ',
    "emoji_skin_tone": '"👍🏽", ',
    "emoji_family": '"👩\u200d👩\u200d👧", ',
    "emoji_style": '"❤\ufe0f", ',
    "flag": '"🇫🇷", ',
    "escape_sequence": '"\x1b[31m", ',
    "bidi": '"\u202eabc\u202c", ',
    "zero_width_space": '"a\u200bb", ',
    "nul": '"\0", ',
}


@pytest.mark.parametrize("name", LEFT_OF_THE_CARET)
def test_carets_stand_under_the_marked_text(name, golden):
    text = Text(LEFT_OF_THE_CARET[name] + "A[i, j]", "In[1]")
    shown = render(text, [say.WrongNumberOfIndices("A", "1", "(16,)", "2", "A[i]").at(on(text, 1, "A[i, j]"))])
    source, marks = shown.splitlines()[2:4]
    assert source.endswith("A[i, j]")
    assert width(source) - width("A[i, j]") == marks.index("^")
    assert marks.count("^") == 7
    golden(shown, f"source/render/left_{name}.txt")


WIDTHS = {
    "a": 1,
    "é": 1,
    "e\u0301": 1,
    "変": 2,
    "🚀": 2,
    "👍🏽": 2,
    "👩\u200d👩\u200d👧": 2,
    "❤\ufe0f": 2,
    "🇫🇷": 2,
    "\u202e": 6,
}


@pytest.mark.parametrize("text", WIDTHS, ids=ascii)
def test_display_width(text):
    assert width(text) == WIDTHS[text]


def test_wide_characters_under_the_span_get_two_carets_each():
    text = Text("x = 変数", "In[1]")
    shown = render(text, [say.UndefinedName("変数", "").at(on(text, 1, "変数"))])
    assert "  |     ^^^^ no such name here" in shown


def test_nothing_in_the_output_acts_on_a_terminal():
    nasty = "\x1b]0;title\x07\x9b31m\u202e\u2066\u2028\x7f\ud800\r"
    text = Text(f"a = '{nasty}'", f"In{nasty}[1]")
    found = say.ExceptionWhileBuilding(f"ValueError: {nasty}", nasty).at(Span(1, 0, 1, 3), notes=(Note(nasty),))
    shown = render(text, [found])
    assert all(c == "\n" or c.isprintable() for c in shown)
    assert r"\x1b]0;title\x07" in shown and r"\u202e" in shown
    shown.encode("utf-8")


def test_a_span_of_several_lines_shows_its_first_and_last_line(golden):
    text = Text("def k():\n    def f(x):\n        y = x\n        return y\n    f(1)", "In[1]")
    golden(render(text, [say.NestedFunction("f").at(Span(2, 4, 4, 16))]), "source/render/several_lines.txt")


def test_a_span_of_two_lines_leaves_nothing_out():
    text = Text("f(1,\n  2)", "In[1]")
    lines = render(text, [say.BadArgument("too many", "").at(Span(1, 0, 2, 4))]).splitlines()
    assert lines[2:6] == ["1 | f(1,", "  | ^^^^ this argument does not fit", "2 |   2)", "  |   ^^"]


@pytest.mark.parametrize("column", [0, 3, 40])
def test_an_empty_span_gets_one_caret_even_beyond_the_line(column):
    text = Text("x =", "In[1]")
    lines = render(text, [say.SyntaxMistake("a value is missing", "").at(Span(1, column, 1, column))]).splitlines()
    assert lines[3] == "  | " + " " * column + "^ Python cannot read this"


def test_a_diagnostic_without_a_place_has_no_snippet():
    shown = render(Text(""), [say.SourceUnavailable("k").at(None)])
    assert shown.splitlines()[0] == "error[TL001]: the source text of `k` cannot be found"
    assert shown.splitlines()[1].startswith("  = help: define it in a cell or a file")


def test_a_place_outside_the_text_is_named_without_a_snippet():
    shown = render(Text("x", "In[1]"), [chained(Span(7, 4, 7, 9))])
    assert " --> In[1]:7:5\n  = help:" in shown


@pytest.mark.parametrize("start", [2, 900, 1990])
def test_a_very_long_line_is_cut_around_the_marked_place(start):
    line = "".join(f"{n:04} " for n in range(400))
    text = Text(line[:start] + "<here>" + line[start + 6 :], "In[1]")
    source, marks = render(text, [chained(on(text, 1, "<here>"))]).splitlines()[2:4]
    assert len(source) < WIDEST_LINE + 20
    assert source[marks.index("^") :].startswith("<here>")


def test_line_numbers_of_all_places_share_one_gutter():
    text = Text("\n" * 8 + "for a in b:\n    break", "In[1]")
    note = Note("this loop", Span(9, 0, 9, 11))
    lines = render(text, [chained(Span(10, 4, 10, 9), notes=(note,))]).splitlines()
    assert lines[1:3] == ["  --> In[1]:10:5", "10 |     break"]
    assert lines[4:8] == ["   = note: this loop", "  --> In[1]:9:1", " 9 | for a in b:", "   | -----------"]


def test_counts():
    error, warning = chained(None), say.UninitialisedRead("s").at(None)
    assert count([error]) == "1 error"
    assert count([error, error, warning]) == "2 errors, 1 warning"
    assert count([warning, warning]) == "2 warnings"
    assert render(Text(""), []) == ""


def test_spans_of_several_texts_are_shown_from_their_own_text():
    texts = {1: Text("first", "In[1]"), 2: Text("\nsecond", "In[2]")}
    note = Note("called here", Span(2, 0, 2, 6))
    shown = render(lambda span: texts[span.line], [chained(Span(1, 0, 1, 5), notes=(note,))])
    assert "In[1]:1:1\n1 | first" in shown and "In[2]:2:1\n2 | second" in shown


def test_coloured_text_is_the_plain_text_with_colours():
    text = Text(KERNEL, "In[3]")
    found = [chained(on(text, 5, "x = y = A[i]"))]
    coloured = render(text, found, colour=True)
    assert "\x1b[1;31merror[TL101]\x1b[0m" in coloured
    assert re.sub(r"\x1b\[[\d;]*m", "", coloured) == render(text, found)


def test_a_notebook_gets_bold_text_and_no_colour_of_ours():
    text = Text(KERNEL, "In[3]")
    found = [chained(on(text, 5, "x = y = A[i]"))]
    bold = render(text, found, bold=True)
    assert "\x1b[1merror[TL101]\x1b[0m" in bold
    assert set(re.findall(r"\x1b\[([\d;]*)m", bold)) == {"0", "1"}
    assert re.sub(r"\x1b\[[\d;]*m", "", bold) == render(text, found)
