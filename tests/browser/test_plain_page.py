"""The view in a page that holds nothing else, with reports of tests/fixtures: downloads, the last run, contrast."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trace_cells
from plain import BUNDLE, MOUNT, mounted, trace_of

import tilelang_nb
from tilelang_nb.report.json import to_data

# Every element that holds text and is seen: its contrast with what lies behind it, over 21 levels of WCAG 2.1.
CONTRASTS = """() => {
  const parse = (text) => {
    const canvas = parse.canvas ??= new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
    canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = text; canvas.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  };
  const over = (front, back) => [0, 1, 2].map((i) => front[i] * front[3] + back[i] * (1 - front[3])).concat(1);
  const behind = (element) => {
    const layers = [];
    for (let at = element; at; at = at.parentElement) layers.push(parse(getComputedStyle(at).backgroundColor));
    const dark = matchMedia("(prefers-color-scheme: dark)").matches;
    return layers.reverse().reduce((back, layer) => over(layer, back), dark ? [18, 18, 18, 1] : [255, 255, 255, 1]);
  };
  const light = (c) => {
    const [r, g, b] = c.map((v) => v / 255).map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    if (!node.data.trim() || !element.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue;
    if (element.closest(":disabled, [aria-disabled=true], [aria-hidden=true], style, script")) continue;
    const back = behind(element), front = over(parse(getComputedStyle(element).color), back);
    const [high, low] = [light(front), light(back)].sort((a, b) => b - a);
    found.push([(high + 0.05) / (low + 0.05), node.data.trim().slice(0, 40), element.className]);
  }
  return found;
}"""


@pytest.fixture(params=["light", "dark"])
def page(request: pytest.FixtureRequest, browser: Any) -> Iterator[Any]:
    opened = browser.new_page(
        viewport={"width": 1200, "height": 800}, color_scheme=request.param, accept_downloads=True
    )
    faults: list[str] = []
    opened.on("pageerror", lambda error: faults.append(str(error)))
    yield opened
    opened.close()
    assert faults == []


@pytest.mark.parametrize(("stage", "suffix"), [("source", ".py"), ("tile", ".tir"), ("cuda", ".cu"), ("ptx", ".ptx")])
def test_a_stage_is_saved_under_the_suffix_of_its_language(page: Any, stage: str, suffix: str) -> None:
    trace = trace_of("matmul")
    stages = {one["name"]: one for one in trace["kernels"][0]["stages"]}
    if stage == "ptx":  # as it is after somebody has asked for it
        stages["ptx"] |= {"text": ".version 8.0\n// the text of a kernel", "state": "changed"}
    mounted(page, trace)
    page.locator(f'[data-tnb="chip"][data-name="{stage}"]').click()
    with page.expect_download() as waiting:
        page.locator('[data-tnb="save"]').click()
    assert waiting.value.suggested_filename.endswith(suffix)
    saved = Path(waiting.value.path()).read_text("utf-8")
    assert saved.strip() == stages[stage]["text"].strip()


def test_this_run_is_compared_with_the_last(page: Any) -> None:
    trace = trace_of("rerun")
    mounted(page, trace)
    page.locator('[data-tnb="chip"][data-name="tile"]').click()
    page.locator('[data-tnb="tab"][data-name="diff"]').click()
    (label,) = [text for text in page.locator('[data-tnb="diff-base"] option').all_inner_texts() if "last run" in text]
    assert f"In [{trace['previous']['execution']}]" in label
    page.locator('[data-tnb="diff-base"]').select_option(label=label)
    for change in ("add", "del"):
        page.wait_for_selector(f'[data-tnb="diff"] [data-change="{change}"]')
    removed = "\n".join(page.locator('[data-tnb="diff"] [data-change="del"]').all_inner_texts())
    added = "\n".join(page.locator('[data-tnb="diff"] [data-change="add"]').all_inner_texts())
    assert removed != added and "alloc_shared" in removed + added


@pytest.mark.parametrize("name", ["matmul", "stencil", "failed", "findings", "layouts", "roles", "rerun"])
def test_every_text_has_a_contrast_of_four_and_a_half(page: Any, name: str) -> None:
    mounted(page, trace_of(name))
    seen = 0
    for tab in range(page.locator('[data-tnb="tab"]').count()):
        page.locator('[data-tnb="tab"]').nth(tab).click()
        page.wait_for_timeout(150)  # colours move for 80 ms
        found = page.evaluate(CONTRASTS)
        seen += len(found)
        assert [one for one in found if one[0] < 4.5] == []
    assert seen > 100


LATER = """async ([code, trace]) => {
  document.body.replaceChildren();
  const { mount } = await import(URL.createObjectURL(new Blob([code], { type: "text/javascript" })));
  const host = document.createElement("div");
  mount(host, trace);
  await new Promise((done) => setTimeout(done, 100));
  document.body.append(host);
}"""


@pytest.mark.parametrize("how", [MOUNT, LATER], ids=["in the page", "put into the page later"])
@pytest.mark.parametrize("name", ["matmul", "failed", "findings"])
def test_the_source_opens_where_there_is_something_to_see_and_stays_where_it_is_scrolled(
    page: Any, name: str, how: str
) -> None:
    text = trace_cells.CELLS[name].partition("\n")[2]
    cell = "".join(f"# {number}\n" for number in range(120)) + text
    compiled = tilelang_nb.compile_cell(cell, {}, target="sim", arch="sm_80")
    problems = list(compiled.diagnostics)
    (first,) = [problem.span.line for problem in problems[:1]] or [
        121 + text[: text.index("\ndef ")].count("\n") + 1  # the kernel
    ]
    page.set_content('<!doctype html><meta name="color-scheme" content="light dark"><body>')
    page.evaluate(how, [BUNDLE.read_text("utf-8"), to_data(compiled)])
    scroller = page.locator('[data-tnb="source"] .scroller')
    row = page.locator(f'[data-tnb="source"] [data-line="{first}"]')
    row.wait_for()
    page.wait_for_timeout(100)
    pane, box = scroller.bounding_box(), row.bounding_box()
    assert pane["y"] <= box["y"] and box["y"] + box["height"] <= pane["y"] + pane["height"]
    scroller.evaluate("scroller => { scroller.scrollTop = 0 }")
    page.locator('[data-tnb="tab"][data-name="stage"]').click()
    page.set_viewport_size({"width": 700, "height": 800})
    page.wait_for_timeout(100)
    assert scroller.evaluate("scroller => scroller.scrollTop") == 0
