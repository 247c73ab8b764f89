"""The pipelined loops of a kernel in the JSON report.

    pipeline    {line, variable, wanted, stages, ahead, turns?, engine, groups, chart?, staying, reason?, launch?}
    group       {waits_at, pending, copies[{tile, source, line, bytes}]}
    chart       {columns[[name, count]], lanes[{part, name, cells[[first, count, what, text, said, lines]]}]}
    staying     {tile, source, line, reason}: a copy that is made in its turn

`stages` is 1 for a loop that stays as it is.  `turns` is null where it depends on arguments.  The columns of a chart
are what the computing threads do one after the other; neighbours that share a name stand together with their count.  A
cell fills `count` columns from `first` on; `what` is "copy" (starts there), "wait" (under way, or there), "use" (from
its wait until it is given back), "barrier" or "run"; `text` names turns, those of the next execution with ′; `lines`
are of the cell.  See `lowering/pipeline_chart.py`.
"""

from __future__ import annotations

from typing import Any

from ..lowering.pipeline_chart import Chart
from ..lowering.pipeline_steps import PipelineSteps


def pipeline(one: PipelineSteps) -> dict[str, Any]:
    """A pipelined loop; keys that say nothing are left out."""
    data = {
        "line": one.line,
        "variable": one.variable,
        "wanted": one.wanted,
        "stages": one.stages,
        "ahead": one.ahead,
        "turns": one.turns,
        "engine": one.engine,
        "groups": [
            {
                "waits_at": group.waits_at,
                "pending": group.pending,
                "copies": [
                    {"tile": copy.tile, "source": copy.source, "line": copy.line, "bytes": copy.bytes}
                    for copy in group.copies
                ],
            }
            for group in one.groups
        ],
        "chart": None if one.chart is None else chart(one.chart),
        "staying": [
            {"tile": copy.tile, "source": copy.source, "line": copy.line, "reason": copy.reason} for copy in one.staying
        ],
        "reason": one.reason or None,
        "launch": one.launch or None,
    }
    return {key: value for key, value in data.items() if value is not None}


def chart(one: Chart) -> dict[str, Any]:
    """What happens in a pipelined loop over time."""
    return {
        "columns": [[name, count] for name, count in one.columns],
        "lanes": [
            {
                "part": lane.part,
                "name": lane.name,
                "cells": [
                    [cell.first, cell.count, cell.what, cell.text, cell.said, list(cell.lines)] for cell in lane.cells
                ],
            }
            for lane in one.lanes
        ],
    }
