"""The record of compile-time expansion in the JSON report.

    unroll      {id, kind, line, label, header, definition_line, names[], iterations}
    iteration   {value, bound[], statements[first, last], also?[[first, last]], children[unroll]}

`id` is that of the place: the instances of a loop in the iterations of an outer one share it.  Statement numbers are
those of `statements` in the stages.  `bound` holds the value of each of `names`, null where the iteration does not bind
it.  `also` holds statements that a generator made later, and those of the caller that hold what a macro returned.
`line` is null, and so is `definition_line`, where it is a line of another cell's text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

from ..source.text import Text
from .diagnostic_json import string
from .readable import readable

WIDEST_HEADER = 160


def unroll(root: Any, text: Text) -> dict[str, Any]:
    """The tree from its root, the kernel.  text: what its lines are lines of."""
    return _node(root, text, _Places(), 0, True)


class _Places:
    """Numbers for the places at which something is expanded: below one outer place, by what it is and where it stands,
    and by its turn among those alike.
    """

    def __init__(self) -> None:
        self.known: dict[Any, int] = {}

    def number(self, outer: int, node: Any, occurrence: int) -> int:
        place = (outer, node.kind, node.line, node.label, node.definition_line, occurrence)
        return self.known.setdefault(place, len(self.known) + 1)

    def numbers(self, outer: int, nodes: Sequence[Any]) -> Iterator[int]:
        """For the nodes of one iteration."""
        alike: Counter[Any] = Counter()
        for node in nodes:
            key = (node.kind, node.line, node.label, node.definition_line)
            yield self.number(outer, node, alike[key])
            alike[key] += 1


def _node(node: Any, text: Text, places: _Places, number: int, here: bool, shared: bool = False) -> dict[str, Any]:
    """here: does the node stand in `text`, or in a macro of another one?  shared: it runs inside a comprehension, so
    that a statement which holds what it returned is that of several turns.
    """
    shared = shared or node.kind == "comprehension"
    inside = here if node.kind != "macro" else defined_in(node, text)
    names: dict[str, None] = {}
    bound = []
    turns = node.iterations
    for turn in turns:
        bound.append(turn.names)
        names.update(dict.fromkeys(bound[-1]))
    header = text.line(node.line).strip()[:WIDEST_HEADER] if here else ""
    return {
        "id": number,
        "kind": node.kind,
        "line": node.line if here else None,
        "label": string(node.label),
        "header": string(header or node.label),
        "definition_line": node.definition_line if node.definition_line and inside else None,
        "names": list(names),
        "iterations": [
            _iteration(turn, [_value(held, name) for name in names], text, places, number, inside, shared)
            for turn, held in zip(turns, bound)
        ],
    }


def _value(held: dict[str, str], name: str) -> str | None:
    if name not in held:
        return None
    value = held[name]
    return string(_written(value) if "T." in value else value)


@lru_cache(maxsize=4096)
def _written(value: str) -> str:
    """A value as a kernel would write it: `row[i + 1]` for TVM's `row[T.Add(i, 1)]`."""
    return readable([value])[0]


def _iteration(
    turn: Any, bound: list[str | None], text: Text, places: _Places, outer: int, here: bool, shared: bool
) -> dict[str, Any]:
    children = turn.children
    entry: dict[str, Any] = {
        "value": string(turn.value),
        "bound": bound,
        "statements": [turn.first_statement, turn.last_statement],
        "children": [
            _node(child, text, places, number, here, shared)
            for child, number in zip(children, places.numbers(outer, children))
        ]
        if children
        else [],
    }
    if children and any(child.kind == "comprehension" for child in children):
        later = [list(interval) for interval in turn.intervals[1:]]
        if later:
            entry["also"] = later
    if turn.used and not shared:
        entry["also"] = [*entry.get("also", ()), *([number, number] for number in turn.used)]
    return entry


def turn_of(unrolled: dict[str, Any], statement: int) -> tuple[int, list[int]]:
    """The innermost place of the record, by its `id`, with a turn that made a statement, and the numbers of the turns
    that lead there, outermost first; (0, []) for a statement that no compile-time loop, macro or comprehension made.
    """
    number, turn = 0, unrolled["iterations"][0]
    path: list[int] = []
    while True:
        inner = [
            (node, at)
            for node in turn["children"]
            for at, one in enumerate(node["iterations"])
            if any(first <= statement <= last for first, last in (one["statements"], *one.get("also", ())))
        ]
        if not inner or inner[-1] != inner[0]:  # the turns of a `T.unroll` share their statements
            return number, path
        node, at = inner[0]
        number, turn = node["id"], node["iterations"][at]
        path.append(at)


def defined_in(macro: Any, text: Text) -> bool:
    """Is a macro defined in this text?  Its record knows the line, not the text."""
    line = text.line(macro.definition_line)
    return re.search(rf"\bdef\s+{re.escape(macro.label)}\b", line) is not None


def returns(root: Any, text: Text) -> dict[int, tuple[int, ...]]:
    """For every statement that holds what a macro returned, the lines of the `return`, as far as they are in `text`."""
    found: dict[int, dict[int, None]] = {}

    def visit(node: Any, here: bool) -> None:
        inside = here if node.kind != "macro" else defined_in(node, text)
        for turn in node.iterations:
            if inside:
                for number in turn.used:
                    found.setdefault(number, {})[turn.returned] = None
            for child in turn.children:
                visit(child, inside)

    visit(root, True)
    return {number: tuple(lines) for number, lines in found.items()}


def calls(root: Any, text: Text) -> tuple[dict[int, tuple[int, ...]], bool]:
    """For every statement that a macro made, the lines of the calls, innermost first, as far as they are in `text`.

    Also whether a macro of another text is among them.
    """
    found: dict[int, tuple[int, ...]] = {}
    foreign = False

    def visit(node: Any, above: tuple[int, ...], here: bool) -> None:
        nonlocal foreign
        inside = here
        if node.kind == "macro":
            inside = defined_in(node, text)
            foreign = foreign or not inside
            above = (node.line, *above) if here else above
        for turn in node.iterations:
            if node.kind == "macro":
                found.update(dict.fromkeys(range(turn.first_statement, turn.last_statement + 1), above))
            for child in turn.children:
                visit(child, above, inside)

    visit(root, (), True)
    return found, foreign
