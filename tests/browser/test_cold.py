"""Notebooks and pages where no kernel runs: reopened, not trusted, exported, frozen, and a page of its own."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import nbformat
import pytest
import trace_cells
from lab import READY, SECONDS, Lab, wait_for

CELLS = [trace_cells.STENCIL, trace_cells.FAILED]
WIDGET = "application/vnd.jupyter.widget-view+json"


@pytest.fixture(scope="module")
def saved(lab: Lab, browser: Any) -> str:
    """A notebook that was run and saved with the states of its widgets."""
    lab.write("saved.ipynb", CELLS)
    page = lab.open(browser, "saved.ipynb")
    lab.run_all(page, 2)
    lab.save(page, "saved.ipynb")
    page.close()
    lab.end_sessions()
    return "saved.ipynb"


def copies(page: Any) -> list[str]:
    """The texts of the static copies that can be seen."""
    return [copy.inner_text() for copy in page.locator(".tilelang-nb-static").all() if copy.is_visible()]


def test_a_saved_view_is_two_kilobytes_and_its_trace(lab: Lab, saved: str) -> None:
    states = [state for state in lab.states(saved).values() if state["model_name"] == "AnyModel"]
    small = [state for state in states if "code" not in state["state"]]
    assert len(small) == 2 and len(states) == 3
    for state in small:
        assert len(json.dumps(state["state"])) <= 2000
        assert [buffer["path"] for buffer in state["buffers"]] == [["trace"]]


def test_reopened_without_a_kernel_the_views_are_whole(lab: Lab, browser: Any, saved: str) -> None:
    page = lab.open(browser, saved, kernel=False)
    lab.await_views(page, 2)
    assert copies(page) == []
    root = page.locator(READY).first
    root.locator('[data-tnb="chip"][data-name="tile"]').click()
    wait_for(lambda: root.get_attribute("data-stage") == "tile", "the stage")
    assert "T.Parallel" in root.locator('[data-tnb="code"]').inner_text()
    assert page.faults == []
    page.close()


def test_a_notebook_that_is_not_trusted_shows_the_static_copies(lab: Lab, browser: Any, saved: str) -> None:
    strange = lab.read(saved)
    strange.cells[0].source = "%load_ext tilelang_nb  # from somebody else"
    nbformat.write(strange, lab.root / "strange.ipynb")
    page = lab.open(browser, "strange.ipynb", kernel=False)
    page.wait_for_selector(".tilelang-nb-static")
    first, second = copies(page)
    assert "blur" in first and "Stages" in first
    assert "row_scale" in second and "3 errors" in second
    page.locator(".tilelang-nb-static summary", has_text="Stages").first.click()
    page.locator(".tilelang-nb-static summary", has_text="cuda").first.click()
    assert "__global__" in copies(page)[0]
    page.close()


def test_where_the_viewer_is_missing_a_text_says_what_to_do(lab: Lab, browser: Any, saved: str) -> None:
    damaged = lab.read(saved)
    states = next(iter(damaged.metadata.widgets.values()))["state"]
    for name in [name for name, state in states.items() if "code" in state["state"]]:
        del states[name]
    nbformat.write(damaged, lab.root / "damaged.ipynb")
    lab.trust("damaged.ipynb")
    page = lab.open(browser, "damaged.ipynb", kernel=False)
    page.wait_for_selector("text=run the cell again", timeout=SECONDS * 1000)
    assert len(copies(page)) == 2, "the static copies stay"
    page.close()


def test_without_saved_states_the_static_copies_are_there(dark_lab: Lab, browser: Any) -> None:
    dark_lab.write("plain.ipynb", CELLS)
    page = dark_lab.open(browser, "plain.ipynb")
    dark_lab.run_all(page, 2)
    dark_lab.save(page, "plain.ipynb")
    page.close()
    dark_lab.end_sessions()
    page = dark_lab.open(browser, "plain.ipynb", kernel=False)
    page.wait_for_selector(".tilelang-nb-static")
    page.wait_for_selector("text=Error displaying widget", state="attached")
    assert not any(error.is_visible() for error in page.locator("text=Error displaying widget").all())
    first, second = copies(page)
    assert "blur" in first and "how to keep the view" in first
    page.locator(".tilelang-nb-static summary", has_text="how to keep the view").first.click()
    assert "Save Widget State Automatically" in copies(page)[0]
    assert "row_scale" in second and "error[TL003]" in page.locator(".jp-OutputArea").last.inner_text()
    error = page.locator('.jp-OutputArea-output[data-mime-type$="err"], .jp-OutputArea-output[data-mime-type$="error"]')
    assert error.last.locator("pre").evaluate("pre => pre.clientHeight") > 100, (
        "all of the error, where no view shows it"
    )
    page.close()


def test_frozen_a_notebook_holds_html_and_text_alone(lab: Lab, browser: Any) -> None:
    lab.write("frozen.ipynb", [*CELLS[:1], "%tilelang freeze"])
    page = lab.open(browser, "frozen.ipynb")
    page.click("text=Run >> nth=0")
    page.click('li[data-command="runmenu:run-all"]')
    page.wait_for_selector("text=1 widget replaced", timeout=SECONDS * 1000)
    wait_for(lambda: len(copies(page)) == 0 and page.locator("summary").count(), "the static report")
    assert page.locator(READY).count() == 0
    lab.save(page, "frozen.ipynb")
    kinds = {kind for cell in lab.read("frozen.ipynb").cells for out in cell.outputs for kind in out.get("data", {})}
    assert kinds == {"text/html", "text/plain"}
    page.close()
    lab.end_sessions()
    page = lab.open(browser, "frozen.ipynb", kernel=False)
    page.wait_for_selector("text=Unrolled")
    assert page.faults == []
    page.close()


@pytest.fixture
def offline(browser: Any) -> Iterator[Any]:
    """A page that reaches nothing but files."""
    page = browser.new_page(viewport={"width": 1300, "height": 900})
    page.faults, page.asked = [], []
    page.on("console", lambda message: page.faults.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: page.faults.append(str(error)))
    page.on("request", lambda request: page.asked.append(request.url))
    page.route(re.compile("^https?:"), lambda route: route.abort())
    yield page
    page.close()


def test_an_exported_notebook_shows_the_content_offline(lab: Lab, offline: Any, saved: str) -> None:
    command = [sys.executable, "-m", "nbconvert", "--to", "html", str(lab.root / saved)]
    subprocess.run(command, env=lab.environment, check=True, capture_output=True)
    offline.goto(f"file://{lab.root}/saved.html")
    first, second = copies(offline)
    assert "blur" in first and "row_scale" in second
    offline.locator(".tilelang-nb-static summary", has_text="Stages").first.click()
    offline.locator(".tilelang-nb-static summary", has_text="cuda").first.click()
    assert "__global__" in copies(offline)[0]
    assert "error[TL003]" in offline.locator("body").inner_text()


@pytest.mark.parametrize("name", ["stencil", "hostile", "failed"])
def test_a_page_of_its_own_has_the_whole_view_and_loads_nothing(name: str, offline: Any, tmp_path: Any) -> None:
    import tilelang_nb

    cell = trace_cells.CELLS[name].partition("\n")[2]
    path = tmp_path / "page.html"
    tilelang_nb.compile_cell(cell, {}, filename="In[7]", first_line=2, target="sim").to_html(path)
    offline.goto(f"file://{path}")
    offline.wait_for_selector(READY)
    assert not offline.locator("#tilelang-nb-static").is_visible()
    assert offline.locator(".panes").evaluate("panes => panes.clientHeight") > 700, "it fills the window"
    assert {url.split(":")[0] for url in offline.asked} <= {"file", "blob"}
    assert offline.faults == []
    assert offline.evaluate("globalThis.tilelang_nb_attacked") is None
    offline.locator('[data-tnb="source"] [data-line="5"]').click()


def test_a_page_shows_the_static_report_where_no_scripts_run(browser: Any, tmp_path: Any) -> None:
    import tilelang_nb

    path = tmp_path / "page.html"
    tilelang_nb.compile_cell(trace_cells.MATMUL.partition("\n")[2], {}, target="sim").to_html(path)
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"file://{path}")
    assert "matmul" in page.locator("#tilelang-nb-static").inner_text()
    context.close()
