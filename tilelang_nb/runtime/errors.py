"""The two exceptions of the package: a kernel that was refused is used, and a launch that is refused."""

from __future__ import annotations

import linecache
from pathlib import Path
from types import TracebackType

from ..source.cures import with_fixes
from ..source.diagnostic import Diagnostic
from ..source.providers import provided
from ..source.render import render
from ..source.text import Text

PACKAGE = str(Path(__file__).resolve().parents[1])


class CompileError(Exception):
    """A kernel that did not compile was used.  diagnostics: what is wrong with it, sorted."""

    def __init__(self, diagnostics: tuple[Diagnostic, ...], text: Text | None = None):
        self.text = text
        self.diagnostics = with_fixes(diagnostics, text) if text is not None else tuple(diagnostics)
        super().__init__("\n" + render(text or Text(""), self.diagnostics))

    def _render_traceback_(self) -> list[str]:
        return _report(self, str(self).strip())


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
