"""The viewer under the cells of a notebook with a live kernel: what a person does with it, and what is seen then."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
import trace_cells
from lab import READY, ROOT, SECONDS, wait_for

CELLS = [trace_cells.MATMUL, trace_cells.STENCIL, trace_cells.FINDINGS]
MATMUL, STENCIL, FINDINGS = range(3)


@pytest.fixture(scope="module")
def page(lab: Any, browser: Any) -> Iterator[Any]:
    """A notebook with three views, all its cells run."""
    lab.write("viewer.ipynb", CELLS)
    opened = lab.open(browser, "viewer.ipynb")
    lab.run_all(opened, len(CELLS))
    yield opened
    opened.close()
    lab.end_sessions()


@pytest.fixture(autouse=True)
def no_faults(page: Any) -> Iterator[None]:
    yield
    assert page.faults == []
    assert page.locator('[data-tnb="error"]').count() == 0


def view(page: Any, number: int) -> Any:
    found = page.locator(READY).nth(number)
    found.scroll_into_view_if_needed()
    return found


def part(found: Any, name: str, more: str = "") -> Any:
    return found.locator(f'[data-tnb="{name}"]{more}')


def tab(found: Any, name: str) -> None:
    part(found, "tab", f'[data-name="{name}"]').click()
    found.page.wait_for_function("([root, name]) => root.dataset.view === name", arg=[found.element_handle(), name])


def show(found: Any, stage: str) -> None:
    tab(found, "stage")
    chip = part(found, "chip", f'[data-name="{stage}"]')
    for group in ("lowering", "tir"):  # folded where there is no room for them
        folded = found.locator(f'[data-group="{group}"]')
        if not chip.count() and folded.count():
            folded.click()
    chip.click()
    wait_for(lambda: found.get_attribute("data-stage") == stage, stage)


def line_of(cell: str, text: str) -> int:
    """The number of the line that holds a text."""
    (number,) = [number for number, line in enumerate(cell.split("\n"), 1) if text in line]
    return number


def marked(found: Any, name: str, mark: str) -> list[str]:
    """The text of the drawn rows of a pane that have a mark."""
    return part(found, name).locator(f"[data-line][{mark}]").all_inner_texts()


# -- links


def test_a_pinned_line_lights_its_lines_in_every_stage(page: Any) -> None:
    found = view(page, MATMUL)
    gemm = line_of(trace_cells.MATMUL, "T.gemm(")
    show(found, "tile")
    part(found, "source").locator(f'[data-line="{gemm}"]').click()
    assert part(found, "pin").count() == 1
    assert gemm == int(part(found, "source").locator("[data-pin]").first.get_attribute("data-line"))
    assert any("T.gemm(A_s, B_s, C_l" in text for text in marked(found, "code", "data-pin"))
    show(found, "thread")
    lines = marked(found, "code", "data-pin")
    assert lines and all(re.search(rf":{gemm}\b|^\d+\s", text) for text in lines)
    assert any("C_l[" in text for text in lines)
    assert re.fullmatch(r"(\d+)/\1 linked", part(found, "coverage").inner_text())
    copy = line_of(trace_cells.MATMUL, "T.copy(A[")
    part(found, "source").locator(f'[data-line="{copy}"]').click(modifiers=["Shift"])
    assert [int(pin.get_attribute("data-line")) for pin in part(found, "pin").all()] == [gemm, copy]
    assert {line.get_attribute("data-pin") for line in part(found, "code").locator("[data-pin]").all()} == {"1", "2"}
    part(found, "source").locator(f'[data-line="{gemm}"]').click(modifiers=["Shift"])
    assert [int(pin.get_attribute("data-line")) for pin in part(found, "pin").all()] == [copy]
    part(found, "source").focus()
    page.keyboard.press("Escape")
    assert part(found, "pin").count() == 0


def test_a_line_of_the_stage_leads_back_to_the_cell(page: Any) -> None:
    found = view(page, MATMUL)
    show(found, "tile")
    row = part(found, "code").locator("[data-line]", has_text="T.copy(A[")
    row.click()
    pinned = part(found, "source").locator("[data-pin]").first
    assert int(pinned.get_attribute("data-line")) == line_of(trace_cells.MATMUL, "T.copy(A[")
    page.keyboard.press("Escape")


def test_the_keyboard_moves_pins_and_steps_through_linked_lines(page: Any) -> None:
    found = view(page, STENCIL)
    show(found, "tile")
    tap = line_of(trace_cells.STENCIL, "tap(acc, c, row")
    part(found, "source").locator(f'[data-line="{tap}"]').click()
    page.keyboard.press("Escape")
    part(found, "source").focus()
    page.keyboard.press("Enter")
    assert part(found, "pin").count() == 1
    page.keyboard.press("]")
    page.keyboard.press("Escape")
    assert part(found, "pin").count() == 0


def test_keys_stay_in_the_view_until_escape_gives_them_back(page: Any) -> None:
    found = view(page, MATMUL)
    cells = page.locator(".jp-Notebook .jp-CodeCell")
    before = cells.count()
    for name in ("source", "code"):
        part(found, name).focus()
        for key in ("b", "x", "d", "d", "Shift+Enter"):
            page.keyboard.press(key)
    assert cells.count() == before
    part(found, "source").focus()
    for _ in range(3):
        page.keyboard.press("Escape")
    page.wait_for_function("!document.activeElement?.closest('[data-tnb=root]')")


# -- stages


def test_two_stages_are_compared(page: Any) -> None:
    found = view(page, MATMUL)
    show(found, "insert-barriers")
    tab(found, "diff")
    part(found, "diff-base").select_option("plan-shared-memory")
    new = part(found, "diff").locator('[data-change="add"]')
    new.first.wait_for()
    assert any("T.sync_threads()" in text for text in new.all_inner_texts())
    part(found, "diff-mode", '[data-name="split"]').click()
    assert part(found, "diff").locator('[data-change="add"]').count() >= 1
    part(found, "diff-mode", '[data-name="unified"]').click()
    tab(found, "stage")


def test_a_text_is_found_in_all_stages(page: Any) -> None:
    found = view(page, MATMUL)
    show(found, "tile")
    search = part(found, "search")
    search.fill("sync_threads")
    search.press("Enter")
    wait_for(lambda: part(found, "code").locator("[data-hit]").count(), "a hit")
    assert found.get_attribute("data-stage") != "tile", "the tile program has no barrier: the search walks on"
    assert re.search(r"\d", part(found, "search-count").inner_text())
    search.fill("")
    page.keyboard.press("Escape")


def test_stages_without_a_change_are_hidden_with_their_number(page: Any) -> None:
    found = view(page, MATMUL)
    shown = part(found, "chip").count()
    hidden = int(re.search(r"\d+", part(found, "noop-toggle").inner_text())[0])
    part(found, "noop-toggle").click()
    assert part(found, "chip").count() == shown + hidden
    part(found, "noop-toggle").click()
    part(found, "filter").fill("barriers")
    wait_for(lambda: part(found, "chip").count() < shown, "the filter")
    part(found, "filter").fill("")


def test_device_code_is_compiled_when_its_chip_is_opened(page: Any) -> None:
    """Where no CUDA compiler is installed the view says so and stays where it was."""
    found = view(page, FINDINGS)
    chip = part(found, "chip", '[data-name="ptx"]')
    assert chip.get_attribute("data-state") == "on_demand"
    chip.click()
    said = part(found, "status")
    wait_for(lambda: found.get_attribute("data-stage") == "ptx" or "no CUDA compiler" in said.inner_text(), "PTX")
    if found.get_attribute("data-stage") == "ptx":
        assert "%tid.x" in part(found, "code").inner_text(), "what comes from the cell is in sight"
        part(found, "code").locator(".scroller").focus()
        page.keyboard.press("Home")
        wait_for(lambda: ".target sm_" in part(found, "code").inner_text(), "the beginning")
        tab(found, "run")
        assert "ptxas" in part(found, "fact", '[data-name="registers"]').inner_text()


# -- unrolling


def test_the_knob_sweeps_the_iterations_of_a_nested_loop(page: Any) -> None:
    found = view(page, STENCIL)
    show(found, "thread")
    tab(found, "unroll")
    loop = line_of(trace_cells.STENCIL, "for d, w in taps:")
    part(found, "node").filter(has_text="for d, w in taps").click()
    assert f"line {loop}" in part(found, "node").filter(has_text="for d, w in taps").text_content()
    knob = part(found, "knob", '[data-depth="1"]')
    knob.focus()
    page.keyboard.press("Home")
    values, lines = [], set()
    for _ in range(7):
        values.append(knob.get_attribute("aria-valuetext"))
        own = marked(found, "code", 'data-iteration="this"')
        assert own
        lines.add("\n".join(own))
        page.keyboard.press("ArrowRight")
    assert [re.search(r"d = (-?\d)", value)[1] for value in values] == ["-3", "-2", "-1", "0", "1", "2", "3"]
    assert len(lines) == 7, "every iteration has lines of its own"
    outer = part(found, "knob", '[data-depth="0"]')
    outer.focus()
    page.keyboard.press("Home")
    assert "src = U" in outer.get_attribute("aria-valuetext")
    page.keyboard.press("ArrowRight")
    assert "src = V" in outer.get_attribute("aria-valuetext")
    assert "\n".join(marked(found, "code", 'data-iteration="this"')) not in lines
    tab(found, "stage")


# -- tiles


def test_an_element_of_a_tile_tells_its_thread_and_the_versions_of_a_pipeline_their_turns(page: Any) -> None:
    found = view(page, MATMUL)
    tab(found, "tiles")
    part(found, "tile", '[data-name="C_l"]').click()
    board = part(found, "board")
    board.hover(position={"x": 3, "y": 3})
    assert part(found, "readout").inner_text() == "[0, 0] thread 0 (warp 0, lane 0), register 0"
    pixels = "board => new Set(board.getContext('2d').getImageData(0, 0, board.width, board.height).data).size"
    assert board.evaluate(pixels) > 20, "threads have colours of their own"
    board.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert "register" in part(found, "status").text_content()
    part(found, "tile", '[data-name="ko"]').click()
    version = part(found, "steps").locator("tbody tr", has_text=" [0]").first.locator("td")
    assert [cell.get_attribute("data-state") for cell in version.all()][:4] == ["copy", "use", "copy", "use"]
    version.nth(1).click()
    assert part(found, "source", " [data-pin]").count() == 2, "the copies of the two tiles"
    page.keyboard.press("ArrowRight")
    assert part(found, "steps", " td:focus").get_attribute("data-state") == "copy"
    tab(found, "stage")


# -- the run


def test_findings_and_counters_of_the_launch_are_shown(page: Any) -> None:
    found = view(page, FINDINGS)
    tab(found, "problems")
    assert {found.get_attribute("data-code") for found in part(found, "problem").all()} == {"TL401", "TL403"}
    tab(found, "run")
    assert part(found, "fact", '[data-name="global writes of total"]').count() == 1
    assert "2 blocks of 32 threads" in part(found, "fact", '[data-name="launch"]').inner_text()


# -- many cells


def test_the_tutorial_runs_with_a_view_under_every_kernel(lab: Any, browser: Any) -> None:
    source = ROOT / "notebooks/01_first_kernels.ipynb"
    (lab.root / "tutorial.ipynb").write_bytes(source.read_bytes())
    opened = lab.open(browser, "tutorial.ipynb")
    kernels = [
        cell.source
        for cell in lab.read("tutorial.ipynb").cells
        if cell.cell_type == "code" and cell.source.startswith("%%tilelang") and "@T.prim_func" in cell.source
    ]
    lab.run_all(opened, len(kernels))
    assert opened.faults == []
    assert opened.locator('[data-tnb="error"]').count() == 0
    failed = [cell for cell in kernels if "def mistakes" in cell]
    assert opened.locator(f'{READY} [data-tnb="verdict"][data-failed]').count() >= len(failed)
    opened.close()
    lab.end_sessions()


def test_ten_views_live_in_one_notebook_and_a_cell_that_is_run_again_replaces_its_own(lab: Any, browser: Any) -> None:
    cells = [
        trace_cells.ELEMENTWISE.replace("def add(", f"def add{number}(").replace("add(A, B, C)", "1")
        for number in range(10)
    ]
    lab.write("ten.ipynb", cells)
    opened = lab.open(browser, "ten.ipynb")
    lab.run_all(opened, 10)
    first = opened.locator(READY).first
    first.evaluate("root => { root.dataset.before = 'yes' }")
    opened.locator(".jp-Notebook .jp-CodeCell").nth(1).locator(".jp-InputPrompt").click()
    opened.keyboard.press("Control+Enter")
    opened.wait_for_function("document.querySelectorAll('[data-before]').length === 0", timeout=SECONDS * 1000)
    lab.await_views(opened, 10)
    names = [root.get_attribute("data-kernel") for root in opened.locator(READY).all()]
    assert names == [f"add{number}" for number in range(10)]
    bases = opened.locator(READY).first.locator('[data-tnb="diff-base"] option[value="last"]')
    part(opened.locator(READY).first, "tab", '[data-name="diff"]').click()
    assert bases.count() == 1, "a run of the same cell went before"
    assert opened.faults == []
    opened.close()
    lab.end_sessions()


def test_of_fifty_quick_reports_the_last_one_is_shown(lab: Any, browser: Any) -> None:
    quick = """from tilelang_nb.report.json import to_data
view = matmul.inspect()
display(view)
data = to_data(matmul)
for number in range(50):
    data["kernels"][0]["name"] = f"number_{number}"
    view.show(data)"""
    lab.write("quick.ipynb", [trace_cells.MATMUL, quick])
    opened = lab.open(browser, "quick.ipynb")
    lab.run_all(opened, 2)
    second = opened.locator(READY).nth(1)
    wait_for(lambda: second.get_attribute("data-kernel") == "number_49", "the last report")
    assert opened.faults == []
    opened.close()
    lab.end_sessions()


# -- a failed cell


def test_a_fix_becomes_a_cell_below_that_runs(lab: Any, browser: Any) -> None:
    lab.write("failed.ipynb", [trace_cells.FAILED, "after = 1"])
    opened = lab.open(browser, "failed.ipynb")
    lab.run_all(opened, 1)
    found = opened.locator(READY)
    assert part(found, "problem").count() == 3
    assert part(found, "source").locator("[data-squiggle]").count() >= 3
    error = opened.locator('.jp-RenderedText:is([data-mime-type$="err"], [data-mime-type$="error"])')
    assert error.locator("pre").inner_text().startswith("3 errors in this cell\nerror[TL003]"), "whole where it is read"
    assert error.locator("pre").evaluate("element => element.clientHeight") < 25, "one line beside the view"
    part(found, "source").focus()
    opened.keyboard.press("F8")
    assert part(found, "problem", '[aria-current="true"]').count() == 1
    part(found, "insert-patched").click()
    cells = opened.locator(".jp-Notebook .jp-CodeCell")
    wait_for(lambda: cells.count() == 4, "the cell below")
    new = cells.nth(2)
    opened.wait_for_function("document.activeElement?.closest('.cm-content')", timeout=SECONDS * 1000)
    assert new.evaluate("cell => cell.contains(document.activeElement)"), "the new cell has the focus"
    assert "T.copy(A[by, 0], row)" in new.locator(".jp-InputArea").inner_text()
    opened.keyboard.press("Control+Enter")
    lab.await_views(opened, 2)
    assert opened.locator(READY).nth(1).get_attribute("data-kernel") == "row_scale"
    assert part(opened.locator(READY).nth(1), "verdict", "[data-failed]").count() == 0
    assert opened.faults == []
    opened.close()
    lab.end_sessions()


def test_the_dark_theme_is_followed(dark_lab: Any, browser: Any) -> None:
    dark_lab.write("dark.ipynb", [trace_cells.ELEMENTWISE])
    opened = dark_lab.open(browser, "dark.ipynb")
    dark_lab.run_all(opened, 1)
    root = opened.locator(READY)
    assert root.get_attribute("data-theme") == "dark"
    light = (
        "element => { const [r, g, b] = getComputedStyle(element).color.match(/\\d+/g).map(Number); return r + g + b }"
    )
    assert part(root, "source").evaluate(light) > 380, "text is light on dark"
    assert opened.faults == []
    opened.close()
    dark_lab.end_sessions()


def test_hostile_text_is_shown_and_does_nothing(lab: Any, browser: Any) -> None:
    lab.write("hostile.ipynb", [trace_cells.HOSTILE])
    opened = lab.open(browser, "hostile.ipynb")
    lab.run_all(opened, 1)
    found = opened.locator(READY)
    assert "</script><script>" in part(found, "source").inner_text()
    part(found, "kernel", '[data-name="refused"]').click()
    part(found, "kernel", '[data-name="hostile"]').click()
    show(found, "thread")
    assert "<img src=x onerror" in part(found, "code").inner_text()
    assert opened.evaluate("globalThis.tilelang_nb_attacked") is None
    assert opened.locator('img[src="x"]').count() == 0
    opened.close()
    lab.end_sessions()
