"""TL13x: names and re-binding."""

from __future__ import annotations

from dataclasses import dataclass

from ..diagnostic import Message

__all__ = [
    "MaybeUnbound",
    "LoopVariableAfterLoop",
    "TypeConflict",
    "CompileTimeObjectChanged",
    "ScalarAccumulatedInParallel",
]


@dataclass(frozen=True)
class MaybeUnbound(Message):
    """Bound on some paths only, then used."""

    code, slug = "TL130", "maybe-unbound"
    text = "`{name}` {how}"
    label = "without a value on one path that leads here"
    advice = "give `{name}` a value before {what}"

    name: str
    what: str
    how: str = "has a value on some paths only"


@dataclass(frozen=True)
class LoopVariableAfterLoop(Message):
    """The variable of a device loop used after it."""

    code, slug = "TL131", "loop-variable-after-loop"
    text = "`{name}` is the variable of a device loop that has ended"
    label = "gone when the loop ends"
    advice = "use the bound of the loop, or keep the value in a name of your own"

    name: str


@dataclass(frozen=True)
class TypeConflict(Message):
    """Re-binding with another strong type."""

    code, slug = "TL132", "type-conflict"
    text = "`{name}` is {first} and here becomes {second}"
    label = "re-bound with another type"
    advice = 'cast one of them: `T.cast(value, "{target}")`'

    name: str
    first: str
    second: str
    target: str


@dataclass(frozen=True)
class CompileTimeObjectChanged(Message):
    """A list, dict, str or buffer re-bound or changed under runtime control flow."""

    code, slug = "TL133", "compile-time-object-changed-at-run-time"
    text = "{what}"
    label = "it would change once, while building"
    advice = "{remedy}"

    what: str
    remedy: str


@dataclass(frozen=True)
class ScalarAccumulatedInParallel(Message):
    """A scalar carried over the iterations of T.Parallel."""

    code, slug = "TL134", "scalar-accumulated-in-parallel"
    text = "`{name}` is carried from one iteration of `T.Parallel` to another"
    label = "iterations of `T.Parallel` have no order"
    advice = "{remedy}"

    name: str
    remedy: str
