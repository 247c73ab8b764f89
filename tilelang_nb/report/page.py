"""A report as a document of its own: one file with the whole view and everything it needs inside.

The static report stands in it as text.  Where the viewer was built and scripts run, the viewer takes its place.
"""

from __future__ import annotations

import json
from typing import Any

from ..source.providers import provided
from .html import to_html
from .json import to_json
from .markup import escape

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ background: #fff; color: #1b1f24; font: 14px/1.5 system-ui, sans-serif; }}
body {{ margin: 24px auto; max-width: 1400px; padding: 0 16px; }}
#tilelang-nb-view {{ --height: max(312px, calc(100vh - 152px)); }}
summary:focus-visible {{ outline: 2px solid currentColor; outline-offset: 2px; }}
@media (prefers-color-scheme: dark) {{ body {{ background: #14171a; color: #e6e8ea; }} }}
</style>
</head>
<body>
<div id="tilelang-nb-view"></div>
<div id="tilelang-nb-static">
{body}
</div>
{viewer}</body>
</html>
"""
VIEWER = """<script type="application/json" id="tilelang-nb-trace">{trace}</script>
<script type="application/json" id="tilelang-nb-viewer">{code}</script>
<script type="module">
const read = (id) => JSON.parse(document.getElementById(id).textContent);
const url = URL.createObjectURL(new Blob([read("tilelang-nb-viewer")], {{ type: "text/javascript" }}));
const {{ mount }} = await import(url);
URL.revokeObjectURL(url);
mount(document.getElementById("tilelang-nb-view"), read("tilelang-nb-trace"));
document.getElementById("tilelang-nb-static").hidden = true;
</script>
"""


def to_page(subject: Any) -> str:
    """The report of a Compilation or of one Kernel as a document; it needs no server and loads nothing."""
    name = subject.text.name if hasattr(subject, "kernels") else subject.name
    code = provided("viewer")()
    viewer = VIEWER.format(trace=_inert(to_json(subject)), code=_inert(json.dumps(code))) if code else ""
    return PAGE.format(title=f"{escape(name)} - tilelang_nb", body=to_html(subject, limit=None), viewer=viewer)


def _inert(data: str) -> str:
    """JSON that ends no script element and begins no comment, whatever texts it holds."""
    return data.replace("<", "\\u003c")
