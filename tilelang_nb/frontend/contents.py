"""Compile-time objects that calls change or use up under device control flow.

While building, a body under device control flow is walked once; Python would run it once per turn and thread, or not
at all.  So there it may change only what it made itself, and take items only from iterators that it made itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..source import catalogue as say
from ..source.diagnostic import Refusal
from .bindings import CONTAINERS
from .names import Hidden, Plain
from .restarts import items_of


def reaches(roots: list[Any], target: Any) -> bool:
    """Whether an object is one of these or nested in their containers."""
    pending, seen = list(roots), set()
    while pending and len(seen) < 10000:
        value = pending.pop()
        if value is target:
            return True
        if issubclass(type(value), (*CONTAINERS, tuple)) and id(value) not in seen and type(value) is not bytearray:
            seen.add(id(value))
            pending.extend(items_of(value))
    return False


def held(walker: Any) -> list[Any]:
    """What the names of the kernel or macro at hand hold, whether they may be read here or not."""
    states = walker.frame.states.values()
    hidden = [s.outside.value for s in states if isinstance(s, Hidden) and isinstance(s.outside, Plain)]
    return [*walker.frame.names.values(), *hidden]


def check_used_up(walker: Any, iterator: Any) -> None:
    """An iterator may give items under device control flow only if this scope made it (TL133)."""
    if not hasattr(type(iterator), "__next__") or not (walker.scope.device or walker.builder.guard):
        return
    frame = walker.frame
    own = [] if walker.builder.guard else [frame.names.get(name) for f, name in walker.scope.saved if f is frame]
    if reaches(own, iterator):
        return
    if id(iterator) in walker.shared.iterators or reaches(held(walker), iterator):
        what = f"a {type(iterator).__name__} gives its items under runtime control flow"
        remedy = "make a list of it before, or make it in this block"
        raise Refusal(say.CompileTimeObjectChanged(what=what, remedy=remedy))


def check_guarded_change(walker: Any, owner: Any) -> None:
    """Nothing may change in an operand that runs only under a condition (TL133)."""
    if walker.builder.guard:
        what = f"a {type(owner).__name__} changes in an operand that runs only under a condition"
        raise Refusal(say.CompileTimeObjectChanged(what=what, remedy="use a buffer and an `if` statement"))


def watched(walker: Any, call: Callable[[], Any]) -> Any:
    """The result of code that this walk does not see, in an operand under a condition: it may change no container."""
    known = [*held(walker), *(container for container, _ in walker.shared.containers.values())]
    before = [(value, tuple(items_of(value))) for value in known if issubclass(type(value), CONTAINERS)]
    result = call()
    for container, then in before:
        now = tuple(items_of(container))
        if len(now) != len(then) or any(a is not b for a, b in zip(now, then)):
            check_guarded_change(walker, container)
    return result
