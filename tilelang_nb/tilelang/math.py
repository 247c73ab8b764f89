"""Integer arithmetic on the host for sizes of blocks and grids."""

from __future__ import annotations


def cdiv(a: int, b: int) -> int:
    """The quotient of two integers, rounded up."""
    return -(-a // b)


def next_power_of_2(n: int) -> int:
    """The least power of two that is at least `n`; 1 for `n` below 2."""
    return 1 << max(n - 1, 0).bit_length()
