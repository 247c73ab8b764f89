"""What a cell displays: one object with a plain-text and a static HTML form, from which the front end takes what it can show."""

from __future__ import annotations

from typing import Any


class Shown:
    """A display object.  text: for terminals and files; html, markdown: for notebooks, "" where there is none."""

    def __init__(self, text: str, html: str = "", markdown: str = ""):
        self.text, self.html, self.markdown = text.rstrip("\n"), html, markdown

    def __repr__(self) -> str:
        return self.text

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        bundle = {"text/plain": self.text, "text/html": self.html, "text/markdown": self.markdown}
        return {kind: text for kind, text in bundle.items() if text}
