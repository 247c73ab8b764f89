"""Device values in texts: what they hold is known to no one while a kernel is built.

A text with a device value in it would show the name of the value, or be compared by it, in place of the value; so it
is refused where it is made (TL128), except as an argument of `print`, which is refused as such (TL106).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..language.protocols import TEXT
from ..language.values import is_device
from ..source import catalogue as say
from ..source.diagnostic import Message

CONTAINERS = (list, tuple, set, frozenset, dict)


def device_values(*values: Any) -> list[Any]:
    """The device values among these values and in their containers, in order."""
    found, seen, pending = [], set(), list(reversed(values))
    while pending:
        value = pending.pop()
        if is_device(value):
            found.append(value)
        elif isinstance(value, CONTAINERS) and id(value) not in seen:
            seen.add(id(value))
            items = [part for pair in value.items() for part in pair] if isinstance(value, dict) else list(value)
            pending.extend(reversed(items))
    return found


@dataclass(frozen=True)
class DescribingText:
    """An f-string with a device value in it, on its way into a call.

    value, written: the first device value and its text.  place: line, column, end line and end column of the f-string.
    """

    value: Any
    written: str
    place: tuple[int, int, int, int]


class Blank:
    """Stands for a device value in an f-string, whatever its conversion and format."""

    def __format__(self, form: str) -> str:
        return ""


def text_needed(written: str) -> Message:
    """TL128 for the text of what is written so."""
    return say.ValueNeededWhileBuilding(what=TEXT, remedy=f"write `T.print({written})`, which prints on the device")
