"""Fixtures of the whole suite: golden files under tests/goldens, rewritten by `pytest --update-goldens`."""

from __future__ import annotations

import difflib
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tilelang_nb.runtime import numba_device

GOLDENS = Path(__file__).parent / "goldens"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-goldens", action="store_true", help="write what the tests produce to tests/goldens")


def pytest_configure(config: pytest.Config) -> None:
    # What a user's earlier processes compiled must not decide a test.
    os.environ.setdefault("TILELANG_NB_CACHE_DIR", "")
    # A shell starts what runs in its background with interrupts ignored; tests of interrupts would wait for ever.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What tests recorded with `record_property`: how many random programs were tried, and what became of them."""
    for report in terminalreporter.getreports("passed") + terminalreporter.getreports("failed"):
        for name, value in report.user_properties if report.when == "call" else ():
            terminalreporter.write_line(f"{name}: {value}")


@pytest.fixture(scope="module", autouse=True)
def simulated_device(request: pytest.FixtureRequest) -> Iterator[None]:
    """What the tests outside tests/gpu say of `auto` holds for the simulated device, on machines with a GPU too."""
    with pytest.MonkeyPatch.context() as patch:
        if Path(__file__).parent / "gpu" not in request.path.parents:
            patch.setattr(numba_device, "_missing", lambda: "the tests use the simulated device")
        yield


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """`golden(text, "source/render/tab.txt")` holds when the file of that name under tests/goldens holds the text."""
    update = request.config.getoption("--update-goldens")

    def check(text: str, name: str) -> None:
        path = GOLDENS / name
        if update:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="\n")
            return
        if not path.exists():
            pytest.fail(f"no golden {name}: run `pytest --update-goldens` and review the new file")
        expected = path.read_text(encoding="utf-8")
        if text != expected:
            difference = difflib.unified_diff(
                expected.splitlines(), text.splitlines(), f"goldens/{name}", "this run", lineterm="", n=4
            )
            pytest.fail("\n".join(difference) + "\n(`pytest --update-goldens` accepts this)", pytrace=False)

    return check
