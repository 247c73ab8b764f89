"""What a kernel reads from outside, in a form that can be compared: a kernel that was built before is right only as
long as this is the same.

Numbers, texts and containers of them count by value, other objects by identity.  Macros, and functions of the same
module, are followed.  Not seen: attributes of objects.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import CodeType, FunctionType
from typing import Any

from ..source.diagnostic import Poisoned
from .definitions import Definition
from .macros import Macro
from .names import MISSING, Outer
from .session import outer_of

BY_VALUE = (bool, int, float, complex, str, bytes, type(None))
CONTAINERS = (tuple, list, dict, set, frozenset)
DEPTH = 4


class Same:
    """An object that equals only itself."""

    __slots__ = ("value",)

    def __init__(self, value: Any):
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


def surroundings(definition: Definition, outer: Outer) -> tuple[Any, ...]:
    """Names and values outside a kernel and what it calls, hashable; equal where a build would find the same."""
    found: list[Any] = []
    seen: set[int] = set()
    pending: list[tuple[Iterable[str], Outer]] = [(definition.outside_names, outer)]
    while pending:
        names, around = pending.pop()
        for name in sorted(names):
            try:
                value = around.look_up(name)
            except Poisoned:
                continue
            if value is MISSING:
                continue
            found.append((name, comparable(value)))
            if id(value) in seen:
                continue
            seen.add(id(value))
            if isinstance(value, Macro):
                pending.append((value.definition.outside_names, value.outer))
            elif type(value) is FunctionType and value.__globals__ is outer.module:
                code = value.__code__
                pending.append(({*_names(code), *code.co_freevars}, outer_of(value, None)))
    return tuple(found)


def comparable(value: Any, depth: int = DEPTH) -> Any:
    """Something hashable that equals another only where the values are the same for a build."""
    kind = type(value)
    if isinstance(value, BY_VALUE):
        return (kind, repr(value) if isinstance(value, (float, complex)) else value)
    if kind not in CONTAINERS or depth == 0:
        return Same(value)
    if isinstance(value, dict):
        return (kind, tuple((comparable(k, depth - 1), comparable(v, depth - 1)) for k, v in value.items()))
    items = [comparable(item, depth - 1) for item in value]
    return (kind, frozenset(items) if isinstance(value, (set, frozenset)) else tuple(items))


def _names(code: CodeType) -> Iterator[str]:
    """Names that code, and code nested in it, may take from its module."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
