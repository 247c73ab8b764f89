"""Draws the pictures of the README: the view of a kernel that the compiler has just made, in light and in dark.

    python js/pictures/make.py

Needs Playwright for Python and a Chromium, as the tests in `tests/browser` do.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests/fixtures")]

import trace_cells  # noqa: E402  (the path is set above)

import tilelang_nb  # noqa: E402

WIDTH = 1000
SCALE = 1.25
PINNED = ("T.copy(A[", "T.gemm(")  # lines of the cell


def main() -> int:
    body = trace_cells.MATMUL.partition("\n")[2]
    pins = [2 + next(at for at, line in enumerate(body.split("\n")) if start in line) for start in PINNED]
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        path = Path(folder) / "matmul.html"
        compiled = tilelang_nb.compile_cell(body, {}, filename="In[7]", first_line=2, target="sim", arch="sm_80")
        compiled.to_html(path)
        browser = playwright.chromium.launch(
            executable_path=os.environ.get("CHROMIUM") or shutil.which("chromium"), args=["--no-sandbox"]
        )
        for theme in ("light", "dark"):
            size = {"width": WIDTH + 32, "height": 464}  # the view fills the window
            page = browser.new_page(viewport=size, color_scheme=theme, device_scale_factor=SCALE)
            page.goto(f"file://{path}")
            root = page.locator('[data-tnb="root"][data-ready="true"]')
            root.locator('[data-tnb="chip"][data-name="cuda"]').click()
            for number, line in enumerate(pins):
                root.locator(f'[data-tnb="source"] [data-line="{line}"]').click(modifiers=["Shift"] if number else [])
            page.mouse.move(0, 0)
            page.wait_for_timeout(300)  # a transition of colours
            root.screenshot(path=HERE / f"view-{theme}.png")
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
