"""The traces in `tests/fixtures/traces`, which the tests of the viewer read, are what the package makes today."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"
sys.path.append(str(FIXTURES))

import make_traces  # noqa: E402  (a script beside the traces)
import trace_cells  # noqa: E402

NAMES = list(trace_cells.CELLS)


@pytest.fixture(scope="module", params=NAMES)
def trace(request: pytest.FixtureRequest) -> dict[str, Any]:
    return make_traces.trace(request.param)


@pytest.mark.parametrize("name", NAMES)
def test_the_committed_trace_is_up_to_date(name: str, request: pytest.FixtureRequest) -> None:
    path = make_traces.FOLDER / f"{name}.json"
    now = make_traces.text(make_traces.trace(name))
    if request.config.getoption("--update-goldens"):
        path.write_text(now, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == now, "run `python tests/fixtures/make_traces.py` and look at the change"


def test_no_other_traces_lie_there() -> None:
    assert {path.stem for path in make_traces.FOLDER.glob("*.json")} == set(NAMES)


def stages(trace: dict[str, Any]) -> list[dict[str, Any]]:
    return [stage for kernel in trace["kernels"] for stage in kernel["stages"]]


def test_every_line_of_a_stage_has_its_origin_or_the_reason_why_not(trace: dict[str, Any]) -> None:
    for stage in stages(trace):
        if "text" not in stage:
            assert stage["state"] in ("failed", "not_reached", "on_demand") or "same_as" in stage
            continue
        text = stage["text"].split("\n")
        linked = [line for first, many, *_ in stage["lines"] for line in range(first, first + many)]
        left = [line for first, many, _ in stage["gaps"] for line in range(first, first + many)]
        blank = [number for number, line in enumerate(text, 1) if not line.strip()]
        assert sorted({*linked, *left, *blank}) == list(range(1, len(text) + 1)), stage["name"]
        assert not set(linked) & set(left)


def test_origins_are_lines_of_the_cell_and_further_lines_have_a_kind(trace: dict[str, Any]) -> None:
    last = trace["cell"]["text"].count("\n") + 1
    for stage in stages(trace):
        for _, _, (origin, *further), *kinds in stage.get("lines", ()):
            assert 2 <= origin <= last
            assert len(further) == len(kinds[0] if kinds else ())
            assert set(kinds[0] if kinds else ()) <= {"call", "return", "statement", "definition"}
            assert origin not in further


def test_a_stage_with_the_text_of_another_names_one_that_has_it(trace: dict[str, Any]) -> None:
    for kernel in trace["kernels"]:
        texts = {stage["name"] for stage in kernel["stages"] if "text" in stage}
        assert {stage["same_as"] for stage in kernel["stages"] if "same_as" in stage} <= texts
        assert kernel["default"] in {stage["name"] for stage in kernel["stages"]}


def test_the_cell_is_the_body_below_its_magic_line(trace: dict[str, Any]) -> None:
    cell, source = trace["cell"]["text"], trace["source"]
    assert cell.split("\n", source["first_line"] - 1)[-1] == source["text"]


def test_every_code_has_its_page_and_every_fix_the_whole_patched_cell(trace: dict[str, Any]) -> None:
    said = [*trace["diagnostics"], *(found for kernel in trace["kernels"] for found in kernel["findings"])]
    assert {found["code"] for found in said} == set(trace["pages"])
    for fix in (fix for found in said for fix in found["fixes"]):
        assert fix["patched"].startswith("%%tilelang") and fix["patched"] != trace["cell"]["text"]
        assert fix["edits"] == [[*fix["span"], fix["replacement"]]]


def test_macro_lines_lead_to_their_own_line_and_to_the_calls_from_the_inside_out() -> None:
    trace = make_traces.trace("macro")
    tile = next(stage for stage in stages(trace) if stage["name"] == "tile")
    text, cell = tile["text"].split("\n"), trace["cell"]["text"].split("\n")
    own = cell.index("    x[i] = x[i] * factor") + 1
    inner, outer = (
        cell.index("    scale(x, i, factor)") + 1,
        cell.index("            scale_and_shift(x, i, 0.5, 1.0)") + 1,
    )
    (first,) = [number for number, line in enumerate(text, 1) if "* T.float32(0.5)" in line]
    (linked,) = [entry for entry in tile["lines"] if entry[0] <= first < entry[0] + entry[1]]
    calls = [line for line, kind in zip(linked[2][1:], linked[3]) if kind == "call"]
    assert (linked[2][0], calls) == (own, [inner, outer])


def test_what_a_macro_returns_leads_to_its_return_and_to_the_line_that_uses_it() -> None:
    trace = make_traces.trace("macro")
    cell = trace["cell"]["text"].split("\n")
    line = {number: text.strip() for number, text in enumerate(cell, 1)}
    square, bounded, low, call = (
        next(number for number, text in line.items() if text.startswith(start))
        for start in ("return v * v", "return T.min(", "low = ", "x[i] = bounded(")
    )
    for name in ("tile", "thread", "cuda"):
        stage = next(stage for stage in stages(trace) if stage["name"] == name)
        if "same_as" in stage:
            stage = next(one for one in stages(trace) if one["name"] == stage["same_as"])
        links = {
            (entry[2][0], of): kind for entry in stage["lines"] for of, kind in zip(entry[2][1:], (*entry[3:], [])[0])
        }
        assert links[call, square] == links[call, bounded] == "return", name
        assert links[low, square] == "return" and links[low, call] == "call", name
    macros = [child for turn in trace["kernels"][0]["unroll"]["iterations"] for child in turn["children"]]
    (used,) = [node["iterations"][0] for node in macros if (node["label"], node["line"]) == ("square", call)]
    assert used["statements"][1] < used["statements"][0] and used["also"], "the lines that hold what it returned"


def test_each_iteration_leads_to_its_own_lines_of_the_last_stage() -> None:
    (kernel,) = make_traces.trace("stencil")["kernels"]
    by_name = {stage["name"]: stage for stage in kernel["stages"]}
    last = by_name[by_name["thread"].get("same_as", "thread")]
    lines = {
        number: first + at
        for first, many, start in last["statements"]
        for at, number in enumerate(range(start, start + many))
    }
    outer = next(child for child in kernel["unroll"]["iterations"][0]["children"] if child["label"] == "(src, dst)")
    assert [turn["bound"] for turn in outer["iterations"]] == [["U", "U2"], ["V", "V2"]]
    text = last["text"].split("\n")
    for turn, names in zip(outer["iterations"], ("U2", "V2")):
        first, end = turn["statements"]
        own = " ".join(text[line - 1] for number, line in lines.items() if first <= number <= end)
        assert re.search(rf"\b{names}\[", own) and not re.search(rf"\b{'V2' if names == 'U2' else 'U2'}\[", own)
        inner = turn["children"][0]
        assert inner["names"] == ["d", "w"] and len(inner["iterations"]) == 7
        assert [child["label"] for child in inner["iterations"][0]["children"]] == ["tap"]
        assert inner["iterations"][3]["children"] == []


def test_shared_buffers_have_their_place_their_shape_and_the_line_that_allocates_them() -> None:
    trace = make_traces.trace("matmul")
    cell = trace["cell"]["text"].split("\n")
    arena = {buffer["name"]: buffer for buffer in trace["kernels"][0]["arena"]}
    versions = 2  # of the pipeline
    assert arena["A_s"]["bytes"] == versions * 64 * 32 * 2 and arena["A_s"]["shape"] == "64 × 32"
    (own,) = (arena.pop(name) for name in list(arena) if name.endswith("_tile"))
    assert "line" not in own and own["offset"] == 0  # in the place of tiles that are read no more
    assert {buffer["dtype"] for buffer in arena.values()} == {"float16"}
    assert all(f"{name} = T.alloc_shared(" in cell[buffer["line"] - 1] for name, buffer in arena.items())


def test_values_of_macro_parameters_read_as_written() -> None:
    (kernel,) = make_traces.trace("stencil")["kernels"]
    assert "T.Add(" not in json.dumps(kernel["unroll"])
    assert re.search(r'"row\[\d+ \+ c\]"', json.dumps(kernel["unroll"]))


def test_a_failed_cell_shows_the_stages_that_it_reached() -> None:
    failed = make_traces.trace("failed")
    assert [found["code"] for found in failed["diagnostics"]] == ["TL003", "TL101", "TL110"]
    states = {stage["name"]: stage["state"] for stage in stages(failed)}
    assert states["source"] == "landmark" and states["tile"] == "failed" and states["thread"] == "not_reached"
    late = {stage["name"]: stage for stage in stages(make_traces.trace("refused_by_lowering"))}
    assert late["plan-shared-memory"]["state"] == "failed" and late["plan-shared-memory"]["why"] == "1 error"
    assert "text" in late["tile"] and late["insert-barriers"]["state"] == "not_reached"
    broken = make_traces.trace("syntax_error")
    assert broken["kernels"] == [] and [stage["name"] for stage in broken["pipeline"]][:2] == ["source", "tile"]


def test_a_run_is_compared_with_the_one_before() -> None:
    trace = make_traces.trace("rerun")
    (before,) = trace["previous"]["kernels"].values()
    assert trace["previous"]["execution"] == 7 and trace["execution"] == 8
    assert "BK = 64, 64, 32" in trace["previous"]["cell"]["text"]
    assert "(64, 32)" in before["stages"]["tile"]
    assert before["facts"]["shared memory"] != trace["kernels"][0]["facts"][1]["value"]


def test_hostile_text_is_carried_as_it_is() -> None:
    text = json.dumps(make_traces.trace("hostile"), ensure_ascii=False)
    for part in ("</script><script>", "<img src=x onerror", "\\u001b[31m", "\u202e", "\U0001d538"):
        assert part in text
