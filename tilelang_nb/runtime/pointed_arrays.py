"""Arrays that a launch passes for pointers (`T.ptr`): any with enough elements in one row serve."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from .device_arrays import DeviceArray, row_major
from .host_arrays import PLACEHOLDER
from .misfits import mismatch
from .symbols import Symbols


def pointed_array(parameter: Any, array: Any, symbols: Symbols) -> Any:
    """The array as the tensor that the kernel makes of its pointer: the same memory in that shape.

    An array of that very shape is given back as it is, and one whose tensor has an unknown size.
    TL301: too few elements, elements that do not lie in one row, or a size below 0.
    """
    shape = _numbers(parameter.shape, symbols)
    if shape is None or array.shape == shape:
        return array
    wanted = f"shape {symbols.written(parameter.shape)}{symbols.meaning(parameter.shape)}"
    if min(shape, default=0) < 0:
        raise mismatch(parameter.name, wanted, f"shape {shape}", "these sizes do not fit together")
    steps = None if parameter.strides is None else _numbers(parameter.strides, symbols)
    if parameter.strides is not None and steps is None:
        return array
    needed = math.prod(shape)
    if steps is not None and needed:
        needed = 1 + sum((extent - 1) * step for extent, step in zip(shape, steps))
    if array.size < needed:
        given = f"{array.size} elements, shape {array.shape}"
        raise mismatch(parameter.name, f"{needed} elements for {wanted}", given, f"pass an array of shape {shape}")
    if not array.flags.c_contiguous:
        remedy = f"pass `{PLACEHOLDER}.reshape({shape})`, or a contiguous array"
        raise mismatch(
            parameter.name, f"elements in one row, for {wanted}", f"strides {array.strides} in bytes", remedy
        )
    size = array.dtype.itemsize
    in_bytes = row_major(shape, size) if steps is None else tuple(step * size for step in steps)
    if isinstance(array, DeviceArray):
        return replace(array, shape=shape, strides=in_bytes)
    flat = array.reshape(-1)[:needed]
    if steps is None:
        return flat.reshape(shape)
    raw = flat.view(np.dtype((np.void, size)))  # NumPy cannot stride over every type of `ml_dtypes`
    return np.lib.stride_tricks.as_strided(raw, shape, in_bytes, writeable=array.flags.writeable).view(array.dtype)


def _numbers(dimensions: tuple[Any, ...], symbols: Symbols) -> tuple[int, ...] | None:
    found = [symbols.evaluate(dimension) for dimension in dimensions]
    return None if None in found else tuple(number for number in found if number is not None)
