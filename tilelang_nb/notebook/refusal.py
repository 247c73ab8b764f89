"""How a cell fails.

With rendered diagnostics in place of a Python traceback, or with a traceback that begins at the cell.
"""

from __future__ import annotations

import os
from types import TracebackType
from typing import Any

from ..runtime.errors import PACKAGE, CompileError
from ..source import catalogue as say
from ..source.diagnostic import Diagnostic
from ..source.render import count, render
from ..source.text import Text

IMPORTS = os.path.join(PACKAGE, "frontend", "imports.py")


class CellRefused(CompileError):
    """A cell with errors.

    IPython shows the lines of `_render_traceback_` and nothing else; the cell counts as failed.  colour: for a
    terminal; bold: for notebooks.  summed_up: the first line says how many there are: a view above the error that
    shows them leaves only this line of it in sight.
    """

    def __init__(
        self, diagnostics: tuple[Diagnostic, ...], text: Text | None = None, colour: bool = False, bold: bool = False
    ):
        super().__init__(diagnostics, text)
        self.colour, self.bold, self.summed_up = colour, bold, False

    def _render_traceback_(self) -> list[str]:
        said = render(self.text or Text(""), self.diagnostics, colour=self.colour, bold=self.bold)
        lead = [f"{count(self.diagnostics)} in this cell"] if self.summed_up else []
        return [*lead, *said.rstrip("\n").split("\n")]


def unavailable(problem: str, remedy: str) -> CellRefused:
    """The failure of something that this version or this machine does not have: TL302 with the reason."""
    return CellRefused((say.TargetUnavailable(problem=problem, remedy=remedy).at(None),))


def has_colours(shell: Any) -> bool:
    """Does the shell colour its tracebacks?"""
    return str(getattr(shell, "colors", "nocolor")).lower() != "nocolor"


def begin_at_cell(error: BaseException, code_name: str, shell: Any) -> BaseException:
    """The same exception, shown with the frames from the cell's own code inward: not IPython's, not this package's."""
    traceback: TracebackType | None = error.__traceback__
    while traceback is not None and traceback.tb_frame.f_code.co_filename != code_name:
        traceback = traceback.tb_next
    if traceback is None:
        return error
    kept = traceback
    if isinstance(error, ImportError) and traceback.tb_next is not None:
        inner = traceback.tb_next
        if inner.tb_next is None and inner.tb_frame.f_code.co_filename == IMPORTS:
            traceback.tb_next = None  # the stand-in for `__import__` has nothing to tell

    def shown() -> list[str]:
        return shell.InteractiveTB.structured_traceback(type(error), error, kept, tb_offset=0)

    try:
        error._render_traceback_ = shown  # type: ignore[attr-defined]
    except AttributeError:
        pass  # a class with slots: its traceback shows a few frames more
    return error
