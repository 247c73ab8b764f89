"""Clicks and selected text in the code panes, while rows are drawn anew and scroll away: neither is lost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from plain import mounted, trace_of

SELECTED = "() => document.getSelection().toString()"
COPIED = """() => {
  const data = new DataTransfer();
  const event = new ClipboardEvent("copy", { bubbles: true, cancelable: true, clipboardData: data });
  document.getSelection().anchorNode.parentElement.dispatchEvent(event);
  return event.defaultPrevented ? data.getData("text/plain") : document.getSelection().toString();
}"""


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    opened = browser.new_page(viewport={"width": 1200, "height": 600})
    faults: list[str] = []
    opened.on("pageerror", lambda error: faults.append(str(error)))
    mounted(opened, trace_of("matmul"))
    opened.locator('[data-tnb="chip"][data-name="cuda"]').click()
    yield opened
    opened.close()
    assert faults == []


def row(page: Any, pane: str, line: int) -> Any:
    return page.locator(f'[data-tnb="{pane}"] [data-line="{line}"]')


def linked_line(page: Any) -> int:
    """A line in sight of the stage's text that comes from the cell, with something written at its start."""
    lines = page.evaluate(
        """() => {
          const pane = document.querySelector('[data-tnb="code"] .scroller').getBoundingClientRect();
          return [...document.querySelectorAll('[data-tnb="code"] [data-line]')].filter((row) => {
            const { top, bottom } = row.getBoundingClientRect();
            const isSeen = top > pane.top + 30 && bottom < pane.bottom - 60;
            return isSeen && /^:\\d+$/.test(row.querySelector(".origin").textContent);
          }).map((row) => Number(row.dataset.line));
        }"""
    )
    return int(lines[0])


def move(page: Any, target: Any, x: float, steps: int = 1) -> None:
    """The mouse to x pixels behind the left edge, on a whole pixel as a mouse does."""
    box = target.bounding_box()
    page.mouse.move(round(box["x"] + x), round(box["y"] + 8), steps=steps)


def press(page: Any, target: Any, x: float) -> None:
    move(page, target, x)
    page.mouse.down()


@pytest.mark.parametrize("x", [12, 34, 62, 140], ids=["edge", "number", "origin", "text"])
@pytest.mark.parametrize(
    "between",
    [
        "() => document.querySelector('[data-tnb=search]').dispatchEvent(new Event('input'))",
        "() => { document.querySelector('[data-tnb=code] .scroller').scrollTop += 8 }",
        "() => { document.querySelector('[data-tnb=code] .scroller').scrollTop -= 18 }",
        "() => { document.body.style.paddingTop = '18px' }",
        "() => { document.body.style.paddingRight = '15px' }",  # a scroll bar comes
    ],
    ids=["drawn anew", "scrolled a little", "scrolled by a row", "moved by a row", "narrower"],
)
def test_a_line_is_clicked_although_the_pane_changes_while_the_button_is_down(
    page: Any, between: str, x: float
) -> None:
    line = linked_line(page)
    origin = row(page, "code", line).locator(".origin").inner_text()
    press(page, row(page, "code", line), x)
    page.evaluate(between)
    page.wait_for_timeout(60)  # a frame, in which the pane is drawn
    page.mouse.up()
    pins = page.locator('[data-tnb="pin"]')
    assert [f":{pin.get_attribute('data-line')}" for pin in pins.all()] == [origin]


def test_a_press_that_moves_to_another_line_is_no_click(page: Any) -> None:
    line = linked_line(page)
    press(page, row(page, "code", line), 12)
    move(page, row(page, "code", line + 1), 12)
    page.mouse.up()
    assert page.locator('[data-tnb="pin"]').count() == 0


def test_selected_text_stays_when_the_pane_is_drawn_anew(page: Any) -> None:
    line = linked_line(page)
    press(page, row(page, "code", line), 120)
    move(page, row(page, "code", line + 3), 200, steps=5)
    page.mouse.up()
    before = page.evaluate(SELECTED)
    assert before.count("\n") == 3
    page.evaluate("() => document.querySelector('[data-tnb=search]').dispatchEvent(new Event('input'))")
    page.evaluate("() => { document.querySelector('[data-tnb=code] .scroller').scrollTop += 40 }")
    page.wait_for_timeout(60)
    assert page.evaluate(SELECTED) == before
    assert page.locator('[data-tnb="pin"]').count() == 0


def test_text_that_is_selected_over_more_than_fits_is_copied_whole(page: Any) -> None:
    scroller = page.locator('[data-tnb="code"] .scroller')
    stages = {stage["name"]: stage for stage in trace_of("matmul")["kernels"][0]["stages"]}
    text = stages["cuda"]["text"].split("\n")
    scroller.evaluate("scroller => { scroller.scrollTop = 0 }")
    page.wait_for_timeout(60)
    press(page, row(page, "code", 1).locator(".line"), 1)
    move(page, row(page, "code", 3).locator(".line"), 40, steps=3)
    scroller.evaluate("scroller => { scroller.scrollTop = scroller.scrollHeight }")
    last = row(page, "code", len(text) - 1)
    last.wait_for()
    move(page, last, 400, steps=5)
    page.mouse.up()
    assert page.evaluate(COPIED).rstrip("\n") == "\n".join(text[: len(text) - 1]).rstrip("\n")
    assert page.locator('[data-tnb="code"] [data-line]').count() < len(text) / 2, (
        "few rows are in the page all the same"
    )
