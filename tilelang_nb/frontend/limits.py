"""Limits that keep a build finite whatever a cell contains, and the settings that change them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..source import catalogue as say
from ..source.diagnostic import Refusal
from ..source.wording import listed, nearest, number_text, of_type

VARIABLE = "TILELANG_NB_LIMITS"  # of the environment: settings for every cell and module, `items=100000,bits=5000000`
MACRO = 10  # items that take as long to expand as a macro call


@dataclass(frozen=True)
class Limits:
    """items: items of one compile-time loop or consumed iterator.

    turns: items of a whole kernel, where a macro call counts as `MACRO` of them.

    statements: what one compile-time loop may make without a warning.
    failures: statements that may be refused in one compile-time loop before its other items, which would fail in the
    same way, are left out.  bits: of an integer that `**` or `<<` makes.  macro_depth: macros inside macros.
    nesting: branches and loops inside one another.  loops: loops alone inside one another.  passes: builds of one
    kernel while its mutable scalars are found; every pass brings a new one, so this is a safeguard.
    """

    items: int = 65536
    turns: int = 200_000
    statements: int = 4096
    failures: int = 200
    macro_depth: int = 64
    nesting: int = 80
    loops: int = 18
    bits: int = 1_000_000
    passes: int = 1000


# The limits that can be set, each with the most that it can be: what others guard is Python's own stack, or a fault.
SETTINGS = {"items": 10**9, "turns": 10**9, "statements": 10**9, "macro_depth": 200, "bits": 10**9}


def limits_of(settings: Mapping[str, Any] | None, variable: str = "") -> Limits:
    """The limits with some of them set.

    variable: the text of `TILELANG_NB_LIMITS`; `settings` go before it.
    TL004 for a name that is no setting, or a value that is no positive integer or too large.
    """
    given = {**settings_of(variable, VARIABLE), **(settings or {})}
    return replace(Limits(), **{name: _checked(name, value) for name, value in given.items()})


def settings_of(text: str, where: str) -> dict[str, int]:
    """Settings written as `items=100000,bits=5000000`.  where: what messages call the text.  TL004 for another form."""
    found = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or not value.replace("_", "").isdigit():
            problem, remedy = f"`{part}` in `{where}` is no setting of a limit", f"write `{name or 'items'}=100000`"
            raise Refusal(say.BadArgument(problem=problem, remedy=remedy))
        found[name] = int(value)
    return found


def _checked(name: Any, value: Any) -> int:
    if name not in SETTINGS:
        near = nearest(str(name), SETTINGS)
        remedy = f"did you mean `{near}`?" if near else f"the settings are {listed(SETTINGS)}"
        raise Refusal(say.BadArgument(problem=f"there is no limit `{name}` to set", remedy=remedy))
    most = SETTINGS[name]
    if not isinstance(value, int) or isinstance(value, bool):
        raise Refusal(say.BadArgument(problem=f"the limit `{name}` is {of_type(value)}", remedy="give an integer"))
    if not 1 <= value <= most:
        problem = f"the limit `{name}` is {number_text(value)}"
        raise Refusal(say.BadArgument(problem=problem, remedy=f"give 1..{most}"))
    return value
