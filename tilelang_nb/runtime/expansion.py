"""The record of compile-time expansion as a user reads it: a tree whose turns know their lines in the text of any
stage.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from ..source.uncopied import Uncopied

# Gives, for the name of a stage, the number of the statement that each printed line comes from (None: from none).
StatementsOf = Callable[[str], "list[int | None]"]


class PrintedStatements:
    """Which lines of a stage's text come from which statements; every stage is asked once."""

    def __init__(self, statements_of: StatementsOf):
        self._statements_of = statements_of
        self._sorted: dict[str, tuple[list[int], list[int]]] = {}

    def lines(self, stage: str, intervals: list[tuple[int, int]]) -> tuple[int, ...]:
        """Numbers, from 1, of the lines that come from the statements of the intervals (ends included)."""
        if stage not in self._sorted:
            found = [(number, line) for line, number in enumerate(self._statements_of(stage), 1) if number is not None]
            found.sort()
            self._sorted[stage] = [number for number, _ in found], [line for _, line in found]
        statements, lines = self._sorted[stage]
        chosen: set[int] = set()
        for first, last in intervals:
            chosen.update(lines[bisect_left(statements, first) : bisect_right(statements, last)])
        return tuple(sorted(chosen))


@dataclass(frozen=True)
class ExpansionTurn:
    """One expansion of a body.  value: the item, as text."""

    turn: Any
    printed: PrintedStatements

    @property
    def value(self) -> str:
        return self.turn.value

    @property
    def names(self) -> dict[str, str]:
        """The names that the turn binds, and what they hold, as text: loop targets, the parameters of a macro."""
        return self.turn.names

    @property
    def first_statement(self) -> int:
        """The number of the first statement emitted for it; see `TileProgram.statement_spans`."""
        return self.turn.first_statement

    @property
    def last_statement(self) -> int:
        """The number of its last statement; below the first where there is none."""
        return self.turn.last_statement

    @property
    def intervals(self) -> tuple[tuple[int, int], ...]:
        """First and last statement: its own, then those that a generator emitted for it later."""
        return tuple(_intervals(self.turn))

    @property
    def returned(self) -> int:
        """Of a macro: the line of the `return` that gave a device value; 0 where it gave none."""
        return self.turn.returned

    @property
    def used(self) -> tuple[int, ...]:
        """The statements that hold the value which the macro returned; they are those of its caller."""
        return tuple(self.turn.used)

    @property
    def children(self) -> tuple[ExpansionNode, ...]:
        """The loops, comprehensions and macro calls expanded within this turn."""
        children = self.turn.children
        return tuple(ExpansionNode(child, self.printed) for child in children) if children else ()

    def lines(self, stage: str) -> tuple[int, ...]:
        """Numbers, from 1, of the lines of a stage's text that come from this turn.  KeyError: there is no such
        stage.
        """
        return self.printed.lines(stage, list(_intervals(self.turn)))

    def __repr__(self) -> str:
        return f"<turn {self.value or '-'}: {len(self.turn.children)} nested>"


def _intervals(turn: Any) -> Iterator[tuple[int, int]]:
    """The statements of a turn; those of a generator's inner `for` may come later than its own, as they are asked
    for.
    """
    yield turn.first_statement, turn.last_statement
    for child in turn.children:
        if child.kind == "comprehension":
            for inner in child.iterations:
                if inner.last_statement > turn.last_statement:
                    yield from _intervals(inner)


@dataclass(frozen=True)
class ExpansionNode(Uncopied):
    """A kernel, or something that was expanded while it was built.

    kind: "kernel", "for", "comprehension", "macro" or "unroll".  line: where it stands.  label: its target or name.
    definition_line: of a macro, where it is defined.
    """

    node: Any
    printed: PrintedStatements

    @property
    def kind(self) -> str:
        return self.node.kind

    @property
    def line(self) -> int:
        return self.node.line

    @property
    def label(self) -> str:
        return self.node.label

    @property
    def definition_line(self) -> int:
        return self.node.definition_line

    @property
    def iterations(self) -> tuple[ExpansionTurn, ...]:
        """The turns, in order."""
        return tuple(ExpansionTurn(turn, self.printed) for turn in self.node.iterations)

    def lines(self, stage: str) -> tuple[int, ...]:
        """The lines of all its turns together."""
        return tuple(sorted({line for turn in self.iterations for line in turn.lines(stage)}))

    def __repr__(self) -> str:
        count = len(self.node.iterations)
        return f"<{self.kind} {self.label} at line {self.line}: {count} turn{'s' * (count != 1)}>".replace("  ", " ")
