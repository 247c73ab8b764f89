"""Arguments for a kernel made up from its parameters, to try it out or to compare it with a reference."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any

import numpy as np

from ..runtime.host_arrays import host_dtype


class TensorSupplyType(Enum):
    """What made-up tensors hold.  Auto: small integers, which every type holds exactly."""

    Integer = 1
    Uniform = 2
    Normal = 3
    Randn = 4
    Zero = 5
    One = 6
    Auto = 7


def make_tensor(parameter: Any, kind: TensorSupplyType, random: np.random.Generator) -> np.ndarray:
    """An array for a tensor parameter.  ValueError: its shape is symbolic, so there is no array to make."""
    if not all(isinstance(extent, int) for extent in parameter.shape):
        raise ValueError(f"{parameter.name} has a symbolic shape {parameter.shape}: give input_tensors")
    dtype = host_dtype(parameter.dtype)
    if dtype is None:
        raise ValueError(f"{parameter.name}: there are no arrays of {parameter.dtype}")
    return _FILL[kind](random, parameter.shape, dtype).astype(dtype)


def _small_integers(random: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    low = 0 if dtype.name.startswith(("uint", "bool")) else -2
    return random.integers(low, 2 if dtype.name == "bool" else 3, shape)


def _uniform(random: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    if dtype.name.startswith(("int", "uint", "bool")):
        return _small_integers(random, shape, dtype)
    return random.uniform(-1.0, 1.0, shape)


def _normal(random: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    if dtype.name.startswith(("int", "uint", "bool")):
        return _small_integers(random, shape, dtype)
    return random.standard_normal(shape)


_FILL: dict[TensorSupplyType, Callable[..., np.ndarray]] = {
    TensorSupplyType.Integer: _small_integers,
    TensorSupplyType.Auto: _small_integers,
    TensorSupplyType.Uniform: _uniform,
    TensorSupplyType.Normal: _normal,
    TensorSupplyType.Randn: _normal,
    TensorSupplyType.Zero: lambda random, shape, dtype: np.zeros(shape),
    TensorSupplyType.One: lambda random, shape, dtype: np.ones(shape),
}
