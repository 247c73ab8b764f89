"""What a compiled cell or kernel looks like: text, static HTML, versioned JSON, and the text of a stage.

Importing the package registers these forms by name, which is how the runtime, that may not import it, reaches them.
"""

from __future__ import annotations

from ..source.providers import register
from .html import diagnostics_html, to_html
from .json import to_json
from .page import to_page
from .stage_text import stage_statements, stage_text
from .text import to_text

register("text", to_text)
register("html", to_html)
register("page", to_page)
register("json", to_json)
register("diagnostics_html", diagnostics_html)
register("stage_text", stage_text)
register("stage_statements", stage_statements)

__all__ = ["diagnostics_html", "stage_statements", "stage_text", "to_html", "to_json", "to_page", "to_text"]
