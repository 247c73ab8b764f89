"""What a report says about a kernel beside its stages, as plain data that text, HTML and JSON share."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from ..lowering.shared_memory import shared_memory_limit
from ..source.diagnostic import Diagnostic
from ..source.render import count
from ..source.wording import tidy

_CALL = re.compile(r"[\w.]+\([^()]*\)|\([^()]*\)")  # what a product needs no parentheses around

DETAILS = {"tensor map", "descriptor"}  # names of facts that stand behind a fold, or where the tiles are shown
DEVICE_LANGUAGES = ("cuda", "ptx", "sass")


@dataclass(frozen=True)
class Fact:
    """A figure of a kernel.

    origin: who says so: "compiler", "simulator", ...  unit: of the value, where the value does not say it.  ok: is it
    as good as it can be?  line: of the cell, that it speaks of.  used, limit: how much of what there is.
    """

    name: str
    value: str
    detail: str = ""
    origin: str = "compiler"
    unit: str = ""
    ok: bool | None = None
    line: int | None = None
    used: int | None = None
    limit: int | None = None


@dataclass(frozen=True)
class LaunchShape:
    """Blocks and threads of one launch, x first; an extent that depends on arguments is its expression."""

    name: str
    grid: tuple[str, ...]
    block: tuple[str, ...]

    def __str__(self) -> str:
        grid = " × ".join(self.grid) or "1"
        blocks = "block" if grid == "1" else "blocks"
        return f"{grid} {blocks} of {' × '.join(self.block) or '1'} threads"


@dataclass(frozen=True)
class Change:
    """What a stage did to the text: numbers of its lines that are new (from 0), and how many lines it took away."""

    new: frozenset[int]
    removed: int


def said(subject: Any) -> tuple[Diagnostic, ...]:
    """What is said of a Compilation or a Kernel, with what the compiler of device code said since it was asked for."""
    found = list(subject.diagnostics)
    for kernel in (getattr(subject, "kernels", None) or {}).values():
        if kernel.text == subject.text and kernel.ok:
            found += [one for one in kernel.build().warnings if one not in found]
    return tuple(sorted(found, key=lambda diagnostic: diagnostic.order))


def verdict(diagnostics: Sequence[Diagnostic], findings: Sequence[Diagnostic] = ()) -> tuple[str, str]:
    """ "ok", "warning" or "error", and the words for it.  findings: what was found in the last launches."""
    worst = "error" if any(found.severity == "error" for found in diagnostics) else "warning"
    if findings and worst != "error":
        return "error", f"compiled; {count(findings)} in the launch"
    if not diagnostics:
        return "ok", "ok"
    return worst, count(diagnostics) if worst == "error" else f"ok, {count(diagnostics)}"


def lowered(kernel: Any) -> Any:
    """The lowered program of a kernel; None if it was refused."""
    build = kernel.build()
    return build.lowered if build is not None else None


def signature(kernel: Any) -> str:
    """`A: float32 (n, 64), n: int32`."""
    return ", ".join(
        f"{parameter.name}: {parameter.dtype}"
        + ("" if parameter.kind == "scalar" else f" ({_extents(parameter.shape)})")
        for parameter in kernel.parameters
    )


def _extents(shape: Iterable[Any]) -> str:
    extents = [str(extent) for extent in shape]
    return f"{extents[0]}," if len(extents) == 1 else ", ".join(extents)


def launch_shapes(kernel: Any) -> tuple[LaunchShape, ...]:
    """The launches of a kernel in their order."""
    program = lowered(kernel)
    shapes = []
    for function in program.launches if program else ():
        axes = dict(_thread_axes(function.body))
        name = str(function.attrs["global_symbol"]) if "global_symbol" in (function.attrs or ()) else kernel.name
        shapes.append(LaunchShape(name, _sizes(axes, "blockIdx"), _sizes(axes, "threadIdx")))
    return tuple(shapes)


def _thread_axes(statement: Any) -> Iterable[tuple[str, str]]:
    """The tags and extents of the axes that stand around the body of a launch."""
    threads = False
    while statement is not None:
        if getattr(statement, "attr_key", None) == "thread_extent":
            tag = str(statement.node.thread_tag)
            threads = threads or tag.startswith("threadIdx")
            yield tag, tidy(str(statement.value))
        # Axes stand around the statements of a launch, of which there may be very many: none is looked for among them.
        for inner in getattr(statement, "seq", ()) if not threads else ():
            if getattr(inner, "attr_key", None) == "thread_extent":
                yield from _thread_axes(inner)
        statement = getattr(statement, "body", None)


def _sizes(axes: dict[str, str], index: str) -> tuple[str, ...]:
    sizes = [axes.get(f"{index}.{axis}", "1") for axis in "xyz"]
    sizes = [size if size.isalnum() or _CALL.fullmatch(size) else f"({size})" for size in sizes]
    while len(sizes) > 1 and sizes[-1] == "1":
        sizes.pop()
    return tuple(sizes)


def facts(kernel: Any) -> tuple[Fact, ...]:
    """Launches, shared memory, workspaces, compile time, and what the simulated device counted in the last launch."""
    program = lowered(kernel)
    if program is None:
        return ()
    shapes = launch_shapes(kernel)
    named = len(shapes) > 1
    found = [Fact(f"launch {shape.name}" if named else "launch", str(shape)) for shape in shapes]
    shared = tuple(program.shared_memory)
    if shared:
        end = max(buffer.offset + buffer.bytes for buffer in shared)
        own = {known.name for known in getattr(program, "maps", ()) if known.own}
        parts = ", ".join(
            f"{'the compiler' if buffer.name in own else buffer.name} {buffer.bytes:,} at {buffer.offset:,}"
            for buffer in shared
        )
        limit = shared_memory_limit(kernel.target.arch)
        found.append(Fact("shared memory", f"{end:,} bytes a block", parts, used=end, limit=limit))
    for space in program.workspaces:
        found.append(Fact(f"workspace {space.name}", f"{space.dtype} ({_extents(space.shape)})"))
    added = {tile.name for tile in getattr(program, "maps", ()) if tile.own}
    for one in getattr(program, "decisions", ()):
        whose = "; a tile that the compiler added" if one.value in added else ""
        found.append(Fact(one.subject, one.value, f"{one.reason}{whose}", line=one.line))
    found.append(Fact("compiled in", f"{sum(stage.milliseconds for stage in kernel.stages):.1f} ms"))
    return (*found, *_resources(kernel), *_edges(kernel), *_executed(kernel))


REGISTERS_OF_A_THREAD = 255


def _resources(kernel: Any) -> Iterable[Fact]:
    """What the machine code takes of a multiprocessor; nothing as long as nobody has compiled it."""
    device = vars(kernel.build()).get("device") if kernel.build() is not None else None
    if device is None or not device.has("ptx"):
        return
    try:
        all_launches = tuple(kernel.resources)
    except Exception:  # there is no compiler, or it refused the text: `ptx` says why
        return
    for one in all_launches:
        at = f" of {one.name}" if len(all_launches) > 1 else ""
        figures = dict(one)
        registers, spills = figures["registers"], [figures["spill_stores"], figures["spill_loads"]]
        if registers.value is not None:
            used, most = int(registers.value), REGISTERS_OF_A_THREAD
            detail = f"of {most} that a thread can have"
            yield Fact(f"registers{at}", f"{used}", detail, registers.origin, "a thread", used=used, limit=most)
        if all(figure.value is not None for figure in spills):
            stores, loads = (int(figure.value) for figure in spills)
            local = figures["local_bytes"]
            detail = f"{stores} stored, {loads} loaded" + (f"; {local} bytes of local memory" if local.value else "")
            yield Fact(f"spills{at}", f"{stores + loads}", detail, spills[0].origin, "bytes", ok=stores + loads == 0)
        if figures["occupancy"].value is not None:
            share, blocks = float(figures["occupancy"].value), figures["blocks"]
            detail = f"{blocks} block{'s' if blocks.value != 1 else ''} a multiprocessor; limited by {one.limit}"
            yield Fact(f"occupancy{at}", f"{100 * share:.0f} %", detail, figures["occupancy"].origin)


def counted(kernel: Any) -> Iterable[Fact]:
    """What the simulated device counted in the launches of the last call, by line and buffer, then by operation."""
    operations: Counter[str] = Counter()
    for counters in kernel.counters or ():
        for memory, unit, table in (
            ("global", "sectors", getattr(counters, "global_sectors", ())),
            ("shared", "wavefronts", getattr(counters, "shared_banks", ())),
        ):
            for row in table:
                each = row.used / max(row.requests, 1)
                good = row.used <= row.ideal
                detail = f"{each:.1f} {unit} a request" + (
                    ", the fewest possible" if good else f"; {row.ideal:,} would do"
                )
                name = f"{memory} {row.access}s of {row.buffer}"
                value = f"{row.requests:,} request{'s' if row.requests != 1 else ''}"
                yield Fact(name, value, detail, "simulator", ok=good, line=row.line)
        operations.update(dict(getattr(counters, "operations", None) or {}))
    for name, number in operations.most_common():
        yield Fact(name, f"{number:,}", "executed, over all threads", "simulator")


def _edges(kernel: Any) -> Iterable[Fact]:
    """Accesses of the last call beyond the edges of tensors: they are guarded, so nothing else tells of them."""
    found: Counter[tuple[str, Any, int | None]] = Counter()
    said: dict[tuple[str, Any, int | None], Any] = {}
    for counters in kernel.counters or ():
        for kept in getattr(counters, "kept_out", ()):
            key = (kept.buffer, kept.access, kept.line)
            found[key] += kept.count
            said[key] = kept
    for key, number in sorted(found.items(), key=lambda item: (item[0][2] or 0, item[0][0])):
        value = replace(said[key], count=number).said()
        yield Fact(f"edge of {key[0]}", value, "guarded at the edge of the tensor", "simulator", line=key[2])


def _executed(kernel: Any) -> Iterable[Fact]:
    """Totals over the launches of the last call: the simulated device counts, it does not time."""
    operations: Counter[str] = Counter()
    for counters in kernel.counters or ():
        operations.update(dict(getattr(counters, "operations", None) or {}))
    if operations:
        parts = ", ".join(f"{name} {number:,}" for name, number in operations.most_common(8))
        yield Fact("executed", f"{sum(operations.values()):,} operations", parts, "simulator")


def is_ready(stage: Any) -> bool:
    """Whether the text of a stage is there without running the CUDA compiler, which no report does by itself."""
    return bool(getattr(stage, "ready", True))


def ready_stages(kernel: Any, show: Sequence[str] = ()) -> tuple[Any, ...]:
    """The stages whose text is there, and those that are asked for by name."""
    return tuple(stage for stage in kernel.stages if is_ready(stage) or stage.name in show)


def changes(stages: Sequence[Any]) -> list[Change]:
    """Per stage, its lines that the stage before it did not have, whatever their order and indentation.

    Nothing for the source, for a stage in another language than the one before it, and for a text that is not there
    yet.
    """
    return list(_changes(tuple(stage.text if _is_compared(stage) else "" for stage in stages)))


def _is_compared(stage: Any) -> bool:
    return is_ready(stage) and stage.name not in ("source", *DEVICE_LANGUAGES)


@lru_cache(maxsize=32)  # text, HTML and JSON of one cell ask for the same
def _changes(texts: tuple[str, ...]) -> tuple[Change, ...]:
    result: list[Change] = []
    before: Counter[str] | None = None
    for text, last in zip(texts, ("", *texts)):
        if not text:
            result.append(Change(frozenset(), 0))
            before = None
            continue
        if text == last:
            result.append(Change(frozenset(), 0))
            continue
        lines = [line.strip() for line in text.split("\n")]
        left, new = Counter(lines) if before is None else before.copy(), set()
        for number, line in enumerate(lines):
            if left[line]:
                left[line] -= 1
            elif line:
                new.add(number)
        left[""] = 0
        result.append(Change(frozenset(new), sum(left.values())))
        before = Counter(lines)
    return tuple(result)
