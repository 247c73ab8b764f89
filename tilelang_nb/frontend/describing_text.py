"""Text that speaks of device values: their expressions can be shown, but what the text would be is known to no one yet.

An f-string with a device value in it is good for messages.  A kernel that looks into such a text would be built for the
name of a value in place of the value, so every look is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..language.values import is_device
from ..source import catalogue as say
from ..source.diagnostic import Refusal

CONTAINERS = (list, tuple, set, frozenset, dict)


def device_values(*values: Any) -> list[Any]:
    """The device values among these values and in their containers, in order."""
    found, seen, pending = [], set(), list(reversed(values))
    while pending:
        value = pending.pop()
        if isinstance(value, DescribingText):
            found.append(value.value)
        elif is_device(value):
            found.append(value)
        elif isinstance(value, CONTAINERS) and id(value) not in seen:
            seen.add(id(value))
            items = [part for pair in value.items() for part in pair] if isinstance(value, dict) else list(value)
            pending.extend(reversed(items))
    return found


def describing(text: Any, *values: Any) -> Any:
    """A text made from values: it remembers the first device value among them."""
    found = device_values(*values) if isinstance(text, str) else []
    return DescribingText(text, found[0]) if found else text


class DescribingText(str):
    """Text of a device value inside an f-string, or a text with one in it; `value` is the first such value."""

    value: Any

    def __new__(cls, text: str, value: Any) -> DescribingText:
        self = super().__new__(cls, str.__str__(text))
        self.value = value
        return self

    def __str__(self) -> str:
        return self

    def __repr__(self) -> str:
        return str.__str__(self)

    def __format__(self, form: str) -> str:
        plain = str.__str__(self)
        try:
            return format(plain, form)
        except ValueError:  # a form for numbers
            return plain

    def __add__(self, other: Any) -> Any:
        return DescribingText(str.__str__(self) + str.__str__(other), self.value)

    def __radd__(self, other: Any) -> Any:
        return DescribingText(str.__str__(other) + str.__str__(self), self.value)


def _refusing(name: str) -> Callable[..., Any]:
    def look(*_: Any) -> Any:
        remedy = "compute with the value itself; its text is good for messages only"
        raise Refusal(say.ValueNeededWhileBuilding(what="the text of a device value", remedy=remedy))

    look.__name__ = name
    return look


# What gives a number, a truth or an order, or another text in which the value could not be found again.
_LOOKS = ["__bool__", "__contains__", "__eq__", "__ge__", "__getitem__", "__gt__", "__hash__", "__int__", "__iter__"]
_LOOKS += ["__le__", "__len__", "__lt__", "__mod__", "__mul__", "__ne__", "__rmul__"]
_LOOKS += [name for name in dir(str) if not name.startswith("_") and name not in ("encode", "format", "join")]
for _name in _LOOKS:
    setattr(DescribingText, _name, _refusing(_name))
