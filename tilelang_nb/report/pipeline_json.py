"""The pipelined loops of a kernel in the JSON report.

    pipeline    {line, variable, wanted, stages, ahead, turns?, engine, groups, steps, staying, reason?, launch?}
    group       {waits_at, pending, copies[{tile, source, line, bytes}]}
    step        {turn, starts[turns], held[turn or null per version]}
    staying     {tile, source, line, reason}: a copy that is made in its turn

`stages` is 1 for a loop that stays as it is.  `turns` is null where it depends on arguments.  Turn t uses version
t mod stages; in it the copies for the turns in `starts` begin, and afterwards version v holds or awaits the data of
turn `held[v]`.  The first step, with turn -1, is what happens before the loop; a few turns follow.
"""

from __future__ import annotations

from typing import Any

from ..lowering.pipeline_steps import PipelineSteps

MOST_STEPS = 8


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
        "steps": _steps(one),
        "staying": [
            {"tile": copy.tile, "source": copy.source, "line": copy.line, "reason": copy.reason} for copy in one.staying
        ],
        "reason": one.reason or None,
        "launch": one.launch or None,
    }
    return {key: value for key, value in data.items() if value is not None}


def _steps(one: PipelineSteps) -> list[dict[str, Any]]:
    if not one.ahead:
        return []
    count = MOST_STEPS if one.turns is None else min(one.turns, MOST_STEPS)
    before = {"turn": -1, "starts": list(one.started(None)), "held": list(one.held(-1))}
    turns = [{"turn": turn, "starts": list(one.started(turn)), "held": list(one.held(turn))} for turn in range(count)]
    return [before, *turns]
