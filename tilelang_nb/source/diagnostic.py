"""Diagnostics as data: what was seen, where, and what to write instead. Rendering is in `render.py`.

`Message` is the base of the catalogue: one frozen class per code, whose fields fill its texts. `Refusal` carries a
message from the place that knows what is wrong to the place that knows where (a syntax node, a traceback), which
reports a `Diagnostic`. `Poisoned` drops a statement that uses something already reported.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Literal

from .text import Span

Severity = Literal["error", "warning", "note"]


@dataclass(frozen=True)
class Note:
    """A second place that a diagnostic speaks of; `span` is None where the sentence needs no place."""

    message: str
    span: Span | None = None

    def __str__(self) -> str:
        return self.message


@dataclass(frozen=True)
class Fix:
    """An applicable edit: replace the text under `span` by `replacement`."""

    title: str
    span: Span
    replacement: str

    def __str__(self) -> str:
        return self.title


@dataclass(frozen=True)
class Diagnostic:
    """One located message; codes are stable, see `catalogue`.

    said: what it was made from, for the edits that cure it; None where `span` is not the place of the mistake itself.
    made_by: of a finding, the span object of the statement, by which the turn of a compile-time loop is told.
    """

    code: str
    slug: str
    severity: Severity
    message: str
    label: str
    help: str
    span: Span | None
    notes: tuple[Note, ...] = ()
    fixes: tuple[Fix, ...] = ()
    said: Message | None = field(default=None, compare=False, repr=False)
    made_by: Any = field(default=None, compare=False, repr=False)

    @property
    def key(self) -> tuple[str, Span | None]:
        """Two diagnostics with one key say the same thing."""
        return (self.code, self.span)

    @property
    def order(self) -> tuple[int, int, str]:
        """Sort key: by line, then column, then code; those without a place come last."""
        return (self.span.line, self.span.column, self.code) if self.span else (1 << 60, 0, self.code)

    def __str__(self) -> str:
        where = f"line {self.span.line}: " if self.span else ""
        return f"{self.severity}[{self.code}]: {where}{self.message}" + (f" (help: {self.help})" if self.help else "")


LONGEST = 4000  # characters of one text of a message; names and texts of a cell may be of any length


def for_edits(default: str = "") -> Any:
    """A field of a message that no text of it shows: what only an edit needs to know."""
    return field(default=default, metadata={"shown": False})


@dataclass(frozen=True)
class Message:
    """Base of the catalogue: a subclass sets `code`, `slug` and the texts; `{field}` in a text takes that field."""

    code: ClassVar[str]
    slug: ClassVar[str]
    severity: ClassVar[Severity] = "error"
    text: ClassVar[str]
    label: ClassVar[str]
    advice: ClassVar[str] = ""

    def fill(self, template: str) -> str:
        text = template.format(**{field.name: getattr(self, field.name) for field in fields(self)})
        return text if len(text) <= LONGEST else f"{text[:LONGEST]}... ({len(text):,} characters)"

    def at(self, span: Span | None, notes: tuple[Note, ...] = (), fixes: tuple[Fix, ...] = ()) -> Diagnostic:
        """This message at a place."""
        return Diagnostic(
            self.code,
            self.slug,
            self.severity,
            self.fill(self.text),
            self.fill(self.label),
            self.fill(self.advice),
            span,
            tuple(notes),
            tuple(fixes),
            self,
        )


class Refusal(Exception):
    """A mistake of the user, perhaps not yet located.

    place: the syntax node or span at fault where the raiser knows it; otherwise whoever evaluates the failing
    expression sets it.
    unevaluated: nothing of the statement or expression was evaluated, since its text alone is refused.
    """

    def __init__(
        self,
        message: Message,
        place: ast.AST | Span | None = None,
        notes: tuple[Note, ...] | list[Note] = (),
        fixes: tuple[Fix, ...] | list[Fix] = (),
        unevaluated: bool = False,
    ):
        super().__init__(message.fill(message.text))
        self.message, self.place, self.notes, self.fixes = message, place, tuple(notes), tuple(fixes)
        self.unevaluated = unevaluated

    @property
    def code(self) -> str:
        return self.message.code


class Poisoned(Exception):
    """Something already reported was used: the statement is dropped without a second message."""
