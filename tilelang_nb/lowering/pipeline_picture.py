"""Charts of pipelined loops as HTML tables with inline styles only, so that a notebook that is not trusted shows them.

No text colour is set and tints are translucent, so that they read on light and on dark pages; every tint has its sign.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from .pipeline_chart import LEGEND, MARKS, Chart, ChartLane

if TYPE_CHECKING:
    from .pipeline_steps import PipelineSteps

TINTS = {
    "copy": "rgba(128,128,128,0.28)",
    "wait": "rgba(128,128,128,0.12)",
    "use": "rgba(59,118,209,0.4)",
    "run": "rgba(44,138,75,0.22)",
}
_TABLE = "border-collapse:collapse;font-size:12px;line-height:16px;margin:4px 0"
_NAME = "text-align:left;font-weight:400;padding:0 8px 0 0;white-space:nowrap"
_EDGE = "border-top:1px solid rgba(128,128,128,0.4)"


def loop_html(loop: PipelineSteps) -> str:
    """What is known of a pipelined loop: its summary, and the chart where copies run ahead."""
    lines = [f"<div>{escape(line)}</div>" for line in (loop.headline, *loop.left_behind)]
    if loop.chart is not None:
        table = _table(loop.chart, loop.variable)
        lines.insert(1, f'<div style="overflow-x:auto">{table}</div><div>{escape(LEGEND)}</div>')
    return f'<div style="margin:0.5em 0">{"".join(lines)}</div>'


def _table(chart: Chart, variable: str) -> str:
    names = [(escape(name.removeprefix(f"{variable} = ")), count) for name, count in chart.columns]
    heads = "".join(
        f'<th colspan="{count}" style="text-align:center;padding:0 4px">{name}</th>' for name, count in names
    )
    rows = [f'<tr><th style="{_NAME}">{escape(variable)} =</th>{heads}</tr>']
    width = sum(count for _, count in chart.columns)
    part = None
    for lane in chart.lanes:
        is_new, part = lane.part != part, lane.part
        if is_new and not lane.name.startswith(part):
            title = f'<th colspan="{width + 1}" style="{_NAME}"><b>{escape(part)}</b></th>'
            rows.append(f'<tr style="{_EDGE}">{title}</tr>')
            is_new = False
        edge = f' style="{_EDGE}"' if is_new else ""
        rows.append(f'<tr{edge}><th style="{_NAME}">{escape(lane.name)}</th>{_cells(lane, width)}</tr>')
    return f'<table style="{_TABLE}">{"".join(rows)}</table>'


def _cells(lane: ChartLane, width: int) -> str:
    found, at = [], 0
    for cell in lane.cells:
        found.append("<td></td>" * (cell.first - at))
        span = f' colspan="{cell.count}"' if cell.count > 1 else ""
        tint = f"background:{TINTS[cell.what]};" if cell.what in TINTS else ""
        text = MARKS.get(cell.what, "") + cell.text
        found.append(f'<td{span} style="{tint}text-align:center;padding:0 4px">{escape(text)}</td>')
        at = cell.first + cell.count
    return "".join([*found, "<td></td>" * (width - at)])
