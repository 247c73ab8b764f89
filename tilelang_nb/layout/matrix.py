"""Layouts of the operands and accumulators of mma.sync, and how the warps of a block divide a tile.

With lane = 4 * g + q, and e elements of an operand in one register, an instruction of m rows, 8 columns and depth k
holds

    A (m, k)  row g + 8 * h, column 4 * e * r + e * q + p        (h < m / 8, p < e)
    B (k, 8)  row 4 * e * r + e * q + p, column g
    C (m, 8)  row g + 8 * h, column 2 * q + p                    (p < 2)

A tile repeats this over its rows and columns: first over the registers of a warp, which owns neighbouring rows and
columns, then over the warps.  Warps that are left over hold copies.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .fragment import Digit, Fragment

WARP = 32
COLUMNS = 8  # of C in one instruction


@dataclass(frozen=True)
class Instruction:
    """A form of mma.sync.

    rows, depth: of the A tile.  each: elements of A or B in one register.  form: its text after `mma.sync.aligned.`.
    """

    rows: int
    depth: int
    each: int
    form: str

    @property
    def halves(self) -> int:
        """Groups of 8 rows."""
        return self.rows // 8

    @property
    def steps(self) -> int:
        """Registers along the depth."""
        return self.depth // (4 * self.each)

    @property
    def a_registers(self) -> int:
        return self.halves * self.steps

    @property
    def b_registers(self) -> int:
        return self.steps

    @property
    def c_elements(self) -> int:
        return 2 * self.halves


@dataclass(frozen=True)
class WarpGrid:
    """Warps over a tile of C: `down` of them share its rows, `across` its columns.  threads: of the set of threads."""

    down: int
    across: int
    threads: int

    def row_digit(self) -> Digit:
        return Digit(self.down, "thread", WARP)

    def column_digit(self) -> Digit:
        return Digit(self.across, "thread", WARP * self.down)


def warp_grid(rows: int, columns: int, threads: int, policy: str, instruction: Instruction) -> WarpGrid | None:
    """How the warps divide C; None where a tile or a set of threads is none of whole instructions and warps.

    policy: "full_row" gives as many warps as possible to the rows, "full_col" to the columns, "square" makes the
    tile of a warp need as few rows of A and columns of B as possible.  Where a tile has too little work for all
    warps, the others repeat it.
    """
    if threads % WARP or rows % instruction.rows or columns % COLUMNS:
        return None
    warps = threads // WARP
    slabs, strips = rows // instruction.rows, columns // COLUMNS

    def cost(grid: tuple[int, int]) -> tuple[int, ...]:
        down, across = grid
        idle = -down * across
        if policy == "full_row":
            return idle, -down
        if policy == "full_col":
            return idle, -across
        return idle, rows // down + columns // across, -down

    grids = [
        (down, across)
        for down in range(1, warps + 1)
        for across in range(1, warps // down + 1)
        if warps % (down * across) == 0 and slabs % down == 0 and strips % across == 0
    ]
    down, across = min(grids, key=cost)
    return WarpGrid(down, across, threads)


def accumulator(shape: Sequence[int], grid: WarpGrid, instruction: Instruction) -> Fragment:
    """C; leading extents of 1 may come before its two dimensions.

    Registers: `(i * strips + j) * c_elements + 2 * h + p` for the instruction tile (i, j) of the warp.
    """
    rows, columns = shape[-2:]
    slabs, strips = rows // instruction.rows // grid.down, columns // COLUMNS // grid.across
    held = instruction.c_elements
    row = (
        grid.row_digit(),
        Digit(slabs, "register", strips * held),
        Digit(instruction.halves, "register", 2),
        Digit(8, "thread", 4),
    )
    column = (grid.column_digit(), Digit(strips, "register", held), Digit(4, "thread", 1), Digit(2, "register", 1))
    return Fragment(tuple(shape), (*((),) * (len(shape) - 2), row, column), grid.threads)


def operand_a(shape: Sequence[int], grid: WarpGrid, instruction: Instruction, transposed: bool) -> Fragment:
    """A of shape (rows, depth), or (depth, rows) where it is stored transposed.

    Registers: `((i * turns + k) * steps + r) * halves * each + h * each + p`.
    """
    rows, depth = reversed(shape[-2:]) if transposed else shape[-2:]
    slabs, turns = rows // instruction.rows // grid.down, depth // instruction.depth
    each, halves, steps = instruction.each, instruction.halves, instruction.steps
    row = (
        grid.row_digit(),
        Digit(slabs, "register", turns * steps * halves * each),
        Digit(halves, "register", each),
        Digit(8, "thread", 4),
    )
    along = (Digit(turns * steps, "register", halves * each), Digit(4, "thread", 1), Digit(each, "register", 1))
    digits = (along, row) if transposed else (row, along)
    return Fragment(tuple(shape), (*((),) * (len(shape) - 2), *digits), grid.threads)


def operand_b(shape: Sequence[int], grid: WarpGrid, instruction: Instruction, transposed: bool) -> Fragment:
    """B of shape (depth, columns), or (columns, depth) where it is stored transposed.

    Registers: `((j * turns + k) * steps + r) * each + p`.
    """
    depth, columns = reversed(shape[-2:]) if transposed else shape[-2:]
    strips, turns = columns // COLUMNS // grid.across, depth // instruction.depth
    each, steps = instruction.each, instruction.steps
    column = (grid.column_digit(), Digit(strips, "register", turns * steps * each), Digit(8, "thread", 4))
    along = (Digit(turns * steps, "register", each), Digit(4, "thread", 1), Digit(each, "register", 1))
    digits = (column, along) if transposed else (along, column)
    return Fragment(tuple(shape), (*((),) * (len(shape) - 2), *digits), grid.threads)


def same_threads(one: Fragment, other: Fragment) -> bool:
    """Are equal elements held by the same threads, whatever their registers?"""
    return (
        one.shape == other.shape
        and one.threads == other.threads
        and all(one.thread_digits(dim) == other.thread_digits(dim) for dim in range(len(one.shape)))
    )


def is_matrix_like(layout: Fragment) -> bool:
    """Do neighbouring rows lie 4 threads apart, as in accumulators and in operands whose lines are rows?"""
    return len(layout.shape) >= 2 and any(
        digit.on_thread and digit.extent % 8 == 0 and digit.stride == 4 for digit in layout.digits[-2]
    )
