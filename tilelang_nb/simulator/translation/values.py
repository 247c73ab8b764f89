"""What the translator computes with: values with their axes, the places of buffers, sites of accesses, tables of types.

Every value of a thread program becomes a NumPy expression that broadcasts to (vector axes..., blocks, threads).  Which
axes a
value has is known at translation: that is the uniformity analysis, and it keeps address arithmetic on thread indices
as small as the threads of one block.  A value without axes is a Python int, a Python bool or a NumPy scalar of its
float type.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

T_AXIS, B_AXIS, V_AXIS = 1, 2, 4  # vector axis k, counted outward from the blocks, is V_AXIS << k
LANES = T_AXIS | B_AXIS
BULK_COPY = "bulk copy"  # kind of the site of a copy that a barrier waits for

NUMPY = {
    "bool": "np.bool_",
    "float16": "np.float16",
    "float32": "np.float32",
    "float64": "np.float64",
    "bfloat16": "bfloat16",
    "float8_e4m3fn": "float8_e4m3fn",
    "float8_e5m2": "float8_e5m2",
    "float8_e4m3fnuz": "float8_e4m3fnuz",
    "float8_e5m2fnuz": "float8_e5m2fnuz",
    "float8_e8m0fnu": "float8_e8m0fnu",
    **{f"{sign}int{bits}": f"np.{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
}
BYTES = {
    name: 8 if name.endswith("64") else 4 if name.endswith("32") else 2 if name.endswith("16") else 1 for name in NUMPY
}


def is_float(dtype: str) -> bool:
    """A floating-point type of any width."""
    return "float" in dtype


def is_integer(dtype: str) -> bool:
    """A signed or unsigned integer type; bool is none."""
    return dtype.startswith(("int", "uint"))


def integer_range(dtype: str) -> tuple[int, int]:
    """Smallest and largest value of an integer or bool type."""
    if dtype == "bool":
        return 0, 1
    bits = 8 * BYTES[dtype]
    return (0, (1 << bits) - 1) if dtype.startswith("u") else (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)


class Unsupported(Exception):
    """A node that the simulated device does not execute; the message names it, `span` is its TVM span or None."""

    def __init__(self, message: str, span: Any = None):
        super().__init__(message)
        self.span = span


@dataclass
class Value:
    """One translated expression.

    text: the NumPy expression.
    axes: set of axes (bits); 0 is uniform.
    depth: index of the innermost open suite that defines one of its variables.
    pure: no memory access, so that it may be computed earlier and once.
    atom: a name or literal.
    low, high: bounds of an integer, None if unknown.
    """

    text: str
    dtype: str
    axes: int = 0
    depth: int = 0
    pure: bool = True
    atom: bool = False
    low: int | None = None
    high: int | None = None

    def within(self, low: int, high: int) -> bool:
        """Proven to lie in [low, high]."""
        return self.low is not None and self.high is not None and low <= self.low and self.high <= high


@dataclass(frozen=True)
class Site:
    """What a finding points at: the accesses of one kind to one buffer in one statement.

    span is hashable (the TVM span as numbers) or None; dtype and extents describe the buffer.  turn: number of the
    statement among those of this span, which the turns of a compile-time loop made; origin: the TVM span itself.
    """

    kind: str  # read, write, atomic, wait, barrier ...
    buffer: str
    space: str  # global, shared, local or ""
    span: tuple[int, int, int, int] | None
    turn: int = 0
    origin: Any = field(default=None, compare=False, repr=False)

    @property
    def place(self) -> tuple[Any, ...]:
        """What the turns of a loop have in common."""
        return (self.kind, self.buffer, self.space, self.span)

    @property
    def atomic(self) -> bool:
        return self.kind == "atomic"


@dataclass(frozen=True)
class Storage:
    """Where a buffer lives.

    space: "global", "local" or "shared".
    name: the Python name of its array.
    shape: extents as TIR expressions.
    strides: TIR expressions in elements, or () for row-major.
    base: first byte inside the shared window of the block.
    """

    space: str
    name: str
    label: str
    shape: tuple[Any, ...]
    dtype: str
    base: int = 0
    strides: tuple[Any, ...] = ()
    depth: int = 0

    @property
    def count(self) -> int:
        """Elements of a buffer with constant extents."""
        total = 1
        for extent in self.shape:
            total *= int(extent)
        return total


@dataclass(frozen=True)
class AccessDetail:
    """What the machine knows of a site beyond `Site`: the buffer, and the axis that is meant as one wide access."""

    storage: Storage
    wide_position: int = 0
    wide_extent: int = 1


def dtype_of(expression: Any) -> str:
    """The type of an expression by name."""
    return str(expression.ty.dtype)


def place_of(span: Any) -> tuple[int, int, int, int] | None:
    """A TVM span as (line, end line, column, end column)."""
    return None if span is None else (int(span.line), int(span.end_line), int(span.column), int(span.end_column))
