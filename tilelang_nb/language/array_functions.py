"""What is said where a function of NumPy or PyTorch is called with a device value or a tile, and their protocols that
lead there.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ..source import catalogue as say
from ..source.arrays import element_of, for_array, for_scalar
from ..source.diagnostic import Message, Refusal

# NumPy's functions that compute element by element or over all, as its operators do.
_OPERATORS = frozenset(
    ["add", "subtract", "multiply", "divide", "true_divide", "floor_divide", "remainder", "power", "negative"]
    + ["positive", "left_shift", "right_shift", "bitwise_and", "bitwise_or", "bitwise_xor", "absolute"]
    + ["less", "less_equal", "greater", "greater_equal", "equal", "not_equal", "matmul"]
)


def _operations() -> list[str]:
    return importlib.import_module(__package__).__all__


def of_scalar(written: str) -> Message:
    """TL128 for a function of a device value.  written: as `np.exp`."""
    library, _, name = written.partition(".")
    instead = for_scalar(name, _operations()).partition("(")[0]
    remedy = f"use `{instead}`" if instead.startswith("T.") else "use functions of `T`"
    return say.ValueNeededWhileBuilding(what=f"`{library}.{name}` of a device value", remedy=remedy)


def of_array(written: str, what: str, array: str, rank: int) -> Message:
    """TL128 for a function of a buffer or region.  what: the operand.  array, rank: of the buffer."""
    name = written.removeprefix("np.").rpartition("torch.")[2]
    remedy = for_array(name, array, rank, _operations()) or f"compute with its elements: `{element_of(array, rank)}`"
    return say.ValueNeededWhileBuilding(what=f"`{written}` of {what}", remedy=remedy)


class ScalarOfArrays:
    """For a device value: NumPy's functions that dispatch on their arguments."""

    __slots__ = ()

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """Refused where the language has the function; else NumPy takes the value as an object."""
        name = getattr(function, "__name__", "")
        if for_scalar(name, _operations()):
            raise Refusal(of_scalar(f"np.{name}"))
        return function._implementation(*args, **kwargs)


class WholeArray:
    """For buffers and regions: what NumPy and PyTorch ask of an array is refused.

    spoken: what messages call it, the name of the buffer, and its rank.  lacks_indices: gives TL201.
    """

    spoken: Callable[[], tuple[str, str, int]]
    lacks_indices: Callable[..., Message]

    def __array_ufunc__(self, function: Any, method: str, *operands: Any, **options: Any) -> Any:
        """TL201 for an operator, TL128 for a function."""
        name = function.__name__ if method == "__call__" else f"{function.__name__}.{method}"
        tile = next(operand for operand in _flat(operands) if isinstance(operand, WholeArray))
        if name == "matmul":
            raise Refusal(say.MatrixMultiplyOperator())
        if name in _OPERATORS and name != "absolute":
            raise Refusal(tile.lacks_indices())
        raise Refusal(of_array(f"np.{name}", *tile.spoken()))

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        module = str(getattr(function, "__module__", "numpy")).replace("numpy", "np", 1)
        raise Refusal(of_array(f"{module}.{function.__name__}", *self.spoken()))

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        tile = next(value for value in _flat((args, *(kwargs or {}).values())) if isinstance(value, WholeArray))
        raise Refusal(of_array(f"torch.{function.__name__}", *tile.spoken()))

    def __array__(self, *_: Any, **__: Any) -> np.ndarray:
        raise Refusal(of_array("np.array", *self.spoken()))

    def __float__(self) -> float:
        raise Refusal(self.lacks_indices())

    __int__ = __complex__ = __index__ = __float__  # type: ignore[assignment]


def _flat(values: Iterable[Any]) -> Iterable[Any]:
    for value in values:
        if isinstance(value, (list, tuple)):
            yield from _flat(value)
        else:
            yield value
