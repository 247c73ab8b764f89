"""What a kernel reads from outside, in a form that can be compared: a kernel that was built before is right only as
long as this is the same.

Numbers, texts and containers of them count by value; objects of the user by identity and by their attributes, arrays
by their contents.  Macros, functions of the user and members of the user's modules are followed.  Not seen: large
arrays, what lies behind C extensions and the objects of libraries, and what is nested deeper than DEPTH.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any

from ..source.diagnostic import Poisoned
from .definitions import Definition
from .macros import Macro
from .names import MISSING, Outer
from .python_state import state_of
from .session import outer_of
from .user_code import bases, is_library_file, is_library_module, is_plain, is_user_class

BY_VALUE = (bool, int, float, complex, str, bytes, type(None))
CONTAINERS = (tuple, list, dict, set, frozenset)
DEPTH = 8


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
    pending: list[tuple[Iterable[str], Iterable[str], Outer]] = [(*_read(definition), outer)]
    while pending:
        names, attributes, around = pending.pop()
        values = []
        for name in sorted(names):
            with contextlib.suppress(Poisoned):
                values.append((name, around.look_up(name)))
        values.reverse()
        while values:
            name, value = values.pop()
            if value is MISSING:
                continue
            found.append((name, comparable(value)))
            if id(value) in seen:
                continue
            seen.add(id(value))
            if isinstance(value, Macro):
                pending.append((*_read(value.definition), value.outer))
            elif type(value) is FunctionType and not is_library_file(value.__code__.co_filename):
                code = value.__code__
                known = {*_names(code), *code.co_freevars}
                pending.append((known, known, outer_of(value, None)))
            elif type(value) is ModuleType and not is_library_module(value.__name__):
                members = vars(value)
                values += [(f"{name}.{member}", members[member]) for member in members.keys() & set(attributes)]
    return tuple(found)


def _read(definition: Definition) -> tuple[frozenset[str], frozenset[str]]:
    """Names that the text of a function reads from outside, and attributes that it reads of anything."""
    return definition.outside_names, definition.attribute_names


def comparable(value: Any, depth: int = DEPTH) -> Any:
    """Something hashable that equals another only where the values are the same for a build."""
    kind = type(value)
    if isinstance(value, BY_VALUE):
        return (kind, repr(value) if isinstance(value, (float, complex)) else value)
    if depth == 0:
        return Same(value)
    if kind not in CONTAINERS:
        if is_plain(value) or hasattr(kind, "__next__"):  # an iterator: building takes its items
            return Same(value)
        held = [_state_of(state, depth - 1) for state in state_of(value)]
        classes = bases(value)[1:] if isinstance(value, type) else (kind,)
        held += [comparable(known, depth - 1) for known in classes if is_user_class(known)]
        return (Same(value), tuple(held)) if held else Same(value)
    if isinstance(value, dict):
        return (kind, tuple((comparable(k, depth - 1), comparable(v, depth - 1)) for k, v in value.items()))
    items = [comparable(item, depth - 1) for item in value]
    return (kind, frozenset(items) if isinstance(value, (set, frozenset)) else tuple(items))


def _state_of(state: Any, depth: int) -> Any:
    """A part of the state of an object: attributes by name, contents, or bytes."""
    if isinstance(state, dict):
        return tuple((name, comparable(value, depth)) for name, value in state.items())
    return tuple(comparable(item, depth) for item in state) if type(state) is tuple else comparable(state, depth)


def _names(code: CodeType) -> Iterator[str]:
    """Names that code, and code nested in it, may take from its module."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
