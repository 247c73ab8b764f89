"""What later parts give the runtime: reports, the widget, the modules of a cell.

"text", "html", "json"   report: (Compilation or Kernel) -> str
"stage_text"             report: (IRModule) -> (lines, source span per line)
"modules"                tilelang: () -> {module name: object}, what `import tilelang...` means in a cell
"profiler"               tilelang: (Kernel, ...) -> profiler
"widget"                 notebook: (Kernel) -> widget
"""

from __future__ import annotations

from ..source.providers import provided as view
from ..source.providers import register

__all__ = ["register", "view"]
