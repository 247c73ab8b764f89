"""How products of warp groups (wgmma) divide a tile of C, and where its elements lie.

A warp group is 128 threads; an instruction multiplies 64 rows.  With lane = 4 * g + q of warp w, register
4 * j + 2 * h + p of a thread is row 16 * w + g + 8 * h, column 8 * j + 2 * q + p.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .fragment import Digit, Fragment

GROUP = 128  # threads
ROWS = 64
COLUMNS = 8
MOST_COLUMNS = 256  # of one instruction
INTEGER_COLUMNS = {8, 24, *range(16, 224 + 1, 16)}  # of one that multiplies integers, as TVM's table has them


@dataclass(frozen=True)
class GroupGrid:
    """Warp groups over a tile of C: `down` of them share its rows, `across` its columns."""

    down: int
    across: int

    @property
    def threads(self) -> int:
        return self.down * self.across * GROUP


def group_grid(rows: int, columns: int, threads: int, policy: str, strip: int = COLUMNS) -> GroupGrid | None:
    """How the warp groups divide C; None where a tile has no whole instructions for all of them.

    policy: "full_col" gives as many groups as possible to the columns, others to the rows.  strip: columns that must
    stay together.
    """
    if threads % GROUP:
        return None
    groups = threads // GROUP
    grids = [
        (down, groups // down)
        for down in range(1, groups + 1)
        if groups % down == 0 and rows % (ROWS * down) == 0 and columns % (strip * (groups // down)) == 0
    ]
    if not grids:
        return None
    return GroupGrid(*(min(grids) if policy == "full_col" else max(grids)))


def instruction_columns(columns: int, strip: int = COLUMNS, integers: bool = False) -> int:
    """Columns of one instruction where a warp group has `columns`: all of them, or the largest equal part that fits."""
    parts = (columns // p for p in range(1, columns + 1) if columns % (p * strip) == 0)
    return next(part for part in parts if part <= MOST_COLUMNS and (not integers or part in INTEGER_COLUMNS))


def group_operand(shape: Sequence[int], grid: GroupGrid, each: int) -> Fragment:
    """A of shape (rows, depth) in registers, of which one holds `each` elements.

    Registers: `((i * turns + t) * 2 + h) * each + p` for the 64 rows i of the warp group and the 4 * each columns t.
    """
    rows, depth = shape[-2:]
    slabs, turns = rows // ROWS // grid.down, depth // (4 * each)
    row = (
        Digit(grid.down, "thread", GROUP),
        Digit(slabs, "register", turns * 2 * each),
        Digit(4, "thread", 32),
        Digit(2, "register", each),
        Digit(8, "thread", 4),
    )
    along = (Digit(turns, "register", 2 * each), Digit(4, "thread", 1), Digit(each, "register", 1))
    return Fragment(tuple(shape), (*((),) * (len(shape) - 2), row, along), grid.threads)


def group_accumulator(shape: Sequence[int], grid: GroupGrid) -> Fragment:
    """C; leading extents of 1 may come before its two dimensions.

    Registers: `i * columns / 2 + 4 * j + 2 * h + p` for the 64 rows i and the 8 columns j of the warp group, where
    `columns` are those of the group.
    """
    rows, columns = shape[-2:]
    slabs, strips = rows // ROWS // grid.down, columns // COLUMNS // grid.across
    row = (
        Digit(grid.down, "thread", GROUP),
        Digit(slabs, "register", strips * 4),
        Digit(4, "thread", 32),
        Digit(2, "register", 2),
        Digit(8, "thread", 4),
    )
    column = (
        Digit(grid.across, "thread", GROUP * grid.down),
        Digit(strips, "register", 4),
        Digit(4, "thread", 1),
        Digit(2, "register", 1),
    )
    return Fragment(tuple(shape), (*((),) * (len(shape) - 2), row, column), grid.threads)
