"""Shared-memory swizzles: rows of a tile in an order of their 16-byte chunks that keeps 8 neighbouring rows apart.

Shared memory serves 128 bytes at once, 16 bytes from each of 8 threads, if those lie in different 16-byte columns of
its 128-byte lines.  Matrix instructions read one chunk of 8 neighbouring rows; where the length of a row is a multiple
of 128 bytes all of them lie in one column.  A swizzle moves chunk c of row r to c xor f(r).

For rows of 128 bytes (or several), 64 and 32 bytes these are the swizzles that TMA and wgmma know as 128B, 64B, 32B.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

CHUNK_BYTES = 16
ROWS = 8  # that are read together


@dataclass(frozen=True)
class Swizzle:
    """Chunk c of row r lies at chunk `c xor ((r // every) % span)` of its row.

    chunk: elements of 16 bytes.  span: power of two that divides the chunks of a row; 1 moves nothing.
    """

    chunk: int
    every: int
    span: int

    @property
    def moves(self) -> bool:
        return self.span > 1

    def column(self, row: Any, column: Any, xor: Any = lambda a, b: a ^ b) -> Any:
        """Where an element of a row lies in it: ints, NumPy arrays or TIR expressions (`xor` then builds the node)."""
        if not self.moves:
            return column
        turned = (row // self.every if self.every > 1 else row) % self.span
        return xor(column // self.chunk, turned) * self.chunk + column % self.chunk


def swizzle_for(columns: int, itemsize: int) -> Swizzle | None:
    """The swizzle of a row-major tile by the length of its rows; None where rows are no multiples of 16 bytes.

    Eight rows that are `pitch` chunks apart fall on 8 / g columns of a line, g = gcd(pitch, 8): every 8 / g rows the
    pattern repeats, so that is how often the order changes.
    """
    if columns * itemsize % CHUNK_BYTES or CHUNK_BYTES % itemsize:
        return None
    span = math.gcd(columns * itemsize // CHUNK_BYTES, ROWS)
    return Swizzle(CHUNK_BYTES // itemsize, ROWS // span, span)
