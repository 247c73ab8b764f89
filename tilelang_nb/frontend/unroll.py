"""The record of compile-time expansion: a tree of loops, comprehensions and macro calls with one turn per expansion.

A turn knows the numbers of the first and last statement that were emitted for it; `TileProgram.statement_spans` leads
from a number to the span that the statement carries through lowering.  Every turn's statements carry span objects of
their own: passes keep the object, so a printed line leads back to one turn, although all turns stand on one line.
"""

from __future__ import annotations

import itertools
import reprlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from ..language.values import Value, written
from ..source import catalogue as say
from ..source.diagnostic import Message, Poisoned, Refusal
from ..source.interrupts import pass_on_interrupt
from ..source.wording import number_text
from .limits import MACRO, Limits
from .names import targets as targets

Warn = Callable[[Message], None]
NodeKind = Literal["kernel", "for", "comprehension", "macro", "unroll"]


@dataclass
class Turn:
    """One expansion.  Statements are numbered from 0; last_statement < first_statement where none was emitted.

    item: the item of a loop; bound: the names that the turn binds, and what they hold.  Both as text, or as the
    expression of a device value, which is printed when asked for.  returned: the line of the `return` by which a macro
    gave a device value, 0 for none; used: the statements that this value went into.
    """

    item: Any
    children: list[Node] = field(default_factory=list)
    first_statement: int = 0
    last_statement: int = -1
    bound: dict[str, Any] = field(default_factory=dict)
    outer: Turn | None = None  # of a comprehension with several `for`: the turn of the one before
    returned: int = 0
    used: list[int] = field(default_factory=list)

    @property
    def value(self) -> str:
        """The item in at most 60 characters."""
        return _text(self.item)

    @property
    def names(self) -> dict[str, str]:
        """What the names hold that the turn binds: loop targets, parameters of a macro."""
        return {name: _text(held) for name, held in self.bound.items()}


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


class Clause(NamedTuple):
    """One `for` of a comprehension.  target: a name, a nested tuple of names, or None; first: it stands first."""

    line: int
    target: Any
    first: bool


class Record:
    """The tree while it grows: `stack` holds the turns at work, innermost last."""

    def __init__(self, line: int, label: str, builder: Any, limits: Limits):
        self.builder, self.limits = builder, limits
        self.turns = 0
        self.too_many = False  # turns: the limit was said
        self.endless = False  # a macro that calls itself for ever was refused
        self.root = Node("kernel", line, label, line, [Turn("")])
        self.stack = [self.root.iterations[0]]
        self.warned = -1  # how many statements there were when TL142 was said last
        self.failures = 0  # statements that were refused
        self.given: list[Turn] = []  # of macros whose values the statement at hand, or one around it, goes on with

    def enter(self, node: Node) -> Node:
        self.stack[-1].children.append(node)
        return node

    def turn(self, node: Node, item: Any, bound: dict[str, Any]) -> Turn:
        """Begin a turn: what is emitted and entered until `end` belongs to it.  TL112 and TL143: there are too many."""
        self.turns += MACRO if node.kind == "macro" else 1
        if self.turns > self.limits.turns:
            if self.too_many:
                raise Poisoned  # said already: the loops around it have as many
            self.too_many = True
            if node.kind == "macro":
                self.endless = True
                limit = f"{self.limits.turns // MACRO:,}"
                raise Refusal(say.MacroRecursionLimit(name=node.label, limit=limit, setting="turns"))
            raise Refusal(say.EndlessIterable(limit=f"{self.limits.turns:,}", setting="turns"))
        turn = Turn(_recorded(item), [], self.builder.count, -1, bound)
        node.iterations.append(turn)
        self.stack.append(turn)
        self.builder.renew_spans()
        return turn

    def end(self, turn: Turn) -> None:
        """End a turn and those within it; one that has ended already stays as it is."""
        stack = self.stack
        for at in range(len(stack) - 1, 0, -1):
            if stack[at] is turn:
                last = self.builder.count - 1
                for ended in stack[at:]:
                    ended.last_statement = last
                del stack[at:]
                self.builder.renew_spans()  # a recursive macro goes on in statements that the inner call had too
                return

    def back_to(self, turn: Turn) -> None:
        """A statement of a turn failed: end the turns within."""
        self.failures += 1
        while self.stack[-1] is not turn and len(self.stack) > 1:
            self.end(self.stack[-1])

    def use(self, given: int, first: int, line: int) -> None:
        """A statement has ended: what it emitted on its own line holds the values that macros gave it.

        Where it emitted nothing itself, as a call of a macro does, they went into what it called.  given: how many
        values there were when it began; first: the number of its first statement; line: its own.
        """
        turns, spans = self.given[given:], self.builder.statement_spans
        del self.given[given:]
        inside = {n for turn in turns for n in range(turn.first_statement, turn.last_statement + 1)}
        made = [number for number in range(first, self.builder.count) if number not in inside]
        own = [number for number in made if spans[number] is not None and spans[number].line == line]
        for turn in turns:
            turn.used += own or made

    def large(self, node: Node, limit: int) -> Message | None:
        """TL142 where the turns of a loop made more statements than the limit and no loop inside it is to blame."""
        turns = node.iterations
        if not turns or self.builder.count - turns[0].first_statement <= limit:
            return None
        made = sum(turn.last_statement - turn.first_statement + 1 for turn in turns)
        if made <= limit or self.warned >= turns[0].first_statement:
            return None
        self.warned = self.builder.count
        each = round(made / len(turns))
        return say.LargeExpansion(
            what=f"`for {node.label} in ...`" if node.kind == "for" else "a comprehension",
            statements=f"{made:,}",
            iterations=f"{len(turns):,}",
            each=f"{each:,} statement{'s' * (each != 1)}",
            remedy=f"{_device_loop(node)}; said from {limit:,} statements on, the setting `statements`",
        )

    def comprehension(self, iterable: Iterable[Any], clause: Clause, warn: Warn) -> Iterator[Any]:
        """The items of a comprehension or generator, each recorded as it is taken; its turn lasts to the next one.

        warn: reports TL142 at the statement that holds it.
        """
        outer = None if clause.first else self.stack[-1]
        node = self.enter(Node("comprehension", clause.line))
        builder = self.builder
        for number, item in enumerate(iterable):
            if number >= self.limits.items:
                raise Refusal(say.EndlessIterable(limit=f"{self.limits.items:,}"))
            span = builder.span
            turn = self.turn(node, item, named(clause.target, item))
            turn.outer = outer
            builder.span = own = builder.copy_of(span)
            try:
                yield item
            finally:
                self.end(turn)
                if builder.span is own:
                    builder.span = span
        message = self.large(node, self.limits.statements)
        if message is not None:
            warn(message)

    def made(self) -> None:
        """An element of a generator is done: what its consumer emits belongs to no turn of the generator."""
        turn: Turn | None = self.stack[-1]
        while turn is not None:
            outer = turn.outer
            self.end(turn)
            turn = outer


def _device_loop(node: Node) -> str:
    """The device loop to write in place of a compile-time loop."""
    written = [turn.item for turn in node.iterations]
    if node.kind == "for" and all(isinstance(item, str) and item.lstrip("-").isdigit() for item in written):
        items = [int(item) for item in written]
        steps = {after - before for before, after in itertools.pairwise(items)}
        if len(steps) == 1 and (step := steps.pop()):
            counted = range(items[0], items[-1] + (1 if step > 0 else -1), step)
            shown_range = f"range({counted.stop})" if counted.start == 0 and step == 1 else repr(counted)
            return f"let the device count: `for {node.label} in {shown_range}`"
    return "use a device loop, `for i in range(n)`, and read what differs from a buffer"


def named(target: Any, item: Any) -> dict[str, Any]:
    """What the names of a target hold when an item is bound to it; those of iterators, which cannot be read twice, are
    left out.
    """
    if isinstance(target, str):
        return {target: _recorded(item)}
    found: dict[str, Any] = {}
    if isinstance(target, tuple) and type(item) in (tuple, list):
        items = list(item)
        for at, part in enumerate(target):
            if isinstance(part, frozenset):
                end = len(items) - (len(target) - at - 1)
                items[at:end] = [items[at:end]]
                found |= named(*part, items[at])
            elif at < len(items):
                if isinstance(part, str):
                    found[part] = _recorded(items[at])
                else:
                    found |= named(part, items[at])
    return found


def _recorded(value: Any) -> Any:
    """Text, or the expression of a device value: printing it costs more than all the rest of a turn."""
    return value.expr if type(value) is Value else shown(value)


def _text(held: Any) -> str:
    return held if isinstance(held, str) else _cut(str(held))


class _Short(reprlib.Repr):
    """Short texts; those of device values inside containers show their expressions."""

    def repr_Value(self, value: Any, level: int) -> str:
        return written(value)

    repr_Buffer = repr_Region = repr_Value


_short = _Short()
_short.maxother = _short.maxstring = _short.maxlong = 60


SHORT = 10**20  # integers below are written out, also two of them


def _is_short(value: Any) -> bool:
    return type(value) is int and -SHORT < value < SHORT


def shown(value: Any) -> str:
    """A value in at most 60 characters, whatever its class does."""
    kind = type(value)
    if _is_short(value):
        return str(value)
    if kind in (int, str, bool, float):
        text = number_text(value)
    elif kind is tuple and len(value) <= 2 and all(map(_is_short, value)):
        return repr(value)
    else:
        try:
            text = _short.repr(value)
        except BaseException as error:  # a class of the user whose repr fails
            pass_on_interrupt(error)
            text = f"<{type(value).__name__}>"
    return _cut(text)


def _cut(text: str) -> str:
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
