"""A report as static HTML: what a notebook shows, also where it is opened cold, untrusted or on another page.

Nothing in it runs; every text is escaped.  `page` makes a whole document of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..lowering.pipeline_picture import loop_html
from ..source.catalogue.page import page
from ..source.diagnostic import Diagnostic
from ..source.render import TextOf
from .facts import DETAILS, DEVICE_LANGUAGES, Change, changes, facts, lowered, ready_stages, said, signature, verdict
from .markup import (
    EDGE,
    MONO,
    badge,
    code,
    diagnostic,
    dim,
    div,
    escape,
    fold,
    listing,
    pairs,
    sentence,
    span,
    tag,
)
from .text import device

# A notebook keeps its outputs: long stages are cut there, and whole in the page.
LINES_IN_NOTEBOOK = 300
LINES_BESIDE_WIDGET = 120
PRINTED_LINES = 40
ITEMS_OF_A_LOOP = 24
# Seen only where the widget is not: there is no kernel, or its state was not saved, or this is another page.
NO_WIDGET = (
    "The view with every stage and its links comes when the cell is run; to keep it in the notebook,"
    " check Settings > Save Widget State Automatically in JupyterLab before saving, or write it to a page of its own"
    " with `to_html(path)` of a kernel."
)
CHILDREN_OF_A_TURN = 12


def to_html(
    subject: Any,
    show: Sequence[str] = (),
    *,
    diagnostics: bool = True,
    launches: bool = True,
    limit: int | None = LINES_IN_NOTEBOOK,
    compact: bool = False,
    mark: str = "",
) -> str:
    """The report of a Compilation or of one Kernel, for an output area; "" for a cell without kernel and diagnostic.

    show: names of the stages to show; all if empty.  diagnostics: with what was said of the cell.  launches: with what
    the last launch of each kernel printed and what was found in it.  limit: lines shown of a stage; None for all.
    compact: beside a widget: the first and the last program only, the other stages by their figures.  mark: class of
    the whole, by which a widget finds it.
    """
    kernels = getattr(subject, "kernels", None)
    shown = list(kernels.items()) if kernels is not None else [(subject.name, subject)]
    if not shown and not (diagnostics and said(subject)):
        return ""
    if compact:
        limit = LINES_BESIDE_WIDGET
    parts = [_head(subject, shown)]
    if diagnostics:
        parts.append(diagnostics_html(subject.text, said(subject)))
    for name, kernel in shown:
        parts.append(_kernel(name, kernel, tuple(show), limit, launches, alone=len(shown) == 1, compact=compact))
    if compact:
        parts.append(fold(dim("a static copy: how to keep the view"), div(sentence(NO_WIDGET), "max-width:860px")))
    box = f"border:1px solid {EDGE};border-radius:8px;margin:8px 0;padding:10px 14px;font-size:13px;line-height:20px"
    return tag("div", "".join(parts), box, **({"class": mark} if mark else {}))


def _head(subject: Any, kernels: Sequence[tuple[str, Any]]) -> str:
    what = f"{len(kernels)} kernels" if len(kernels) > 1 else "no kernel" if not kernels else ""
    findings = [found for _, kernel in kernels for found in kernel.findings]
    words = [escape(subject.text.name), what, escape(device(subject.target))]
    line = badge(*verdict(said(subject), findings)) + span(dim(" · ".join(filter(None, words))), "margin:0 0 0 10px")
    return div(line, "margin:0 0 4px 0")


def diagnostics_html(text_of: TextOf, found: Sequence[Diagnostic]) -> str:
    """Diagnostics with carets, and what its code means below the first of a code."""
    explained: set[str] = set()
    shown = []
    for one in found:
        more = "" if one.code in explained else _meaning(one.code)
        explained.add(one.code)
        shown.append(diagnostic(text_of, one, more))
    return "".join(shown)


def _meaning(code_name: str) -> str:
    about = page(code_name)
    content = div(sentence(about.meaning.replace("\n", " ")), "margin:2px 0 4px 0;max-width:760px")
    content += div(dim("This works:"))
    content += listing(about.good.rstrip("\n").split("\n"))
    return fold(f"what {escape(about.code)} {dim(escape(about.slug))} means", content, style="margin:4px 0 0 0")


def _kernel(
    name: str, kernel: Any, show: tuple[str, ...], limit: int | None, launches: bool, alone: bool, compact: bool
) -> str:
    """What the last launch did stands above the stages, where it is seen without scrolling."""
    title = tag("b", escape(name), f"{MONO};font-size:14px")
    sign = "" if alone else " " + badge(*verdict(kernel.diagnostics, kernel.findings))
    parts = [div(f"{title}{dim(code(f'({signature(kernel)})'))}{sign}", "margin:2px 0")]
    if kernel.program is None:
        parts.append(_stopped("tile"))
    else:
        run = _run(kernel) if launches else ""
        stages = _stages(ready_stages(kernel, show), show, limit, compact)
        failed_in = getattr(lowered(kernel), "failed_in", "")
        parts += [_stopped(failed_in)] if failed_in else []
        parts += [_facts(kernel), run, _pipelines(kernel), stages, *([] if compact else [_unroll(kernel.unroll)])]
    style = "margin:6px 0 0 0" if alone else f"margin:10px 0 0 0;padding:8px 0 0 0;border-top:1px solid {EDGE}"
    return div("".join(parts), style)


def _stopped(stage: str) -> str:
    """Where a kernel with errors stopped on its way."""
    return div(dim(f"stopped at {code(stage)}: no later stage was reached, nothing can be launched"))


def _facts(kernel: Any) -> str:
    known = facts(kernel)
    rows = pairs((fact.name, escape(fact.value)) for fact in known if fact.name not in DETAILS)
    details = [fact for fact in known if fact.detail]
    if details:
        whole = [f"{fact.value}; {fact.detail}" if fact.name in DETAILS else fact.detail for fact in details]
        content = "".join(div(f"{dim(escape(fact.name))} {code(text)}") for fact, text in zip(details, whole))
        rows += fold(dim("where these figures come from"), div(content, "padding:0 0 4px 16px"))
    return rows


def _pipelines(kernel: Any) -> str:
    """What copies of pipelined loops run ahead, over time."""
    loops = getattr(lowered(kernel), "pipelines", ())
    if not loops:
        return ""
    names = ", ".join(f"for {loop.variable}" for loop in loops)
    return fold(
        f"{tag('b', 'Pipelines')} {dim(code(names))}", div("".join(map(loop_html, loops)), "padding:0 0 0 16px")
    )


def _stages(stages: Sequence[Any], show: tuple[str, ...], limit: int | None, compact: bool) -> str:
    if not stages:
        return ""
    pairs_shown = list(zip(stages, changes(stages)))
    changed = sum(_marked(stage, change) for stage, change in pairs_shown)
    total = sum(stage.milliseconds for stage in stages)
    heading = f"{tag('b', 'Stages')} {dim(f'{len(stages)}, of which {changed} changed the program; {total:.1f} ms')}"
    width = max(len(stage.name) for stage in stages)
    names = [stage.name for stage in stages]
    with_text = {"tile", "cuda" if "cuda" in names else names[-1], *show} if compact else set(names)
    rows = [
        _stage(stage, change, width, limit, stage.name in with_text)
        for stage, change in pairs_shown
        if not show or stage.name in show
    ]
    return fold(heading, div("".join(rows), "padding:2px 0 2px 16px"), opened=not compact)


def _marked(stage: Any, change: Change) -> bool:
    """A stage that shows another program than the one before it: the tile program is the first of them."""
    return stage.name in ("tile", *DEVICE_LANGUAGES) or bool(change.new or change.removed)


def _stage(stage: Any, change: Change, width: int, limit: int | None, with_text: bool) -> str:
    first = stage.name == "source"
    lines = stage.text.split("\n")
    size = f"{len(lines)} line{'s' if len(lines) != 1 else ''}"
    marked = _marked(stage, change)
    mark = " " if first else "●" if marked else "○"
    alone = first or stage.name in ("tile", *DEVICE_LANGUAGES)  # compared with no stage before it
    note = size if alone else f"{size}, +{len(change.new)} −{change.removed}"
    if not marked and not first:
        note = f"{size}, same text" if stage.changed else "no change"
    column = f"{MONO};font-size:12px;white-space:pre"
    summary = span(
        f"{mark} {escape(stage.name):{width}}",
        f"{column};min-width:{(width + 2) * 0.62:.1f}em;font-weight:{600 if marked or first else 400}",
    )
    summary += " " + span(escape(note), f"{column};min-width:13em;margin:0 0 0 12px")
    time = "" if first else f"{stage.milliseconds:.1f} ms"
    summary += " " + span(time, f"{column};min-width:6em;text-align:right;margin:0 0 0 12px")
    summary += " " + span(dim(sentence(stage.reason)), "margin:0 0 0 12px")
    # A reason that wraps stays in its column; the rest of the width is for the sign that opens the stage.
    summary = span(summary, "display:inline-flex;width:calc(100% - 20px)")
    # What runs is always there to read.
    if not with_text or (not stage.changed and stage.name != "thread"):
        return div(summary, "padding:1px 0 1px 14px")
    gutter = [_numbers(numbers) for numbers in stage.lines]
    heading = "left: the line of the cell" + ("" if first else " it comes from") + ("; + is new" if change.new else "")
    body = listing(lines, gutter, change.new, limit=limit, heading=heading)
    return fold(summary, body)


def _numbers(lines: Iterable[int]) -> str:
    numbers = list(lines)
    return "" if not numbers else str(numbers[0]) if len(numbers) == 1 else f"{numbers[0]}-{numbers[-1]}"


def _unroll(root: Any) -> str:
    """The record of compile-time expansion, unless nothing was expanded."""
    nodes = [child for turn in root.iterations for child in turn.children]
    if not nodes:
        return ""
    content = "".join(_node(node) for node in nodes[:CHILDREN_OF_A_TURN]) + _left_out(len(nodes) - CHILDREN_OF_A_TURN)
    count = f"{len(nodes)} place{'s' if len(nodes) > 1 else ''} expanded while building"
    return fold(f"{tag('b', 'Unrolled')} {dim(count)}", div(content, "padding:2px 0 2px 16px"))


KINDS = {
    "for": "loop",
    "comprehension": "comprehension",
    "macro": "macro",
    "unroll": "unrolled loop",
    "kernel": "kernel",
}


def _node(node: Any) -> str:
    turns = node.iterations
    label = f" {code(node.label)}" if node.label else ""
    place = f"line {node.line}" + (f", defined on line {node.definition_line}" if node.definition_line else "")
    count = "" if node.kind == "macro" else f": {len(turns)} iteration{'s' if len(turns) != 1 else ''}"
    summary = f"{escape(KINDS.get(node.kind, node.kind))}{label} {dim(place + count)}"
    values = [turn.value for turn in turns if turn.value][:ITEMS_OF_A_LOOP]
    more = len(turns) - len(values) if values else 0
    content = div(code(", ".join(values) + (f", … {more:,} more" if more else "")), "overflow-x:auto") if values else ""
    for number, turn in _different(turns)[:CHILDREN_OF_A_TURN]:
        inner = "".join(_node(child) for child in turn.children[:CHILDREN_OF_A_TURN])
        inner += _left_out(len(turn.children) - CHILDREN_OF_A_TURN)
        heading = f"{code(turn.value)} " if turn.value else ""
        heading += dim(f"and {number - 1:,} more like it") if number > 1 else ""
        content += div((div(heading) if heading else "") + div(inner, "padding:0 0 0 16px"))
    content += _left_out(len(_different(turns)) - CHILDREN_OF_A_TURN)
    return fold(summary, div(content, "padding:0 0 2px 16px")) if content else div(summary, "padding:1px 0 1px 14px")


def _different(turns: Sequence[Any]) -> list[tuple[int, Any]]:
    """The turns that expanded something inside, those of one form once, with how many they are."""
    found: dict[Any, list[Any]] = {}
    for turn in turns:
        if turn.children:
            found.setdefault(tuple(_form(child) for child in turn.children), []).append(turn)
    return [(len(alike), alike[0]) for alike in found.values()]


def _form(node: Any) -> Any:
    return (node.kind, node.line, node.label, tuple(tuple(map(_form, turn.children)) for turn in node.iterations))


def _left_out(count: int) -> str:
    return div(dim(f"… {count:,} more")) if count > 0 else ""


def _run(kernel: Any) -> str:
    """What the last launch printed and what the simulated device found in it."""
    parts = []
    if kernel.printed:
        lines = [line.rstrip("\n") for text in kernel.printed for line in text.rstrip("\n").split("\n")]
        parts.append(
            fold(
                f"{tag('b', 'Printed')} {dim(f'{len(lines)} lines')}",
                listing(lines, limit=PRINTED_LINES),
                opened=True,
            )
        )
    if kernel.findings:
        parts.append(div(tag("b", "Found by the simulated device in the last launch"), "margin:6px 0 0 0"))
        parts.append(diagnostics_html(kernel.text, kernel.findings))
    return "".join(parts)
