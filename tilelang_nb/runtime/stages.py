"""The stages of a kernel as they are shown: name, reason, time, and the printed text with the source lines of each
line.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ..source.text import Span, Text
from ..source.uncopied import Uncopied
from . import views


@dataclass(frozen=True)
class Stage(Uncopied):
    """One stage.  The text is printed when first asked for.

    changed: did the stage change the program?  module: the IR after the stage; None for `source`, `cuda`, `ptx` and
    `sass`.  before: the stage whose text this one has, where it changed nothing.  code: makes the text of device code.
    """

    name: str
    reason: str
    milliseconds: float
    changed: bool
    module: Any = field(default=None, repr=False)
    source: tuple[Text, Span] | None = field(default=None, repr=False)
    before: Stage | None = field(default=None, repr=False)
    code: DeviceCode | None = field(default=None, repr=False)

    @property
    def ready(self) -> bool:
        """Whether the text is there without running the CUDA compiler."""
        return self.code is None or self.code.ready

    @cached_property
    def _printed(self) -> tuple[tuple[str, ...], tuple[Any, ...]]:
        if self.source is not None:
            text, span = self.source
            numbers = range(span.line, span.end_line + 1)
            whole = [Span(number, 0, number, len(text.line(number))) for number in numbers]
            return tuple(text.line(number) for number in numbers), tuple(whole)
        if self.before is not None:
            return self.before._printed
        if self.code is not None:
            return self.code.printed
        lines, spans = views.view("stage_text")(self.module)
        return tuple(lines), tuple(spans)

    @property
    def text(self) -> str:
        """The stage as text."""
        return "\n".join(self._printed[0])

    @property
    def spans(self) -> tuple[Any, ...]:
        """For each line of the text, its place in the source, or None."""
        return self._printed[1]

    @property
    def lines(self) -> tuple[tuple[int, ...], ...]:
        """For each line of the text, the source lines that it comes from: where its statement begins; () for none."""
        return tuple((span.line,) if span else () for span in self.spans)

    @property
    def statements(self) -> tuple[int | None, ...] | None:
        """For each line of device code, the number of the front end's statement it comes from; None for other
        stages.
        """
        return None if self.code is None else self.code.statements


class Stages(tuple[Stage, ...]):
    """The stages of a kernel, in order; `stages["tile"]` is the one of that name.  Printed, a line for each.

    KeyError: there is no such stage, or the kernel did not get there.
    """

    __slots__ = ()

    def __getitem__(self, key: Any) -> Any:
        if not isinstance(key, str):
            return super().__getitem__(key)
        found = next((one for one in self if one.name == key), None)
        if found is None:
            raise KeyError(f"no stage {key}: there are {', '.join(one.name for one in self)}")
        return found

    def __str__(self) -> str:
        width = max((len(one.name) for one in self), default=0)
        rows = []
        for one in self:
            what = "on demand" if not one.ready else "changed" if one.changed else "no change"
            time = f"{one.milliseconds:7.1f} ms" if one.ready and one.source is None else ""
            rows.append(f"{one.name:{width}}  {what:9}  {time:10}  {one.reason}".rstrip())
        return "\n".join(rows) or "no stages"

    __repr__ = __str__


@dataclass(frozen=True)
class DeviceCode:
    """The text of one language of a kernel's device code: "cuda", "ptx" or "sass".

    program: the DeviceProgram.  statement_spans: of the tile program.
    """

    language: str
    program: Any
    statement_spans: tuple[Any, ...]

    @property
    def ready(self) -> bool:
        return self.program.has(self.language)

    @cached_property
    def _lines(self) -> tuple[tuple[str, ...], tuple[Any, ...]]:
        """The lines, and for each TVM's span of its statement.  Where it cannot be had the text says why."""
        from ..device import DeviceError

        try:
            text, spans = self.program.text(self.language)
        except DeviceError as error:
            text, spans = "\n".join(f"// {line}" for line in str(error).split("\n")), ()
        lines = tuple(text.rstrip("\n").split("\n"))
        return lines, (*spans[: len(lines)], *[None] * (len(lines) - len(spans)))

    @cached_property
    def printed(self) -> tuple[tuple[str, ...], tuple[Any, ...]]:
        """The lines, and the place of each in the cell."""
        lines, spans = self._lines
        places: dict[int, Span | None] = {id(span): _place(span) for span in spans}
        return lines, tuple(places[id(span)] for span in spans)

    @cached_property
    def statements(self) -> tuple[int | None, ...]:
        """The number of the front end's statement of each line."""
        numbers = {span: number for number, span in enumerate(self.statement_spans) if span is not None}
        return tuple(None if span is None else numbers.get(span) for span in self._lines[1])


def _place(span: Any) -> Span | None:
    """TVM's span as ours."""
    if span is None:
        return None
    return Span(int(span.line), int(span.column) - 1, int(span.end_line), int(span.end_column) - 1)


LARGE = 4000  # statements of a program whose CUDA C is made when it is asked for, not with every report


@dataclass(frozen=True)
class LaterCode:
    """The device code of a large program: made when a text of it is asked for."""

    build: Any

    @property
    def made(self) -> bool:
        return "device" in vars(self.build)

    def has(self, language: str) -> bool:
        return self.made and self.build.device.has(language)

    def text(self, language: str) -> tuple[str, tuple[Any, ...]]:
        from ..device import DeviceError

        if self.build.device.diagnostics:
            raise DeviceError(self.build.device.diagnostics[0])
        return self.build.device.text(language)


def device_stages(program: Any, build: Any) -> tuple[Stage, ...]:
    """The passes of the tail, then `cuda`, `ptx` and `sass`, whose texts are made when asked for.

    Nothing where the tail failed.  Of a large program that has no device code yet only the texts, all on demand.
    """
    spans = tuple(program.statement_spans)
    stages: list[Stage] = []
    device: Any = LaterCode(build)
    milliseconds = 0.0
    if device.made or len(spans) <= LARGE:
        device, milliseconds = build.device, build.device.milliseconds
        if device.diagnostics:
            return ()
        for one in device.passes:
            before = None if one.changed or not stages else stages[-1]
            stages.append(Stage(one.name, one.reason, one.milliseconds, one.changed, one.module, before=before))
    for language, reason, took in (
        ("cuda", "what NVRTC compiles", milliseconds),
        ("ptx", "what NVRTC makes of it, before registers are chosen", 0.0),
        ("sass", "what the multiprocessors execute", 0.0),
    ):
        code = DeviceCode(language, device, spans)
        stages.append(Stage(language, reason, took, True, code=code))
    return tuple(stages)


def stages_of(program: Any, snapshots: Any) -> tuple[Stage, ...]:
    """`source`, then what lowering recorded: `tile`, its stages, `thread`."""
    node = definition(program.text, program.span)
    whole = program.span
    if node is not None:
        first_line = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
        whole = Span(first_line, 0, node.end_lineno or node.lineno, 0)
    first = Stage("source", "what the cell says", 0.0, True, source=(program.text, whole))
    stages = [first]
    for one in snapshots:
        before = None if one.changed or stages[-1] is first else stages[-1]
        stages.append(Stage(one.name, one.reason, one.milliseconds, one.changed, one.module, before=before))
    return tuple(stages)


def definition(text: Text, span: Span) -> ast.FunctionDef | None:
    """The definition whose `def` stands at a span; None where the text has none there."""
    try:
        tree = ast.parse(text.padded.replace("T.assert(", "T.Assert("))
    except SyntaxError:
        return None
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            if first <= span.line <= node.lineno:
                return node
    return None
