"""How far a simulated launch has come, shown once it takes longer than a person waits without a sign.

A terminal gets one line on stderr that is written over and goes away at the end.  A notebook shows its own
(`providers`: "progress_line").  Where nobody looks, in a pipe or a test, nothing is written.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any, Protocol

from ..source.providers import provided

PATIENCE = 2.0  # seconds without a sign
PERIOD = 0.5  # seconds between two lines


class Line(Protocol):
    """Where the line stands."""

    def show(self, text: str) -> None:
        """Show this text in place of the one before."""

    def end(self, text: str) -> None:
        """The launch has ended; text: how it ended."""


class TerminalLine:
    """A line on stderr, written over."""

    def show(self, text: str) -> None:
        sys.stderr.write(f"\r\x1b[2K{text}")
        sys.stderr.flush()

    def end(self, text: str) -> None:
        sys.stderr.write("\r\x1b[2K")
        sys.stderr.flush()


class Progress:
    """The line of one call of a kernel.

    launches: how many it has.  line: where it is shown, None for nowhere; default what suits the place.
    clock: seconds.
    """

    def __init__(
        self, kernel: str, launches: int = 1, line: Line | None = None, clock: Callable[[], float] = time.monotonic
    ):
        self.kernel, self.launches, self.line, self.clock = kernel, launches, line, clock
        self.begun = self.shown = clock()
        self.launch = 0
        self.showing = False

    def __call__(self, part: float) -> None:
        """This part of the launch at hand is done, from 0 to 1."""
        now = self.clock()
        if now - self.begun < PATIENCE or now - self.shown < PERIOD or self.line is None:
            return
        self.showing, self.shown = True, now
        self.line.show(self.text((self.launch + part) / self.launches, now - self.begun))

    def text(self, part: float, seconds: float) -> str:
        """`simulating mm: 40 %, about 30 s left`."""
        head = f"simulating {self.kernel}: {part:.0%}".replace("%", " %")
        if part < 0.01:
            return f"{head}, {duration(seconds)} so far (interrupt to stop)"
        return f"{head}, about {duration(seconds * (1 - part) / part)} left (interrupt to stop)"

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, kind: Any, *_: object) -> None:
        how = "done" if kind is None else "stopped"
        if self.showing and self.line is not None:
            self.line.end(f"simulated {self.kernel}: {how} after {duration(self.clock() - self.begun)} on this CPU")
        self.showing = False


def duration(seconds: float) -> str:
    """`8 s`, `3 min`, `2 h`."""
    if seconds < 90:
        return f"{max(round(seconds), 1)} s"
    return f"{round(seconds / 60)} min" if seconds < 5400 else f"{round(seconds / 3600)} h"


def line_here() -> Line | None:
    """The line that suits where the program runs: of a notebook, of a terminal, or none."""
    try:
        found: Any = provided("progress_line")()
    except LookupError:
        found = None
    if found is not None:
        return found
    return TerminalLine() if sys.stderr is not None and sys.stderr.isatty() else None
