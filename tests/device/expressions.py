"""Values of integer expressions of TIR, computed with Python's numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "Add": lambda a, b: a + b,
    "Sub": lambda a, b: a - b,
    "Mul": lambda a, b: a * b,
    "FloorDiv": lambda a, b: a // b,
    "FloorMod": lambda a, b: a % b,
    "BitwiseXor": lambda a, b: a ^ b,
    "Min": min,
    "Max": max,
}


def evaluate(expr: Any, known: Mapping[str, int], other: Callable[[Any, Any], int] | None = None) -> int:
    """The value for variables by name.  other(node, value): of nodes and variables that are not known here."""

    def value(node: Any) -> int:
        kind = type(node).__name__
        if kind in OPERATIONS:
            return OPERATIONS[kind](value(node.a), value(node.b))
        if kind == "Cast":
            return value(node.value)
        if kind == "IntImm":
            return int(node.value)
        if kind == "Var" and node.name in known:
            return known[node.name]
        assert other is not None, node
        return other(node, value)

    return value(expr)
