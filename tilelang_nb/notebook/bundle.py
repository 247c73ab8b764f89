"""The built viewer, `static/widget.js`, and the loader of the widgets, as text.

Apart from `widget` so that a page can be written where neither IPython nor ipywidgets is installed.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from ..source.providers import register

FOLDER = Path(__file__).parent
VIEWER = FOLDER / "static" / "widget.js"
NOT_BUILT = "export default { render({ el }) { throw new Error('this installation has no viewer; build it in js/'); } }"


@cache
def viewer() -> str:
    """The text of the built viewer; "" where it was not built."""
    return VIEWER.read_text(encoding="utf-8") if VIEWER.exists() else ""


@cache
def loader() -> str:
    """The code of a widget: every widget of a notebook holds it, so it goes without comments and indents."""
    text = (FOLDER / "loader.js").read_text(encoding="utf-8")
    return re.sub(r"\n\s+", "\n", re.sub(r"^\s*//.*\n", "", text, flags=re.MULTILINE))


register("viewer", viewer)
