"""The two exceptions of the package: a kernel that was refused is used, and a launch that is refused."""

from __future__ import annotations

import linecache
from types import TracebackType

from ..source.cures import with_fixes
from ..source.diagnostic import Diagnostic, Refusal
from ..source.providers import register
from ..source.render import render
from ..source.text import Text
from .call_site import PACKAGE, call_site, shown_name


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
        site = call_site()
        span, self.text = (site.span, site.text) if site is not None else (None, Text(""))
        self.diagnostics = with_fixes((refusal.message.at(span, refusal.notes, refusal.fixes),), self.text)
        self.message, self.place, self.notes, self.fixes = refusal.message, refusal.place, refusal.notes, refusal.fixes
        Exception.__init__(self, "\n" + render(self.text, self.diagnostics).rpartition("\n\n")[0])


register("refused_call", RefusedCall)


class LaunchError(Exception):
    """A launch was refused or failed: TL301 (an argument), TL302 (the target), TL404 (`T.device_assert`).

    diagnostics: one for each argument that does not fit.  diagnostic: the first.  text: what their places speak of.
    at_call: do they stand at the call, and not in the kernel?
    """

    def __init__(
        self,
        diagnostics: Diagnostic | tuple[Diagnostic, ...],
        text: Text | None = None,
        refusal: Refusal | None = None,
        at_call: bool = False,
    ):
        self.diagnostics = diagnostics if isinstance(diagnostics, tuple) else (diagnostics,)
        self.diagnostic, self.text = self.diagnostics[0], text
        self.refusal, self.at_call = refusal, at_call
        super().__init__(render(text or Text(""), self.diagnostics).rpartition("\n\n")[0])

    def _render_traceback_(self) -> list[str]:
        return str(self).split("\n") if self.at_call else _report(self, str(self))


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
            places.append(f"{shown_name(name)}:{line}: {written}".rstrip(": "))
        traceback = traceback.tb_next
    return places
