"""Limits that keep a build finite whatever a cell contains."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """items: items of one compile-time loop or consumed iterator.  macro_depth: macros inside macros.

    statements: what one compile-time loop may make without a warning.  nesting: branches and loops inside one another.
    loops: loops alone inside one another.  passes: builds of one kernel while its mutable scalars are found; every
    pass brings a new one, so this is a safeguard.
    """

    items: int = 65536
    statements: int = 4096
    macro_depth: int = 64
    nesting: int = 80
    loops: int = 18
    passes: int = 1000
