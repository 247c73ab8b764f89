"""What later parts give the runtime: reports, the widget, the modules of a cell.

"text", "html", "json"   report: (Compilation or Kernel) -> str
"stage_text"             report: (IRModule) -> (lines, source span per line)
"modules"                tilelang: () -> {module name: object}, what `import tilelang...` means in a cell
"profiler"               tilelang: (Kernel, ...) -> profiler
"page"                   report: (Compilation or Kernel) -> the report as one HTML document
"widget"                 notebook: (Kernel) -> widget
"viewer"                 notebook: () -> the code of the viewer, "" where it was not built
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..source.providers import provided as view
from ..source.providers import register

__all__ = ["register", "view", "written"]


def written(subject: Any, path: Any) -> Path:
    """Write the report of a Compilation or a Kernel to a file, as one HTML document; the path of it."""
    place = Path(path)
    place.write_text(view("page")(subject), encoding="utf-8")
    return place
