"""Functions of indices as a kernel writes them, for layouts: as expressions, and evaluated for a whole tile at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tvm
from tvm import tirx as tir

from .calling import bad_argument
from .operands import described
from .promotion import is_integer
from .values import Value


def traced(function: Callable[..., Any], variables: Sequence[Any], what: str) -> tuple[Any, ...]:
    """What a function gives for index variables, as expressions of int32.

    TL004 where one of them is no integer.  what: the function, for the message.
    """
    given = function(*[Value(variable, "int32") for variable in variables])
    found = []
    for value in given if isinstance(given, (list, tuple)) else (given,):
        if isinstance(value, Value) and is_integer(value.dtype) and not value.reads:
            expr = value.use()
        elif isinstance(value, (int, np.integer)) and not isinstance(value, bool):
            expr = tir.const(int(value), "int32")
        else:
            bad_argument(f"{what} gives {described(value)}", "give integers made of the indices")
        found.append(expr)
    return tuple(found)


def index_variables(rank: int) -> tuple[Any, ...]:
    """Variables for the indices of a tile."""
    return tuple(tir.Var(name, "int32") for name in [*"ijklmnpq", *map("i{}".format, range(rank))][:rank])


_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "FloorDiv": np.floor_divide,
    "FloorMod": np.remainder,
    "Div": lambda a, b: np.trunc(a / b).astype(np.int64),
    "Mod": np.fmod,
    "Min": np.minimum,
    "Max": np.maximum,
    "EQ": np.equal,
    "NE": np.not_equal,
    "LT": np.less,
    "LE": np.less_equal,
    "GT": np.greater,
    "GE": np.greater_equal,
    "And": np.logical_and,
    "Or": np.logical_or,
    "BitwiseXor": np.bitwise_xor,
    "BitwiseAnd": np.bitwise_and,
    "BitwiseOr": np.bitwise_or,
    "LShift": np.left_shift,
    "RShift": np.right_shift,
}
_UNARY: dict[str, Callable[[Any], Any]] = {"Not": np.logical_not, "BitwiseNot": np.bitwise_not}


def evaluated(expr: Any, values: Mapping[Any, np.ndarray]) -> np.ndarray | int:
    """An integer expression with arrays for its variables.  ValueError for what is no arithmetic of indices."""
    kind = type(expr).__name__
    if isinstance(expr, tvm.ir.Var):
        if expr in values:
            return values[expr]
        raise ValueError(f"`{expr.name}`")
    if isinstance(expr, tir.IntImm):
        return int(expr.value)
    if kind in _BINARY:
        return _BINARY[kind](evaluated(expr.a, values), evaluated(expr.b, values))
    if kind == "Cast" and is_integer(str(expr.ty.dtype)):
        return evaluated(expr.value, values)
    if kind in _UNARY:
        return _UNARY[kind](evaluated(expr.a, values))
    if kind == "Select":
        return np.where(*[evaluated(part, values) for part in (expr.condition, expr.true_value, expr.false_value)])
    if isinstance(expr, tvm.ir.Call) and getattr(expr.op, "name", "").endswith(".if_then_else"):
        return np.where(*[evaluated(part, values) for part in expr.args])
    raise ValueError(f"`{expr}`")


def table(expr: Any, variables: Sequence[Any], shape: Sequence[int]) -> np.ndarray:
    """The expression for every index of a shape, int64.  ValueError for what is no arithmetic of the variables."""
    indices = np.indices(tuple(shape), dtype=np.int64, sparse=True)
    with np.errstate(divide="ignore"):
        found = evaluated(expr, dict(zip(variables, indices)))
    return np.array(np.broadcast_to(found, tuple(shape)), np.int64)


def tables(function: Callable[..., Any], shape: Sequence[int], what: str) -> list[np.ndarray]:
    """Each result of a function of indices, for every index of a shape.  TL004 as for `traced`."""
    variables = index_variables(len(shape))
    try:
        return [table(expr, variables, shape) for expr in traced(function, variables, what)]
    except ValueError as part:
        bad_argument(f"{what} depends on {part}", "use the indices and constants alone")
