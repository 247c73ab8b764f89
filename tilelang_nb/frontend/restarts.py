"""What the passes of one build share, so that a restarted build finds the user's objects as the first pass did.

Compile-time code runs once per pass.  Before each further pass the state gets back to what it was that can be reached
from what the kernel and its macros name (`python_state`: globals, closures, attributes, contents, small arrays, random
numbers), and iterators from outside give the same items again.  Not undone: files, large arrays, state of libraries,
and iterators used up inside helpers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any

from ..source.diagnostic import Poisoned
from .definitions import Definition
from .macros import Macro
from .names import MISSING, Outer
from .python_state import Watch
from .user_code import QuietCalls, global_names, is_library_file, is_plain

FUNCTIONS = 1000  # functions that are searched for names


@dataclass
class Shared:
    """iterators: items taken so far from iterators that come from outside, by id.

    roots: objects that the text of the kernel and its macros names.  state: of everything they lead to, as the first
    pass found it.  quiet_calls: which calls need no comparison.
    """

    iterators: dict[int, tuple[Any, list[Any]]] = field(default_factory=dict)
    roots: list[Any] = field(default_factory=list)
    state: Watch = field(default_factory=Watch)
    quiet_calls: QuietCalls = field(default_factory=QuietCalls)

    def remember(self, value: Any) -> None:
        """An object from outside that a pass may use up or change."""
        if is_plain(value) or any(value is root for root in self.roots):
            return
        self.roots.append(value)
        self.state.add([value])
        self._iterator(value)

    def _iterator(self, value: Any) -> None:
        if hasattr(type(value), "__next__") and id(value) not in self.iterators:
            self.iterators[id(value)] = (value, [])

    def remember_outside(self, definition: Definition, outer: Outer) -> None:
        """Everything that the text of a kernel names, with what its macros and the Python functions among it name."""
        texts, seen_texts = [(definition, outer)], set()
        pending: list[FunctionType] = []
        while texts:
            text, names = texts.pop()
            if id(text) in seen_texts:
                continue
            seen_texts.add(id(text))
            for name in text.outside_names:
                try:
                    value = names.look_up(name)
                except Poisoned:
                    continue
                if type(value) is Macro:
                    texts.append((value.definition, value.outer))
                elif type(value) is FunctionType:
                    pending.append(value)
                if value is not MISSING:
                    self.remember(value)
        self._remember_iterators(pending)

    def _remember_iterators(self, pending: list[FunctionType]) -> None:
        """Iterators that the functions name."""
        seen: set[int] = set()
        while pending and len(seen) < FUNCTIONS:
            function = pending.pop()
            if id(function) in seen or is_library_file(function.__code__.co_filename):
                continue
            seen.add(id(function))
            found = [dict.get(known, name) for known, name in global_names(function)]
            for cell in function.__closure__ or ():
                try:
                    found.append(cell.cell_contents)
                except ValueError:  # not bound yet
                    continue
            for value in found:
                if type(value) is FunctionType:
                    pending.append(value)
                else:
                    self._iterator(value)

    def restore(self) -> None:
        """Undo what an abandoned pass did to the state outside."""
        self.state.restore()


def items_of(container: Any) -> Iterator[Any]:
    """The objects in a container, keys of a dict included."""
    if isinstance(container, dict):
        for key, value in container.items():
            yield key
            yield value
    else:
        yield from container
