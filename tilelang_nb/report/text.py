"""A report as plain text: the diagnostics, then per kernel its facts and a line for each of its stages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ..source.render import render
from .facts import DETAILS, DEVICE_LANGUAGES, changes, facts, is_ready, lowered, said, signature, verdict

PRINTED_LINES = 200
SHOWN = ("source", "tile", "thread", *DEVICE_LANGUAGES)  # stages with a line even where they changed nothing


def to_text(subject: Any, show: Sequence[str] = (), *, diagnostics: bool = True, launches: bool = True) -> str:
    """The report of a Compilation or of one Kernel; "" for a cell that has no kernel and nothing wrong.

    show: names of stages whose text is given in full.  diagnostics: with what was said of the cell.  launches: with
    what the last launch of each kernel printed and what was found in it.
    """
    kernels = getattr(subject, "kernels", None)
    blocks = [render(subject.text, said(subject)).rstrip("\n")] if diagnostics else []
    for name, kernel in kernels.items() if kernels is not None else [(subject.name, subject)]:
        blocks.append("\n".join(_summary(name, kernel)))
        blocks += [f"--- {name}: {stage.name}\n{stage.text}" for stage in kernel.stages if stage.name in show]
        if launches and kernel.printed:
            shown = [line.rstrip("\n") for line in kernel.printed[:PRINTED_LINES]]
            more = len(kernel.printed) - len(shown)
            blocks.append("\n".join([*shown, *([f"... {more:,} more lines"] if more else [])]))
        if launches and kernel.findings:
            blocks.append(render(kernel.text, kernel.findings).rstrip("\n"))
    return "\n\n".join(block for block in blocks if block) + ("\n" if any(blocks) else "")


def _summary(name: str, kernel: Any) -> Iterator[str]:
    yield f"{name}({signature(kernel)}): {verdict(kernel.diagnostics, kernel.findings)[1]}"
    if kernel.program is None:
        return
    yield f"  {device(kernel.target)}"
    for fact in facts(kernel):
        if fact.name in DETAILS:
            continue
        at = f" (line {fact.line})" if fact.line is not None and fact.origin == "simulator" else ""
        yield f"  {fact.name}: {fact.value}{at}"
    for loop in getattr(lowered(kernel), "pipelines", ()):
        yield from (f"  {line}" for line in str(loop).split("\n"))
    stages = kernel.stages
    width = max((len(stage.name) for stage in stages), default=0)
    same = 0
    for stage, change in zip(stages, changes(stages)):
        if not is_ready(stage):
            yield f"  {stage.name:{width}}  {'on demand':>12}"
            continue
        if not stage.changed and stage.name not in SHOWN:
            same += 1
            continue
        size = f"{len(stage.spans):,} lines"
        marks = f"+{len(change.new)} -{change.removed}" if change.new or change.removed else ""
        marks = marks if stage.changed else "no change"
        time = "" if stage.name == "source" else f"{stage.milliseconds:.1f} ms"
        yield f"  {stage.name:{width}}  {size:>12}  {marks:>12}  {time:>10}".rstrip()
    if same:
        yield f"  {same} more stage{'s' if same > 1 else ''} changed nothing"


def device(target: Any) -> str:
    """What the kernel is compiled for, in words that leave no doubt about a simulation."""
    return f"simulated device, limits of {target.arch}; not timed" if target.kind == "sim" else str(target)
