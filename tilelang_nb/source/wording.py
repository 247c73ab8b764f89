"""Words that many messages need: articles, the real name nearest to a misspelt one, and numbers in a length that a
line can hold.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable
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


def nearest(name: str, names: Iterable[str]) -> str | None:
    """The name most like `name`, as a person mistypes it; None where nothing is near."""
    candidates = sorted(set(names))
    found = difflib.get_close_matches(name, candidates, 1, 0.6)
    if found:
        return found[0]
    folded = {candidate.lower().replace("_", ""): candidate for candidate in candidates}
    close = difflib.get_close_matches(name.lower().replace("_", ""), list(folded), 1, 0.7)
    return folded[close[0]] if close else None


def listed(names: Iterable[str]) -> str:
    """Names in backticks, as a sentence lists them."""
    quoted = [f"`{name}`" for name in names]
    return quoted[0] if len(quoted) == 1 else ", ".join(quoted[:-1]) + f" and {quoted[-1]}" if quoted else "nothing"
