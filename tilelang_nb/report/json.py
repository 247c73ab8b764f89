"""A report as JSON, version 1: all that a viewer needs, and the only form that JavaScript sees.

Lines count from 1 as the editor does, columns in characters from 0, ends are exclusive.  A reader refuses another
version, ignores keys that it does not know, and takes an absent key for null.

    {format, version, generator, ident, execution, ok, target, arch, device, elapsed, source{name, text, first_line},
     cell{text, first_line}, diagnostics, pages{code: page}, patched{text, titles}, pipeline[{name, group, reason}],
     kernels, run, previous}
    kernel      {name, ok, span, line, source?, parameters, stages, default, unroll, launches, facts, arena, layouts,
                 pipelines, findings, counters, printed}: see `kernel_json`
    stage       see `stage_json`
    unroll      see `expansion_json`
    diagnostic  and page: see `diagnostic_json`
    run         {call, result, launches[{kernel, count}], findings, told}: what the cell gave and launched; told: it
                failed, with an error that says nothing beside `diagnostics`
    previous    {execution, cell, kernels{name: {stages{name: text}, facts{name: value}}}}: the run of this cell before
                this one; a text that is null is that of this run
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any

from ..source.collector import collector_paused
from .cell_run import UNKNOWN_RUN, CellRun, result_text
from .diagnostic_json import diagnostic, pages, patched, string
from .facts import said
from .kernel_json import kernel
from .stage_json import pipeline
from .text import device

FORMAT = "tilelang_nb.trace"
VERSION = 1
PRODUCT = __name__.partition(".")[0]


def to_json(subject: Any, run: CellRun = UNKNOWN_RUN) -> str:
    """The report of a Compilation or of one Kernel.  run: what is known of the run of its cell."""
    return json.dumps(to_data(subject, run), ensure_ascii=False, separators=(",", ":"), allow_nan=False)


@collector_paused()
def to_data(subject: Any, run: CellRun = UNKNOWN_RUN, show: Sequence[str] = ()) -> dict[str, Any]:
    """The same as dicts, lists, strings and numbers.  show: the stages to give beside `source`; all if empty."""
    named = getattr(subject, "kernels", None)
    shown = list(named.items()) if named is not None else [(subject.name, subject)]
    text = subject.text
    whole = run.whole(text)
    result = run.result if run.result is not None else result_text(getattr(subject, "result", None))
    kernels = [kernel(one, name, subject, show, run) for name, one in shown]
    said_of_cell = said(subject)
    found_too = [found for _, one in shown for found in one.findings]
    data: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "generator": f"{PRODUCT} {getattr(sys.modules.get(PRODUCT), '__version__', '')}".strip(),
        "ident": run.ident,
        "execution": run.execution,
        "ok": bool(subject.ok),
        "target": subject.target.kind,
        "arch": subject.target.arch,
        "device": device(subject.target),
        "elapsed": None if run.elapsed is None else round(run.elapsed, 1),
        "source": {"name": text.name, "text": string(text.source), "first_line": text.first_line},
        "cell": {"text": string(whole.source), "first_line": 1} if whole is not None else None,
        "diagnostics": [diagnostic(found, text, whole) for found in said_of_cell],
        "pages": pages([*said_of_cell, *found_too]),
        "patched": patched(said_of_cell, text, whole),
        "pipeline": pipeline(),
        "kernels": kernels,
        "run": {
            "call": run.call,
            **({} if result is None else {"result": string(result)}),
            "launches": [{"kernel": name, "count": count} for name, count in run.launches],
            "findings": sum(len(one.findings) for _, one in shown),
            "told": run.told,
        },
    }
    data["previous"] = run.compared_with(data)
    return data
