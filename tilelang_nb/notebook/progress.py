"""The line that tells how far a simulated launch has come, as an output of the cell that launched it."""

from __future__ import annotations

from typing import Any

from IPython.display import DisplayHandle

from .shown import Shown


class NotebookLine:
    """One output, changed in its place; at the end it says how long the launch took."""

    def __init__(self) -> None:
        self._output: DisplayHandle | None = None

    def show(self, text: str) -> None:
        """Show this text in place of the one before."""
        if self._output is None:
            self._output = DisplayHandle()
            self._output.display(Shown(text))
        else:
            self._output.update(Shown(text))

    def end(self, text: str) -> None:
        """The launch has ended."""
        self.show(text)


def line_of(shell: Any) -> NotebookLine | None:
    """A line in the notebook of this shell; None in a terminal, which has a line of its own."""
    return NotebookLine() if hasattr(shell, "kernel") else None
