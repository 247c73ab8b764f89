"""The line that tells how far a simulated launch has come: when it appears, what it says, and that it goes away."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import tilelang_nb
from tilelang_nb.runtime import progress
from tilelang_nb.runtime.progress import Progress, TerminalLine, duration, line_here
from tilelang_nb.source.providers import register

KERNEL = """
@T.prim_func
def sums(A: T.Tensor((16, 64), "float32"), S: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=64):
        for i in T.Parallel(64):
            S[i] = 0.0
        for row in range(16):
            for i in T.Parallel(64):
                S[i] += A[row, i]
"""


class Shown:
    """A line that keeps what it was told."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.ended: list[str] = []

    def show(self, text: str) -> None:
        self.texts.append(text)

    def end(self, text: str) -> None:
        self.ended.append(text)


class Clock:
    """Seconds that pass when the test says so."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_the_line_appears_after_a_while_and_tells_what_is_left() -> None:
    line, clock = Shown(), Clock()
    with Progress("mm", 1, line, clock) as told:
        for part in (0.0, 0.1, 0.2):
            clock.now += 0.9
            told(part)
        clock.now += 0.1
        told(0.25)  # too soon after the last
        clock.now = 110.0
        told(0.5)
    assert line.texts == [
        "simulating mm: 20 %, about 11 s left (interrupt to stop)",
        "simulating mm: 50 %, about 10 s left (interrupt to stop)",
    ]
    assert line.ended == ["simulated mm: done after 10 s on this CPU"]


def test_launches_of_a_kernel_share_one_line() -> None:
    line, clock = Shown(), Clock()
    with Progress("two", 2, line, clock) as told:
        told.launch = 1
        clock.now += 30
        told(0.5)
    assert line.texts == ["simulating two: 75 %, about 10 s left (interrupt to stop)"]


def test_a_short_launch_shows_nothing() -> None:
    line, clock = Shown(), Clock()
    with Progress("quick", 1, line, clock) as told:
        clock.now += 1.9
        told(0.9)
    assert (line.texts, line.ended) == ([], [])


def test_nothing_is_said_of_what_is_left_before_anything_is_done() -> None:
    line, clock = Shown(), Clock()
    with Progress("slow", 1, line, clock) as told:
        clock.now += 7
        told(0.0)
    assert line.texts == ["simulating slow: 0 %, 7 s so far (interrupt to stop)"]


@pytest.mark.parametrize(("seconds", "said"), [(0.2, "1 s"), (89, "89 s"), (130, "2 min"), (7300, "2 h")])
def test_a_duration_has_one_figure(seconds: float, said: str) -> None:
    assert duration(seconds) == said


@pytest.fixture
def line(monkeypatch: pytest.MonkeyPatch) -> Shown:
    """Where launches of this test show their line, from the first moment on."""
    shown = Shown()
    monkeypatch.setattr(progress, "PATIENCE", 0)
    monkeypatch.setattr(progress, "PERIOD", 0)
    register("progress_line", lambda: shown)
    yield shown
    register("progress_line", lambda: None)


def test_a_launch_tells_of_every_turn_of_its_outer_loop(line: Shown) -> None:
    kernel = tilelang_nb.compile_cell(KERNEL, target="sim").kernels["sums"]
    a, s = np.ones((16, 64), np.float32), np.zeros(64, np.float32)
    kernel(a, s)
    assert (s == 16).all()
    parts = [int(text.split(": ")[1].split(" %")[0]) for text in line.texts]
    assert parts == sorted(parts) and len(set(parts)) >= 16 and parts[-1] > 90
    assert line.ended and line.ended[0].startswith("simulated sums: done after")


def test_an_interrupt_ends_the_launch_and_its_line(line: Shown) -> None:
    kernel = tilelang_nb.compile_cell(KERNEL, target="sim").kernels["sums"]
    a, s = np.ones((16, 64), np.float32), np.zeros(64, np.float32)

    def interrupt(text: str) -> None:
        line.texts.append(text)
        if len(line.texts) == 3:
            raise KeyboardInterrupt

    line.show = interrupt  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        kernel(a, s)
    assert "stopped" in line.ended[0]
    line.show = line.texts.append  # type: ignore[method-assign]
    kernel(a, s)  # it can be launched again
    assert (s == 16).all() and "done" in line.ended[1]


def test_a_pipe_gets_no_line_and_a_terminal_one_that_goes_away(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal:
        def __init__(self) -> None:
            self.written = ""

        def isatty(self) -> bool:
            return True

        def write(self, text: str) -> None:
            self.written += text

        def flush(self) -> None:
            pass

    register("progress_line", lambda: None)
    assert line_here() is None
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    found = line_here()
    assert isinstance(found, TerminalLine)
    found.show("simulating mm: 20 %")
    found.end("simulated mm")
    assert terminal.written == "\r\x1b[2Ksimulating mm: 20 %\r\x1b[2K"
