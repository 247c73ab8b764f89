"""The record of compile-time expansion: a tree of loops, comprehensions and macro calls with one turn per expansion.

A turn knows the numbers of the first and last statement that were emitted for it; `TileProgram.statement_spans` leads
from a number to the span that the statement carries through lowering.
"""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from ..source import catalogue as say
from ..source.diagnostic import Refusal

NodeKind = Literal["kernel", "for", "comprehension", "macro", "unroll"]


@dataclass
class Turn:
    """One expansion.  Statements are numbered from 0; last_statement < first_statement where none was emitted."""

    value: str
    children: list[Node] = field(default_factory=list)
    first_statement: int = 0
    last_statement: int = -1


@dataclass
class Node:
    """line: where the loop or call stands.  label: the target or the macro's name.

    definition_line: of a macro, else 0.
    """

    kind: NodeKind
    line: int
    label: str = ""
    definition_line: int = 0
    iterations: list[Turn] = field(default_factory=list)


class Record:
    """The tree while it grows: `stack` holds the turns at work, innermost last."""

    def __init__(self, line: int, label: str):
        self.root = Node("kernel", line, label, line, [Turn("")])
        self.stack = [self.root.iterations[0]]

    def enter(self, node: Node) -> Node:
        self.stack[-1].children.append(node)
        return node

    def turn(self, node: Node, value: Any) -> Turn:
        turn = Turn(shown(value))
        node.iterations.append(turn)
        return turn

    def comprehension(self, iterable: Iterable[Any], line: int, limit: int) -> Iterator[Any]:
        """The items of a comprehension or generator, each recorded as it is taken."""
        node = self.enter(Node("comprehension", line))
        for number, item in enumerate(iterable):
            if number >= limit:
                raise Refusal(say.EndlessIterable(limit=f"{limit:,}"))
            node.iterations.append(Turn(shown(item)))
            yield item


_short = reprlib.Repr()
_short.maxother = _short.maxstring = _short.maxlong = 60


def shown(value: Any) -> str:
    """A value in at most 60 characters, whatever its class does."""
    if type(value) in (int, str, bool, float):
        text = str(value)
    else:
        try:
            text = _short.repr(value)
        except Exception:  # a class of the user whose repr fails
            text = f"<{type(value).__name__}>"
    return text if len(text) <= 60 else text[:57] + "..."


def outline(node: Node, depth: int = 0, limit: int = 6) -> list[str]:
    """Indented text of a record, a few turns of each node."""
    label = f" {node.label}" if node.label else ""
    lines = [f"{'  ' * depth}{node.kind} line {node.line}{label}: {len(node.iterations)} turn(s)"]
    for turn in node.iterations[:limit]:
        if turn.value or turn.children:
            lines.append(f"{'  ' * depth}  [{turn.value}] statements {turn.first_statement}..{turn.last_statement}")
        for child in turn.children[:limit]:
            lines += outline(child, depth + 2, limit)
    return lines
