"""A browser and a JupyterLab for the tests of this folder.

They need JupyterLab, Playwright for Python (`pip install tilelang-nb[browser]`) and a Chromium of the system; where one
of them is not installed the tests are skipped, unless TILELANG_NB_BROWSER asks for them, as `make test-browser` does.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "fixtures")]

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
MISSING = [name for name in ("jupyterlab", "playwright") if importlib.util.find_spec(name) is None]
MISSING += [] if CHROMIUM else ["chromium"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if MISSING and not os.environ.get("TILELANG_NB_BROWSER"):
        for item in items:
            if HERE in Path(item.path).parents:
                item.add_marker(pytest.mark.skip(reason=f"not installed: {', '.join(MISSING)}"))


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    assert not MISSING, f"not installed: {', '.join(MISSING)}"
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        arguments = ["--no-sandbox", "--disable-dev-shm-usage"]
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, headless=True, args=arguments)
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def lab(browser: Any) -> Iterator[Any]:
    """A light JupyterLab that saves the states of widgets."""
    from lab import Lab

    with Lab(save_state=True) as running:
        yield running


@pytest.fixture(scope="session")
def dark_lab(browser: Any) -> Iterator[Any]:
    """A dark JupyterLab that does not save them, which is its default."""
    from lab import Lab

    with Lab(save_state=False, theme="JupyterLab Dark") as running:
        yield running
