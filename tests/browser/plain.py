"""The built view in a page that holds nothing else, with a report of tests/fixtures or one of a test."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from lab import ROOT

TRACES = Path(ROOT) / "tests" / "fixtures" / "traces"
BUNDLE = Path(ROOT) / "tilelang_nb" / "notebook" / "static" / "widget.js"
MOUNT = """async ([code, trace]) => {
  document.body.replaceChildren();
  const { mount } = await import(URL.createObjectURL(new Blob([code], { type: "text/javascript" })));
  mount(document.body.appendChild(document.createElement("div")), trace);
}"""


def trace_of(name: str) -> dict[str, Any]:
    return json.loads((TRACES / f"{name}.json").read_text("utf-8"))


def mounted(page: Any, trace: dict[str, Any]) -> None:
    page.set_content('<!doctype html><meta name="color-scheme" content="light dark"><body>')
    page.evaluate(MOUNT, [BUNDLE.read_text("utf-8"), trace])
    page.wait_for_selector("[data-tnb=chip]")
