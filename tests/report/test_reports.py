"""Reports of a cell and of a kernel: what they show, and that nothing of it can act on the page or the terminal."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser

import pytest

from tilelang_nb.report import diagnostics_html, to_html, to_json, to_page, to_text
from tilelang_nb.report import page as page_module
from tilelang_nb.report.facts import changes, facts, launch_shapes
from tilelang_nb.report.stage_json import numbered, runs
from tilelang_nb.source import catalogue as say
from tilelang_nb.source.text import Span, Text

TAGS = {"div", "span", "b", "details", "summary"}
ATTRIBUTES = {"style", "open"}
# What an untrusted notebook keeps of inline styles.
PROPERTIES = re.compile(
    r"(display|border(-\w+)*|padding|margin|font(-\w+)*|white-space|overflow(-x)?|opacity|line-height"
    r"|background|text-align|width|(min|max)-(width|height)|cursor)$"
)


class Markup(HTMLParser):
    """The tags, styles and text of a piece of HTML; an assertion fails where it is not well formed."""

    def __init__(self, text: str):
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.styles: list[str] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.open.append(tag)
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attributes}
        self.styles += [value for name, value in attributes if name == "style"]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, text):
        self.words.append(text)

    @property
    def text(self):
        return "".join(self.words)


@pytest.fixture
def reports(cell, refused_cell):
    return [cell, refused_cell, cell.kernels["scale"]]


def test_the_text_of_a_cell(cell, golden):
    golden(to_text(cell), "report/cell.txt")


def test_the_text_of_a_refused_cell(refused_cell, golden):
    golden(to_text(refused_cell), "report/refused.txt")


def test_stages_asked_for_are_shown_in_full(cell):
    shown = to_text(cell, show=("thread",))
    assert "--- scale: thread\n" + cell.kernels["scale"].stages[-1].text in shown
    assert "--- scale: tile" not in shown


def test_what_the_caller_shows_itself_is_left_out(cell):
    for report in (to_text, to_html):
        assert "TL211" in report(cell, launches=False) and "TL401" not in report(cell, launches=False)
        assert "TL401" in report(cell, diagnostics=False) and "TL211" not in report(cell, diagnostics=False)
        assert "2.0" in report(cell) and "x = 2.0" not in report(cell, launches=False)


def test_a_cell_with_nothing_to_show_shows_nothing(make_cell):
    assert to_text(make_cell({})) == to_html(make_cell({})) == ""


class TestHtml:
    def test_only_what_untrusted_notebooks_keep(self, reports):
        for subject in reports:
            found = Markup(to_html(subject))
            assert found.tags <= TAGS
            assert found.attributes <= ATTRIBUTES
            for style in found.styles:
                assert not re.search(r"var\(|hsl|inherit|url|expression", style)
                for rule in style.split(";"):
                    assert PROPERTIES.match(rule.partition(":")[0].strip()), rule
                    assert not re.search(r"(?<!\d)\.\d", rule), f"{rule}: a number begins with a digit there"

    def test_the_colour_of_the_text_is_left_to_the_page(self, reports):
        for subject in reports:
            assert not any(re.search(r"(^|;)\s*color:", style) for style in Markup(to_html(subject)).styles)

    def test_its_content(self, cell, golden):
        text = Markup(to_html(cell).replace("</div>", "\n</div>").replace("</summary>", "\n</summary>")).text
        golden(re.sub(r"\n\s*\n+", "\n", text), "report/cell_html.txt")

    def test_every_stage_says_whether_it_changed_the_program(self, cell):
        text = Markup(to_html(cell)).text
        assert "● tile" in text and "● lower-tile-operations" in text
        assert "○ infer-layouts" in text and text.count("no change") == 2

    def test_a_stage_that_changed_nothing_is_not_repeated(self, cell):
        assert to_html(cell).count("T.Pipelined(8, num_stages=3)") == 2  # source and tile

    def test_only_stages_asked_for(self, cell):
        text = Markup(to_html(cell, show=("tile",))).text
        assert "● tile" in text and "thread " not in text.split("● tile")[1].split("Unrolled")[0].split("\n")[0]
        assert "lower-tile-operations" not in text

    def test_texts_are_escaped(self, make_cell, make_kernel):
        nasty = "</div><script>alert(1)</script>\x1b[31m\u202e&amp;"
        text = Text(f"x = '{nasty}'", nasty)
        found = say.ExceptionWhileBuilding(nasty, nasty).at(Span(1, 0, 1, 5))
        kernel = make_kernel(nasty, (found,), text=text, printed=(nasty,), findings=(found,))
        for shown in (to_html(make_cell({nasty: kernel}, (found,), text)), diagnostics_html(text, (found,))):
            markup = Markup(shown)
            assert markup.tags <= TAGS
            assert not re.search("[\x00-\x09\x0b-\x1f\u202e]", shown)
            assert "<script>alert(1)</script>" in markup.text

    def test_carets_stand_under_wide_characters_whatever_their_width(self):
        text = Text("变量 = B[i, j]", "In[1]")
        found = say.WrongNumberOfIndices("B", "1", "(4,)", "2", "B[i]").at(Span(1, 5, 1, 12))
        assert '<span style="opacity:0">变量 = </span><b>^^^^^^^</b>' in diagnostics_html(text, (found,))

    def test_a_code_is_explained_once(self, refused_cell):
        assert Markup(to_html(refused_cell)).text.count("what TL004") == 1

    def test_long_stages_are_cut_in_a_notebook_and_whole_in_the_page(self, cell):
        assert "… 6 more lines" in to_html(cell, limit=10)
        assert "more lines" not in to_page(cell)

    def test_iterations_of_one_form_are_shown_once(self, cell):
        text = Markup(to_html(cell)).text
        assert text.count("macro") == 1
        assert "and 39 more like it" in text and "40 iterations" in text

    def test_the_page_is_a_document_for_light_and_dark_screens(self, cell):
        page = to_page(cell)
        assert page.startswith("<!doctype html>")
        assert "<title>In[3] - tilelang_nb</title>" in page
        assert "prefers-color-scheme: dark" in page
        assert not re.search(r"""(src|href)\s*=\s*["']?\w+:""", page), "it loads nothing"
        assert to_page(cell.kernels["scale"]).count("<title>scale - tilelang_nb</title>") == 1

    def test_a_page_holds_the_viewer_and_no_text_of_it_ends_its_element(self, make_cell, monkeypatch):
        monkeypatch.setattr(page_module, "provided", lambda name: lambda: "export const mount = '</script><!--'")
        page = to_page(make_cell({}, (), Text("x = '</script><script>attack()</script>'")))
        elements = re.findall(r'<script type="application/json" id="([\w-]+)">(.*?)</script>', page, re.DOTALL)
        assert [name for name, _ in elements] == ["tilelang-nb-trace", "tilelang-nb-viewer"]
        assert json.loads(elements[0][1])["source"]["text"] == "x = '</script><script>attack()</script>'"
        assert json.loads(elements[1][1]) == "export const mount = '</script><!--'"
        assert page.count("<script") == page.count("</script>") == 3

    def test_a_page_without_the_viewer_is_the_static_report(self, cell, monkeypatch):
        monkeypatch.setattr(page_module, "provided", lambda name: lambda: "")
        assert "<script" not in to_page(cell) and "T.copy(" in to_page(cell)


class TestJson:
    def test_it_carries_its_version(self, cell):
        data = json.loads(to_json(cell))
        assert (data["format"], data["version"]) == ("tilelang_nb.trace", 1)
        assert data["source"] == {"name": "In[3]", "text": cell.text.source, "first_line": 1}

    def test_lines_of_stages_lead_to_lines_of_the_cell(self, cell):
        (kernel,) = json.loads(to_json(cell))["kernels"]
        tile = next(stage for stage in kernel["stages"] if stage["name"] == "tile")
        lines = tile["text"].split("\n")
        covered = {first + k: (of, *kinds) for first, count, of, *kinds in tile["lines"] for k in range(count)}
        where = next(number for number, line in enumerate(lines, 1) if "T.copy(A[" in line)
        assert covered[where] == ([7, 4], ["definition"])  # line 4 allocates what it copies to
        assert max(covered) <= len(lines)

    def test_equal_stages_are_given_once(self, cell):
        (kernel,) = json.loads(to_json(cell))["kernels"]
        stages = {stage["name"]: stage for stage in kernel["stages"]}
        assert stages["infer-layouts"]["same_as"] == "tile" and "text" not in stages["infer-layouts"]
        assert "text" in stages[stages["thread"]["same_as"]]

    def test_everything_about_a_kernel_is_there(self, cell):
        (kernel,) = json.loads(to_json(cell))["kernels"]
        assert kernel["parameters"][0] == {
            "name": "A",
            "kind": "tensor",
            "dtype": "float16",
            "shape": ["n", 64],
            "strides": None,
        }
        assert kernel["launches"] == [{"name": "scale", "grid": ["T.ceildiv(n, 32)"], "block": ["128"]}]
        assert [buffer["name"] for buffer in kernel["arena"]] == ["A_s", "B_s"]
        assert kernel["findings"][0]["code"] == "TL401"
        assert kernel["printed"] == ["x = <1.0>\n", "x = 2.0"]
        loop = kernel["unroll"]["iterations"][0]["children"][0]
        assert (loop["kind"], loop["line"], len(loop["iterations"])) == ("for", 6, 40)
        assert loop["iterations"][3]["children"][0]["iterations"][0]["statements"] == [3, 3]

    def test_a_refused_kernel_shows_where_it_stopped(self, refused_cell):
        data = json.loads(to_json(refused_cell))
        broken = data["kernels"][1]
        assert data["ok"] is False and broken["ok"] is False
        assert broken["unroll"] is None and broken["span"] is None
        states = {stage["name"]: stage["state"] for stage in broken["stages"]}
        assert states.pop("source") == "landmark" and states.pop("tile") == "failed"
        assert set(states.values()) == {"not_reached"} and list(states)[-1] == "thread"
        assert broken["stages"][1]["why"] == "2 errors"
        error = next(found for found in data["diagnostics"] if found["code"] == "TL004")
        assert error["span"] == [13, 25, 13, 38]
        assert error["notes"] == [{"message": "`old` is bound here", "span": [11, 12, 11, 15]}]

    def test_half_of_a_surrogate_pair_does_not_break_it(self, make_cell):
        to_json(make_cell({}, (), Text("x = '\ud800'"))).encode("utf-8")

    def test_runs_of_equal_lines(self):
        assert runs([(1,), (1,), (), (1,)]) == [(1, 2, (1,)), (3, 1, ()), (4, 1, (1,))]
        assert numbered([None, 4, 5, 6, None, 6]) == [[2, 3, 4], [6, 1, 6]]


def test_facts_name_their_origin(cell):
    origins = {fact.name: fact.origin for fact in facts(cell.kernels["scale"])}
    assert origins == {
        "launch": "compiler",
        "shared memory": "compiler",
        "workspace W": "compiler",
        "compiled in": "compiler",
        "executed": "simulator",
    }


def test_the_shape_of_a_launch(cell, make_kernel):
    (shape,) = launch_shapes(cell.kernels["scale"])
    assert str(shape) == "T.ceildiv(n, 32) blocks of 128 threads"
    assert launch_shapes(make_kernel(refused=True)) == ()


def test_changes_are_counted_from_the_first_stage_of_the_program_on(cell):
    source, tile, same, lower, _ = changes(cell.kernels["scale"].stages)
    assert not source.new and not tile.new and not tile.removed
    assert not same.new and not same.removed
    lines = cell.kernels["scale"].stages[3].text.split("\n")
    assert "    for v in T.vectorized(4):" in {lines[number] for number in lower.new}
    assert lower.removed > 5
