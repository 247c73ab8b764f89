"""A kernel in the JSON report.

    kernel      {name, ok, span, line, source?, parameters, stages, default, unroll, launches[{name, grid, block}],
                 facts, arena[{name, offset, bytes, line?, shape?, dtype?}], layouts, pipelines, findings,
                 counters, printed}
    fact        {name, value, unit, detail, origin, ok, line, used, max}
    layout      see `layout_json`
    pipeline    see `pipeline_json`

`source` is there for a kernel whose text is not that of the cell: one that a factory of another cell made.  Counters
are facts of the simulated device about the last call.  A finding is a diagnostic; one of a statement that a
compile-time loop or a macro made has `node` and `path` beside: the place in `unroll`, and the numbers of the turns from
the outermost place inwards.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from ..source.text import Text
from .cell_run import UNKNOWN_RUN, CellRun
from .diagnostic_json import diagnostic, place, string
from .expansion_json import turn_of, unroll
from .facts import Fact, counted, facts, launch_shapes, lowered, ready_stages
from .layout_json import layout
from .pipeline_json import pipeline
from .stage_json import Allocation, allocations, chosen_of, stages
from .timing_facts import run_facts

# What is shown first, by what there is: what the device runs, which for the simulated one is the program of a thread.
SHOWN_FIRST = {"cuda": ("cuda", "thread", "tile"), "sim": ("thread", "tile")}


def kernel(one: Any, name: str, subject: Any, show: Sequence[str] = (), run: CellRun = UNKNOWN_RUN) -> dict[str, Any]:
    """One kernel, under the name that the cell gives it.

    subject: the compilation that it is shown with, or itself.  show: the stages to give; all if empty.  run: of its
    cell.
    """
    program = lowered(one)
    every, expansion = _unchanging(one, tuple(show))
    shown = chosen_of(every, show) if show else every
    reached = {stage["name"] for stage in shown if "text" in stage or "same_as" in stage}
    known = allocations(one)
    launched = any(launch == one.name for launch, _ in run.launches)
    data: dict[str, Any] = {
        "name": name,
        "ok": bool(one.ok),
        "span": place(one.span),
        "line": one.span.line if one.span else _line_of(one.text, one.name),
        "parameters": [
            {
                "name": parameter.name,
                "kind": parameter.kind,
                "dtype": str(parameter.dtype),
                "shape": [_extent(extent) for extent in parameter.shape],
                "strides": None if parameter.strides is None else [_extent(stride) for stride in parameter.strides],
            }
            for parameter in one.parameters
        ],
        "stages": shown,
        "default": next((stage for stage in (*show, *SHOWN_FIRST[one.target.kind]) if stage in reached), "source"),
        "unroll": expansion,
        "launches": [
            {"name": shape.name, "grid": list(shape.grid), "block": list(shape.block)} for shape in launch_shapes(one)
        ],
        "facts": [fact(figure) for figure in (*run_facts(one, launched, run.benchmarks), *facts(one))],
        "arena": [
            {"name": buffer.name, "offset": buffer.offset, "bytes": buffer.bytes, **_allocation(known.get(buffer.name))}
            for buffer in (program.shared_memory if program else ())
        ],
        "layouts": [layout(known) for known in getattr(program, "maps", ())],
        "pipelines": [pipeline(known) for known in getattr(program, "pipelines", ())],
        "findings": list(_findings(one, expansion)),
        "counters": [fact(figure) for figure in counted(one)],
        "printed": [string(line) for line in one.printed],
    }
    if one.text != subject.text:
        data["source"] = {
            "name": one.text.name,
            "text": string(one.text.source),
            "first_line": one.text.first_line,
        }
    return data


def _findings(one: Any, expansion: dict[str, Any] | None) -> Iterator[dict[str, Any]]:
    """What the simulated device found, with the turns of compile-time loops that made the statement."""
    if not one.findings:
        return
    numbers = {span: number for number, span in enumerate(one.program.statement_spans) if span is not None}
    for found in one.findings:
        entry = diagnostic(found, one.text)
        number = numbers.get(found.made_by)
        node, path = turn_of(expansion, number) if expansion is not None and number is not None else (0, [])
        yield {**entry, "node": node, "path": path} if path else entry


def _allocation(made: Allocation | None) -> dict[str, Any]:
    """Where and how a buffer of the arena is allocated; nothing for one that the compiler added."""
    return {} if made is None else {"line": made.line, "shape": made.shape, "dtype": made.dtype}


Unchanging = tuple[list[dict[str, Any]], "dict[str, Any] | None"]
# The stages and the expansion of builds, which the runs of an unchanged cell share, by the stages that have texts.
_known: WeakKeyDictionary[Any, dict[tuple[str, ...], Unchanging]] = WeakKeyDictionary()


def _unchanging(one: Any, show: tuple[str, ...]) -> Unchanging:
    """The stages and the record of expansion; nobody changes them once they are made."""
    build = one.build()
    if build is None or not one.ok:
        return stages(one, show), unroll(one.unroll, one.text) if one.program is not None else None
    ready = tuple(stage.name for stage in ready_stages(one, show))
    known = _known.setdefault(build, {})
    if ready not in known:
        known[ready] = stages(one, show), unroll(one.unroll, one.text)
    return known[ready]


def fact(known: Fact) -> dict[str, Any]:
    """A figure with its origin; keys that say nothing are left out."""
    entry = {
        "name": known.name,
        "value": known.value,
        "unit": known.unit or None,
        "detail": known.detail or None,
        "origin": known.origin,
        "ok": known.ok,
        "line": known.line,
        "used": known.used,
        "max": known.limit,
    }
    return {key: value for key, value in entry.items() if value is not None}


def _line_of(text: Text, name: str) -> int | None:
    """The line of the `def` of a kernel that was refused."""
    for number, line in enumerate(text.lines, text.first_line):
        if line.lstrip().startswith((f"def {name}(", f"def {name} ")):
            return number
    return None


def _extent(extent: Any) -> int | str:
    return extent if isinstance(extent, int) else str(extent)
