"""Limits that keep a build finite whatever a cell contains."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """items: items of one compile-time loop or consumed iterator.

    turns: items and macro calls of a whole kernel.  statements: what one compile-time loop may make without a warning.
    failures: statements that may be refused in one compile-time loop before its other items, which would fail in the
    same way, are left out.  bits: of an integer that `**` or `<<` makes; ten times as many in the Python around a
    kernel.  macro_depth: macros inside macros.
    nesting: branches and loops inside one another.  loops: loops alone inside one another.  passes: builds of one
    kernel while its mutable scalars are found; every pass brings a new one, so this is a safeguard.
    """

    items: int = 65536
    turns: int = 1_000_000
    statements: int = 4096
    failures: int = 200
    macro_depth: int = 64
    nesting: int = 80
    loops: int = 18
    bits: int = 1_000_000
    passes: int = 1000
