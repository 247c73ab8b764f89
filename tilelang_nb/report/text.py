"""A report as plain text: the diagnostics, then per kernel its facts and the table of its stages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ..source.render import render
from .facts import changes, facts, signature, verdict


def to_text(subject: Any, show: Iterable[str] = ()) -> str:
    """The report of a Compilation or of one Kernel.

    show: names of stages whose text follows the table.
    """
    kernels = getattr(subject, "kernels", None)
    blocks = [render(subject.text, subject.diagnostics).rstrip("\n")]
    shown = kernels.values() if kernels is not None else [subject]
    blocks += ["\n".join(_kernel(kernel, tuple(show))) for kernel in shown]
    if kernels is not None and not any(blocks):
        blocks = [f"{subject.text.name}: no kernel"]
    return "\n\n".join(block for block in blocks if block) + "\n"


def _kernel(kernel: Any, show: tuple[str, ...]) -> Iterator[str]:
    yield f"kernel {kernel.name}({signature(kernel)}): {verdict(kernel.diagnostics)[1]}, {_device(kernel.target)}"
    for fact in facts(kernel):
        yield f"  {fact.name}: {fact.value}" + (f" ({fact.detail})" if fact.detail else "")
    stages = kernel.stages
    if stages:
        width = max(len(stage.name) for stage in stages)
        for stage, change in zip(stages, changes(stages)):
            lines = len(stage.text.split("\n"))
            marks = f"+{len(change.new)} -{change.removed}" if change.new or change.removed else ""
            marks = marks if stage.changed else "unchanged"
            yield f"  {stage.name:{width}}  {lines:5} lines  {marks:>12}  {stage.milliseconds:7.1f} ms  {stage.reason}"
    for stage in stages:
        if stage.name in show:
            yield f"\n--- {stage.name}\n{stage.text}"
    if kernel.printed:
        yield "  printed:"
        yield from (f"    {line.rstrip()}" for line in kernel.printed)
    if kernel.findings:
        yield "\n" + render(kernel.text, kernel.findings).rstrip("\n")


def _device(target: Any) -> str:
    return f"simulated device with the limits of {target.arch}" if target.kind == "sim" else str(target)
