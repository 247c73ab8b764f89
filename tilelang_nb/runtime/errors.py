"""The two exceptions of the package: a kernel that was refused is used, and a launch that is refused."""

from __future__ import annotations

import linecache
import sys
from pathlib import Path
from types import TracebackType

from ..frontend.places import narrowed
from ..source.cures import with_fixes
from ..source.diagnostic import Diagnostic, Refusal
from ..source.providers import provided, register
from ..source.render import render
from ..source.text import Span, Text

PACKAGE = str(Path(__file__).resolve().parents[1])


class CompileError(Exception):
    """A kernel that did not compile was used.  diagnostics: what is wrong with it, sorted."""

    def __init__(self, diagnostics: tuple[Diagnostic, ...], text: Text | None = None):
        self.text = text
        self.diagnostics = with_fixes(diagnostics, text) if text is not None else tuple(diagnostics)
        super().__init__("\n" + render(text or Text(""), self.diagnostics))

    def _render_traceback_(self) -> list[str]:
        return _report(self, str(self).strip())


class RefusedCall(CompileError, Refusal):
    """A refused call of the language in plain host code; `diagnostics` holds the mistake, at the line of the caller."""

    def __init__(self, refusal: Refusal):
        span, self.text = _caller()
        self.diagnostics = with_fixes((refusal.message.at(span, refusal.notes, refusal.fixes),), self.text)
        self.message, self.place, self.notes, self.fixes = refusal.message, refusal.place, refusal.notes, refusal.fixes
        Exception.__init__(self, "\n" + render(self.text, self.diagnostics).rpartition("\n\n")[0])


def _caller() -> tuple[Span | None, Text]:
    """The place in the innermost text that is not of this package, from the stack at hand."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame = frame.f_back  # type: ignore[assignment]
    if frame is None:
        return None, Text("")
    name = frame.f_code.co_filename
    text = Text("".join(linecache.getlines(name, frame.f_globals)), _shown_name(name))
    if not text.source:
        return None, text
    places = list(frame.f_code.co_positions()) if hasattr(frame.f_code, "co_positions") else []
    line, end_line, column, end_column = places[frame.f_lasti // 2] if places else (None, None, None, None)
    if line is None or end_line is None or column is None or end_column is None:
        written = text.line(frame.f_lineno)
        return Span(frame.f_lineno, len(written) - len(written.lstrip()), frame.f_lineno, len(written.rstrip())), text
    return narrowed(text, text.positions(line, end_line, column, end_column)), text


register("refused_call", RefusedCall)


class LaunchError(Exception):
    """A launch was refused or failed: TL301 (an argument), TL302 (the target), TL404 (`T.device_assert`)."""

    def __init__(self, diagnostic: Diagnostic, text: Text | None = None):
        self.diagnostic, self.text = diagnostic, text
        super().__init__(render(text or Text(""), (diagnostic,)).rpartition("\n\n")[0])

    def _render_traceback_(self) -> list[str]:
        return _report(self, str(self))


def _report(error: Exception, text: str) -> list[str]:
    """What a notebook shows in place of a traceback: the diagnostics, and the user's line that led to them."""
    return text.split("\n") + [f"  called at {place}" for place in call_places(error.__traceback__)[-1:]]


def call_places(traceback: TracebackType | None) -> list[str]:
    """`file:line: text` of the frames that do not belong to the package, outermost first.

    A frame that stands at a decorator defines the kernel, in a factory; it is called from the frame around it.
    """
    places = []
    while traceback is not None:
        name, line = traceback.tb_frame.f_code.co_filename, traceback.tb_lineno
        written = linecache.getline(name, line).strip()
        if not name.startswith(PACKAGE) and not written.startswith("@"):
            places.append(f"{_shown_name(name)}:{line}: {written}".rstrip(": "))
        traceback = traceback.tb_next
    return places


def _shown_name(file: str) -> str:
    """What the user calls a file: a notebook says `In[3]` for the file of a cell."""
    try:
        return provided("file_name")(file)
    except LookupError:
        return file
