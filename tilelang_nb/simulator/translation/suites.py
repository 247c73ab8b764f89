"""Python suites while they are written: lines, the temporaries that live in them, what is known to be initialised."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass
class Tracked:
    """A line that only matters where reads of `buffer` have to be checked for missing initialisation."""

    buffer: str
    line: str


@dataclass
class Nested:
    """A finished inner suite."""

    header: str
    lines: list[Any]


@dataclass
class Suite:
    """One suite.

    names: Python names defined in it.  memo: text -> name of a temporary of this suite.
    assigned: buffer name -> registers that every active lane has written at this point.
    function: suite of a generated function, where registers and views of them are made.
    """

    names: set[str] = field(default_factory=set)
    function: bool = False
    lines: list[Any] = field(default_factory=list)
    memo: dict[str, str] = field(default_factory=dict)
    assigned: dict[str, set[int]] = field(default_factory=dict)


def render(lines: list[Any], tracked: set[str], indent: str = "  ") -> list[str]:
    """Lines of Python.  Lines for buffers outside `tracked` are dropped, and suites that thereby become empty."""
    result: list[str] = []
    for line in lines:
        if isinstance(line, Nested):
            body = render(line.lines, tracked, indent)
            if body or not line.header.startswith("if "):
                result += [line.header] + [indent + inner for inner in body or ["pass"]]
            elif _followed_by_else(lines, line):
                result += [line.header, indent + "pass"]
        elif isinstance(line, Tracked):
            if line.buffer in tracked:
                result.append(line.line)
        else:
            result.append(line)
    return result


def _followed_by_else(lines: list[Any], line: Nested) -> bool:
    position = next(index for index, other in enumerate(lines) if other is line)
    following = lines[position + 1] if position + 1 < len(lines) else None
    return isinstance(following, Nested) and following.header == "else:"
