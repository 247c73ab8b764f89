"""Words that many messages need: articles, and numbers in a length that a line can hold."""

from __future__ import annotations

import math
from typing import Any

LONGEST = 40  # digits that a message writes out
_VOWEL_SOUND = ("a", "e", "i", "o", "un", "up", "ndarray", "mbarrier")
_CONSONANT_SOUND = ("one", "eu", "uni")


def with_article(noun: str) -> str:
    """`an int`, `a uint8`, `an ndarray`: the noun as it is spoken behind its article."""
    spoken = noun.lstrip("`'\"").lower()
    vowel = spoken.startswith(_VOWEL_SOUND) and not spoken.startswith(_CONSONANT_SOUND)
    return f"{'an' if vowel else 'a'} {noun}"


def of_type(value: Any) -> str:
    """What a message calls a Python object that it cannot show: `an int`, `a list`."""
    return with_article(type(value).__name__)


def number_text(value: Any) -> str:
    """A number as messages write it; a very long integer by its length, which Python would refuse to write out."""
    if not isinstance(value, int) or isinstance(value, bool) or abs(value) < 10**LONGEST:
        return str(value)
    digits = int(math.log10(abs(value)))
    if digits < 10_000 and 10**digits > abs(value):  # the logarithm was rounded up
        digits -= 1
    return f"{'a negative' if value < 0 else 'an'} integer of {digits + 1:,} digits"
