"""Symbolic shapes at a launch: variables of shapes are bound from what the arguments have, and must agree.

A dimension is an int or an integer TIR expression over shape variables.  Expressions are read by the class names of
their nodes: the runtime does not import TVM.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

_FOLD: dict[str, Callable[[int, int], int]] = {
    "Add": lambda a, b: a + b,
    "Sub": lambda a, b: a - b,
    "Mul": lambda a, b: a * b,
    "FloorDiv": lambda a, b: a // b,
    "FloorMod": lambda a, b: a % b,
    "Min": min,
    "Max": max,
    # Truncating division: what C does, where Python floors.
    "Div": lambda a, b: abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1),
    "Mod": lambda a, b: abs(a) % abs(b) * (-1 if a < 0 else 1),
}


@dataclass
class Symbols:
    """Values of shape variables, and for each the words that say where the value is from (`shape of a`)."""

    values: dict[Any, int] = field(default_factory=dict)
    origins: dict[Any, str] = field(default_factory=dict)

    def evaluate(self, dimension: Any) -> int | None:
        """The number that a dimension is; None while a variable in it has no value."""
        if isinstance(dimension, int):
            return dimension
        kind = type(dimension).__name__
        if kind == "IntImm":
            return int(dimension.value)
        if kind.endswith("Var"):
            return self.values.get(dimension)
        if kind == "Cast":
            return self.evaluate(dimension.value)
        if kind in _FOLD:
            a, b = self.evaluate(dimension.a), self.evaluate(dimension.b)
            if a is None or b is None or (b == 0 and kind in ("FloorDiv", "FloorMod", "Div", "Mod")):
                return None
            return _FOLD[kind](a, b)
        return None

    def solve(self, dimension: Any, extent: int, origin: str) -> bool:
        """Bind the one variable of `dimension` so that it equals `extent`, where sums and products allow it.

        False: no value makes them equal (`n * 4` of 6).  A dimension that cannot be solved is left for the others.
        """
        if isinstance(dimension, int):
            return True
        kind = type(dimension).__name__
        if kind.endswith("Var"):
            if dimension not in self.values:
                self.values[dimension], self.origins[dimension] = extent, origin
            return True
        if kind == "Cast":
            return self.solve(dimension.value, extent, origin)
        if kind not in ("Add", "Sub", "Mul"):
            return True
        left, right = self.evaluate(dimension.a), self.evaluate(dimension.b)
        if left is None and right is not None:
            return self._solve_side(dimension.a, kind, right, extent, origin)
        if right is None and left is not None:
            if kind == "Sub":
                return self.solve(dimension.b, left - extent, origin)
            return self._solve_side(dimension.b, kind, left, extent, origin)
        return True

    def _solve_side(self, unknown: Any, kind: str, known: int, extent: int, origin: str) -> bool:
        """Solve `unknown (+ | - | *) known == extent`."""
        if kind == "Add":
            return self.solve(unknown, extent - known, origin)
        if kind == "Sub":
            return self.solve(unknown, extent + known, origin)
        if known == 0:
            return extent == 0
        return extent % known == 0 and self.solve(unknown, extent // known, origin)

    def written(self, dimensions: tuple[Any, ...]) -> str:
        """A shape as the kernel writes it, `(n, 64)`."""
        inside = ", ".join(str(dimension) for dimension in dimensions)
        return f"({inside},)" if len(dimensions) == 1 else f"({inside})"

    def meaning(self, dimensions: tuple[Any, ...]) -> str:
        """The values of the variables in these dimensions, ` with n = 64 (shape of a)`; "" without variables."""
        found: dict[Any, None] = {}
        for dimension in dimensions:
            self._variables(dimension, found)
        said = [f"{var.name} = {self.values[var]} ({self.origins[var]})" for var in found if var in self.values]
        return f" with {', '.join(said)}" if said else ""

    def source(self, dimensions: tuple[Any, ...], but: str) -> str:
        """The first array other than `but` that gave a variable of these dimensions its value; "" if there is none."""
        found: dict[Any, None] = {}
        for dimension in dimensions:
            self._variables(dimension, found)
        names = [self.origins[var].rpartition(" ")[2] for var in found if var in self.origins]
        return next((name for name in names if name != but), "")

    def unbound(self, dimension: Any) -> list[str]:
        """Names of the variables of a dimension that have no value."""
        found: dict[Any, None] = {}
        self._variables(dimension, found)
        return [var.name for var in found if var not in self.values]

    def _variables(self, dimension: Any, found: dict[Any, None]) -> None:
        if isinstance(dimension, int):
            return
        kind = type(dimension).__name__
        if kind.endswith("Var"):
            found[dimension] = None
        elif kind == "Cast":
            self._variables(dimension.value, found)
        elif kind in _FOLD:
            self._variables(dimension.a, found)
            self._variables(dimension.b, found)
