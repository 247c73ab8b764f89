"""What a cell displays.

One object with a plain-text and a static HTML form, from which the front end takes what it can show.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import uuid4

from ..source.diagnostic import Diagnostic
from ..source.providers import provided
from ..source.render import render
from ..source.text import Text

# Below a static copy JupyterLab says "model not found" for a widget whose state was not saved.  A widget that came up
# holds elements, that error is a text.  Where a notebook is not trusted neither the error nor this is there.
NO_ERROR = (
    "<style>.jp-OutputArea-child:has(.tilelang-nb-static) + .jp-OutputArea-child > .jupyter-widgets:not(:has(*))"
    " { display: none }</style>"
)


class Shown:
    """A display object.  text: for terminals and files; html: for notebooks, "" where there is none."""

    def __init__(self, text: str, html: str = ""):
        self.text, self.html = text.rstrip("\n"), html

    def __repr__(self) -> str:
        return self.text

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        bundle = {"text/plain": self.text, "text/html": self.html}
        return {kind: text for kind, text in bundle.items() if text}


def report(compiled: Any, stages: Sequence[str] = (), diagnostics: bool = True) -> Shown:
    """The report of a compilation or a kernel, without what its launches printed and found: `findings` shows that.

    stages: those to show; empty for all.
    """
    asked = {"show": tuple(stages), "diagnostics": diagnostics, "launches": False}
    return Shown(provided("text")(compiled, **asked), html=provided("html")(compiled, **asked))


def new_ident() -> str:
    """A name for an output that no other one has, in this notebook or in a copy that an earlier kernel left."""
    return uuid4().hex[:12]


def mark_of(ident: str) -> str:
    """The class of the HTML that the widget of that name stands for."""
    return f"tnb-{ident}"


def diagnostics_view(text: Text, diagnostics: tuple[Diagnostic, ...], mark: str = "") -> Shown:
    """Diagnostics of one text with carets.  mark: class of the HTML, by which a widget that shows the same hides it."""
    html = provided("diagnostics_html")(text, diagnostics)
    return Shown(render(text, diagnostics), html=f'<div class="{mark}">{html}</div>' if mark else html)
