"""The record of compile-time expansion as a user reads it: a tree whose turns know their lines in the text of any
stage.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

# Gives, for the name of a stage, the number of the statement that each printed line comes from (None: from none).
StatementsOf = Callable[[str], "list[int | None]"]


@dataclass(frozen=True)
class ExpansionTurn:
    """One expansion of a body.  value: the item, as text."""

    turn: Any
    statements_of: StatementsOf

    @property
    def value(self) -> str:
        return self.turn.value

    @property
    def first_statement(self) -> int:
        """The number of the first statement emitted for it; see `TileProgram.statement_spans`."""
        return self.turn.first_statement

    @property
    def last_statement(self) -> int:
        """The number of its last statement; below the first where there is none."""
        return self.turn.last_statement

    @property
    def children(self) -> tuple[ExpansionNode, ...]:
        """The loops, comprehensions and macro calls expanded within this turn."""
        return tuple(ExpansionNode(child, self.statements_of) for child in self.turn.children)

    def lines(self, stage: str) -> tuple[int, ...]:
        """Numbers, from 1, of the lines of a stage's text that come from this turn.  KeyError: there is no such
        stage.
        """
        own = range(self.first_statement, self.last_statement + 1)
        return tuple(line for line, statement in enumerate(self.statements_of(stage), 1) if statement in own)

    def __repr__(self) -> str:
        return f"<turn {self.value or '-'}: {len(self.turn.children)} nested>"


@dataclass(frozen=True)
class ExpansionNode:
    """A kernel, or something that was expanded while it was built.

    kind: "kernel", "for", "comprehension", "macro" or "unroll".  line: where it stands.  label: its target or name.
    definition_line: of a macro, where it is defined.
    """

    node: Any
    statements_of: StatementsOf

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
        return tuple(ExpansionTurn(turn, self.statements_of) for turn in self.node.iterations)

    def __repr__(self) -> str:
        count = len(self.node.iterations)
        return f"<{self.kind} {self.label} at line {self.line}: {count} turn{'s' * (count != 1)}>".replace("  ", " ")
