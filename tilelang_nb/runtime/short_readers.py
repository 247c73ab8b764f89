"""Arguments of a call that is like an earlier one, read in the shortest time: what identifies their kind goes into a
key, their addresses and numbers into the values of the launch.

Each reader takes (argument, key, values) and appends to both.  What it appends to the key has a fixed length, so that
the keys of two calls are equal only where each argument is of the same kind.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .device_arrays import DeviceArray, library_of, new_array
from .device_transfer import ALIGNMENT

MISALIGNED = ALIGNMENT - 1


class NotShort(Exception):
    """The call does not go the short way."""


def read_torch(given: Any, key: list[Any], values: list[Any]) -> None:
    """A tensor of torch."""
    pointer = given.data_ptr()
    if pointer & MISALIGNED:
        raise NotShort
    key += (given.dtype, given.shape, given.stride(), given.get_device(), given.requires_grad)
    values.append(pointer)


def read_cupy(given: Any, key: list[Any], values: list[Any]) -> None:
    """An array of cupy."""
    memory = given.data
    if memory.ptr & MISALIGNED:
        raise NotShort
    key += (given.dtype, given.shape, given.strides, memory.device_id)
    values.append(memory.ptr)


def read_numba(given: Any, key: list[Any], values: list[Any]) -> None:
    """An array of numba, on the only device."""
    pointer = int(given.gpu_data.device_pointer)
    if pointer & MISALIGNED or given.stream:
        raise NotShort
    key += (given.dtype, given.shape, given.strides)
    values.append(pointer)


def read_number(given: Any, key: list[Any], values: list[Any]) -> None:
    """A number that no size of the launch depends on."""
    key.append(type(given))
    values.append(given)


def read_number_by_value(given: Any, key: list[Any], values: list[Any]) -> None:
    """A number that sizes of the launch depend on."""
    key += (type(given), given)
    values.append(given)


def pointer_of(array: Any) -> int:
    """The address of a new array of torch, cupy or numba."""
    library = library_of(type(array))
    if library == "torch":
        return int(array.data_ptr())
    if library == "cupy":
        return int(array.data.ptr)
    return int(array.device_ctypes_pointer.value or 0)


def maker(like: DeviceArray, shape: tuple[int, ...], dtype: np.dtype, devices: Any) -> Callable[[], Any]:
    """Makes new arrays in the kind of `like`, not initialised."""
    if like.library != "torch":
        return lambda: new_array(like, shape, dtype, devices)
    made = new_array(like, shape, dtype, devices)
    empty, options = type(made).new_empty, {"dtype": made.dtype, "device": made.device}
    small = made.new_empty(0)  # holds no memory of the caller's
    return lambda: empty(small, shape, **options)
