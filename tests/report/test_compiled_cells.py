"""Reports of cells that the compiler really made."""

from __future__ import annotations

import ast
import json
import re

import pytest
from fixtures.trace_cells import ROLES

import tilelang_nb
from tilelang_nb.report import to_html, to_page, to_text
from tilelang_nb.runtime.kernel import SimulatorFindings

CELL = """
import numpy as np

@T.macro
def tap(A, i, w):
    return w * A[i]

@T.prim_func
def blur(A: T.Tensor((256,), "float32"), B: T.Tensor((256,), "float32")):
    with T.Kernel(2, threads=128) as bx:
        row = T.alloc_shared((132,), "float32")
        T.clear(row)
        T.copy(A[bx * 128:bx * 128 + 128], row[0:128])
        for i in T.Parallel(128):
            acc = 0.0
            for d, weight in enumerate([1.0, 2.0, 4.0]):
                acc += tap(row, i + d, weight)
            B[bx * 128 + i] = acc

blur(np.ones(256, np.float32), np.zeros(256, np.float32))
"""


@pytest.fixture(scope="module")
def compilation():
    made = tilelang_nb.compile_cell(CELL, {"T": tilelang_nb.language}, filename="In[5]")
    assert made.ok, to_text(made)
    return made


@pytest.fixture(scope="module")
def kernel(compilation):
    return compilation.kernels["blur"]


def test_every_stage_reads_as_python(kernel):
    for stage in kernel.stages:
        if stage.name not in ("cuda", "ptx", "sass"):
            ast.parse(stage.text)


def test_no_stage_shows_how_operations_are_encoded(kernel):
    for stage in kernel.stages:
        assert not re.search(r'call_extern\("\w+", "tl|metadata\[|layout=None', stage.text), stage.text


def test_every_statement_of_the_kernel_is_found_in_every_stage(kernel):
    """Lines 11 to 18 are the statements; 16 expands to nothing of its own.

    The loop of line 14 has one turn a thread: once the threads are bound to it, no loop is left.
    """
    dealt_out = False
    for stage in kernel.stages[1:-2]:  # PTX and SASS keep what is left of them
        dealt_out = dealt_out or stage.name == "lower-tile-operations"
        lines = {number for numbers in stage.lines for number in numbers}
        assert {10, 11, 12, 13, 18} <= lines, stage.name
        assert (14 in lines) != dealt_out, stage.name
        assert lines & {6, 17}, stage.name


def test_each_turn_of_an_expanded_loop_leads_to_its_own_lines(compilation):
    (data,) = json.loads(compilation.to_json())["kernels"]
    tile = next(stage for stage in data["stages"] if stage["name"] == "tile")
    statement = {first + k: number + k for first, count, number in tile["statements"] for k in range(count)}
    lines = tile["text"].split("\n")
    loop = next(child for child in data["unroll"]["iterations"][0]["children"] if child["kind"] == "for")
    assert [turn["value"] for turn in loop["iterations"]] == ["(0, 1.0)", "(1, 2.0)", "(2, 4.0)"]
    for turn, weight in zip(loop["iterations"], ("1.0", "2.0", "4.0")):
        first, last = turn["statements"]
        own = [lines[line - 1] for line, number in statement.items() if first <= number <= last]
        assert re.findall(r"T\.float32\((1\.0|2\.0|4\.0)\)", "".join(own)) == [weight], own


def test_the_reports_agree_on_the_facts(compilation, kernel):
    for report in (to_text(compilation), to_html(compilation), to_page(kernel), compilation.to_json()):
        assert "2 blocks of 128 threads" in report
        assert "528 bytes" in report


def test_every_stage_up_to_cuda_is_in_the_json_and_the_rest_when_it_was_compiled():
    text = CELL.replace("weight", "factor")  # a program that no other test compiles
    compilation = tilelang_nb.compile_cell(text, {"T": tilelang_nb.language})

    def states():
        (data,) = json.loads(compilation.to_json())["kernels"]
        return {stage["name"]: stage for stage in data["stages"]}

    before = states()
    assert "text" in before["cuda"] and before["cuda"]["state"] == "landmark"
    assert {"flatten-buffers", "lower-intrinsics"} <= {name for name, one in before.items() if one["group"] == "tir"}
    assert before["ptx"]["state"] == "on_demand" and "text" not in before["ptx"]
    assert any(first for first, _, (line, *_), *_ in before["cuda"]["lines"] if line == 17)
    compiled = next(stage for stage in compilation.kernels["blur"].stages if stage.name == "ptx")
    text = compiled.text  # where there is no compiler it says why
    if compiled.ready:
        after = states()
        assert after["ptx"]["text"] == text and after["ptx"]["state"] == "landmark"
        assert "registers" in compilation.to_json()


def test_a_refused_cell_is_reported_in_all_forms():
    text = CELL.replace("T.clear(row)", "a = b = row[0]")
    refused = tilelang_nb.compile_cell(text, {"T": tilelang_nb.language}, filename="In[6]")
    assert "error[TL101]: chained assignment\n  --> In[6]:12:9\n" in refused.to_text()
    assert "✗" in refused.to_html() and "TL101" in refused.to_html()
    data = json.loads(refused.to_json())
    assert not data["ok"] and data["diagnostics"][0]["span"] == [12, 8, 12, 22]
    assert [stage["state"] for stage in data["kernels"][0]["stages"]][:3] == ["landmark", "failed", "not_reached"]


def test_a_kernel_is_written_to_a_page(kernel, tmp_path):
    path = tmp_path / "blur.html"
    assert kernel.to_html(path) == path  # shown under a cell it is a line, not the page
    assert path.read_text(encoding="utf-8").startswith("<!doctype html>")


def test_a_finding_names_the_turns_of_the_loops_that_made_its_statement():
    cell = """import numpy as np

@T.macro
def add(B, i, e, row, at):
    B[i + e] = B[i + e] + row[at]

@T.prim_func
def smooth(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=32):
        row = T.alloc_shared((64,), "float32")
        for i in T.Parallel(32):
            row[i] = A[i]
        for k, shift in enumerate([0, 1, 40]):
            for e in (0, 1):
                for i in T.Parallel(8):
                    add(B, i * 2, e, row, shift + i - 20 * (k == 2) * e)
        B[63] = row[40]

smooth(np.ones(64, "f4"), np.zeros(64, "f4"))
"""
    with pytest.warns(SimulatorFindings):
        compilation = tilelang_nb.compile_cell(cell, {}, target="sim")
    (kernel,) = json.loads(compilation.to_json())["kernels"]
    inside, outside = sorted(kernel["findings"], key=lambda found: found["span"])
    (outer,) = [node for node in kernel["unroll"]["iterations"][0]["children"] if node["kind"] == "for"]
    (inner,) = outer["iterations"][2]["children"]
    (macro,) = inner["iterations"][0]["children"]
    assert inside["code"] == outside["code"] == "TL403"
    assert (inside["node"], inside["path"]) == (macro["id"], [2, 0, 0]), "the first of the turns that read it"
    assert inner["iterations"][0]["bound"] == ["0"]
    assert "path" not in outside, "no loop made it"


def test_a_turn_beyond_those_that_are_told_apart_is_not_guessed():
    cell = """import numpy as np

@T.prim_func
def late(A: T.Tensor((100,), "float32")):
    with T.Kernel(1, threads=32):
        row = T.alloc_shared((100,), "float32")
        for i in T.Parallel(90):
            row[i] = 1.0
        for n in [*range(100)]:
            A[n] = row[n]

late(np.ones(100, "f4"))
"""
    with pytest.warns(SimulatorFindings):
        compilation = tilelang_nb.compile_cell(cell, {}, target="sim")
    (found,) = json.loads(compilation.to_json())["kernels"][0]["findings"]
    assert found["code"] == "TL403" and "path" not in found


def test_device_code_is_no_stage_that_changed_nothing(kernel):
    row = re.search(r">(\S) cuda\s*</span>(.*?)</summary>", to_html(kernel), re.DOTALL)
    assert row is not None and row[1] == "●" and "same text" not in row[2]


def test_the_text_counts_the_stages_that_changed_nothing(kernel):
    shown = to_text(kernel)
    unchanged = [stage.name for stage in kernel.stages if not stage.changed and stage.name not in ("thread", "cuda")]
    unchanged = [name for name in unchanged if name not in ("source", "tile", "ptx", "sass")]
    assert f"{len(unchanged)} more stages changed nothing" in shown
    assert not any(re.search(rf"^  {name} ", shown, re.MULTILINE) for name in unchanged)


def test_the_chart_of_a_pipeline_stands_in_every_report():
    cell = tilelang_nb.compile_cell(ROLES, {}, target="sim", arch="sm_90a")
    (loop,) = cell.kernels["product"].pipelines
    assert {line.strip() for line in str(loop).split("\n")} <= {line.strip() for line in cell.to_text().split("\n")}
    html = cell.to_html()
    for lane in loop.chart.lanes:
        assert f">{lane.name}</th>" in html
    assert "<b>warp group 2 copies</b>" in html and "*7" in html
    (data,) = [one["pipelines"][0]["chart"] for one in json.loads(cell.to_json())["kernels"]]
    assert [lane["name"] for lane in data["lanes"]] == [lane.name for lane in loop.chart.lanes]
    assert data["columns"] == [list(column) for column in loop.chart.columns]
    assert repr(cell.kernels["product"].pipelines) == str(loop)


def test_maps_and_descriptors_stand_behind_a_fold_in_static_reports():
    cell = tilelang_nb.compile_cell(ROLES, {}, target="sim", arch="sm_90a")
    assert "descriptor" not in cell.to_text()
    html = cell.to_html()
    assert html.count("leading offset 8,192 bytes") == 1 and "box 64 × 64" in html
    facts = json.loads(cell.to_json())["kernels"][0]["facts"]
    assert {("tensor map", 11), ("descriptor", 12)} <= {(one["name"], one.get("line")) for one in facts}
