"""The stages of a kernel as they are shown: name, reason, time, and the printed text with the source lines of each
line.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ..source.text import Span, Text
from . import views


@dataclass(frozen=True)
class Stage:
    """One stage.  The text is printed when first asked for.

    changed: did the stage change the program?  module: the IR after the stage; None for `source`.
    before: the stage whose text this one has, where it changed nothing.
    """

    name: str
    reason: str
    milliseconds: float
    changed: bool
    module: Any = field(default=None, repr=False)
    source: tuple[Text, Span] | None = field(default=None, repr=False)
    before: Stage | None = field(default=None, repr=False)

    @cached_property
    def _printed(self) -> tuple[tuple[str, ...], tuple[Any, ...]]:
        if self.source is not None:
            text, span = self.source
            numbers = range(span.line, span.end_line + 1)
            whole = [Span(number, 0, number, len(text.line(number))) for number in numbers]
            return tuple(text.line(number) for number in numbers), tuple(whole)
        if self.before is not None:
            return self.before._printed
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
