"""What the passes of one build share, so that a restarted build finds the user's objects as the first pass did.

Compile-time code runs once per pass.  Lists, dicts and sets from outside get their contents back, and iterators from
outside give the same items again, if the kernel, or a Python function that it names, names them.  Not undone:
attributes of objects, nested contents, files, random numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from types import CodeType, FunctionType
from typing import Any

from ..source.diagnostic import Poisoned
from .bindings import CONTAINERS
from .definitions import Definition
from .locate import is_own
from .names import MISSING, Outer

FUNCTIONS = 1000  # functions that are searched for names


@dataclass
class Shared:
    """iterators: items taken so far from iterators that come from outside, by id.

    containers: outside containers with the contents that the first pass found, by id.
    """

    iterators: dict[int, tuple[Any, list[Any]]] = field(default_factory=dict)
    containers: dict[int, tuple[Any, Any]] = field(default_factory=dict)

    def remember(self, value: Any) -> None:
        """An object from outside that a pass may use up or change."""
        if issubclass(type(value), CONTAINERS):  # `isinstance` asks the object, which may be hostile
            if id(value) not in self.containers:
                self.containers[id(value)] = (value, value.copy())
        elif hasattr(type(value), "__next__") and id(value) not in self.iterators:
            self.iterators[id(value)] = (value, [])

    def remember_outside(self, definition: Definition, outer: Outer) -> None:
        """Everything that the text of a kernel names, and what the Python functions among it name."""
        pending: list[FunctionType] = []
        for name in definition.outside_names:
            try:
                value = outer.look_up(name)
            except Poisoned:
                continue
            self._found(value, pending)
        seen: set[int] = set()
        while pending and len(seen) < FUNCTIONS:
            function = pending.pop()
            if id(function) in seen or is_own(function.__code__.co_filename):
                continue
            seen.add(id(function))
            for name in _names(function.__code__):
                self._found(function.__globals__.get(name, MISSING), pending)
            for cell in function.__closure__ or ():
                try:
                    self._found(cell.cell_contents, pending)
                except ValueError:  # not bound yet
                    continue

    def _found(self, value: Any, pending: list[FunctionType]) -> None:
        if type(value) is FunctionType:
            pending.append(value)
        elif value is not MISSING:
            self.remember(value)

    def restore(self) -> None:
        """Undo what an abandoned pass did to the contents of containers."""
        for container, before in self.containers.values():
            now = list(items_of(container))
            then = list(items_of(before))
            if len(now) != len(then) or any(a is not b for a, b in zip(now, then)):
                container.clear()
                (container.update if isinstance(container, (dict, set)) else container.extend)(before)


def items_of(container: Any) -> Iterator[Any]:
    """The objects in a container, keys of a dict included."""
    if isinstance(container, dict):
        for key, value in container.items():
            yield key
            yield value
    else:
        yield from container


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
