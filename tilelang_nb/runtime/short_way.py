"""Arguments of a call that is like an earlier one, recognised and read in the shortest time.

A `ShortWay` knows for each argument of the earlier call its type and what else decides the launch.  An argument fits if
it agrees in all of that; then only its address, or the number itself, is taken.  There is one reader for each library:
a call of a function for each argument would cost as much as reading it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .device_arrays import DeviceArray, cupy_stream, library_of, new_array, torch_stream_of
from .device_transfer import ALIGNMENT
from .parameter_block import is_packed_as_it_is

MISALIGNED = ALIGNMENT - 1
# What is known of an argument: its type; of an array type of elements, shape, strides (None: it has no gaps), device,
# and whether it is written; of a number None, and the number itself where sizes of the launch depend on it.
Wanted = tuple[Any, Any, Any, Any, int, bool]


@dataclass
class ShortWay:
    """values: reads the arguments of a call, None where one does not fit `wanted`.  stream: the one that the arrays'
    library works on.  run, faults: of the plan.  finish: adds what is made for the call to the values, and gives the
    tensors that the call returns.
    """

    wanted: tuple[Wanted, ...]
    values: Callable[[tuple[Any, ...], tuple[Wanted, ...]], list[Any] | None]
    stream: Callable[[], int]
    run: Any = None
    faults: Any = None
    finish: Callable[[list[Any], int], Any] | None = None


def short_way(
    parameters: Sequence[Any],
    args: Sequence[Any],
    bound: Mapping[str, Any],
    written: frozenset[str],
    *,
    numbers_decide: bool,
    one_device: bool,
) -> ShortWay | None:
    """The short way for calls like this one; None where there is none.

    bound: what the arguments were read as, by name.  written: names of parameters.  numbers_decide: do sizes of the
    launch depend on numbers?
    """
    libraries = {array.library for array in bound.values() if isinstance(array, DeviceArray)}
    if len(libraries) != 1:
        return None
    (library,) = libraries
    if library not in READERS or (library == "numba" and not one_device):
        return None
    wanted: list[Wanted] = []
    for parameter, given in zip(parameters, args):
        value = bound[parameter.name]
        if parameter.kind == "scalar":
            if type(given) is not _plain_type(parameter.dtype) or not is_packed_as_it_is(parameter.dtype):
                return None
            wanted.append((type(given), None, given if numbers_decide else None, None, 0, False))
        elif isinstance(value, DeviceArray):
            strides: Any = None
            if parameter.strides is not None or library != "torch":
                strides = given.stride() if library == "torch" else given.strides
            writes = parameter.name in written
            wanted.append((type(given), given.dtype, given.shape, strides, value.device, writes))
        else:
            return None
    device = next(array.device for array in bound.values() if isinstance(array, DeviceArray))
    streams: dict[str, Callable[[], int]] = {"cupy": cupy_stream, "numba": _default_stream}
    if library == "torch":
        streams["torch"] = functools.partial(torch_stream_of(), device)
    return ShortWay(tuple(wanted), READERS[library], streams[library])


def _default_stream() -> int:
    return 0


def _plain_type(dtype: str) -> type:
    if dtype == "bool":
        return bool
    return int if dtype.startswith(("int", "uint")) else float


def _torch_values(args: tuple[Any, ...], wanted: tuple[Wanted, ...]) -> list[Any] | None:
    if len(args) != len(wanted):
        return None
    values = []
    for given, (kind, dtype, shape, strides, device, writes) in zip(args, wanted):
        if given.__class__ is not kind:
            return None
        if dtype is None:
            if shape is not None and given != shape:
                return None
            values.append(given)
            continue
        if given.shape != shape or given.dtype is not dtype or given.get_device() != device:
            return None
        if writes and given.requires_grad:
            return None
        if not given.is_contiguous() if strides is None else given.stride() != strides:
            return None
        pointer = given.data_ptr()
        if pointer & MISALIGNED:
            return None
        values.append(pointer)
    return values


def _cupy_values(args: tuple[Any, ...], wanted: tuple[Wanted, ...]) -> list[Any] | None:
    if len(args) != len(wanted):
        return None
    values = []
    for given, (kind, dtype, shape, strides, device, _) in zip(args, wanted):
        if given.__class__ is not kind:
            return None
        if dtype is None:
            if shape is not None and given != shape:
                return None
            values.append(given)
            continue
        memory = given.data
        if given.shape != shape or given.dtype != dtype or given.strides != strides or memory.device_id != device:
            return None
        pointer = memory.ptr
        if pointer & MISALIGNED:
            return None
        values.append(pointer)
    return values


def _numba_values(args: tuple[Any, ...], wanted: tuple[Wanted, ...]) -> list[Any] | None:
    if len(args) != len(wanted):
        return None
    values = []
    for given, (kind, dtype, shape, strides, _, _) in zip(args, wanted):
        if given.__class__ is not kind:
            return None
        if dtype is None:
            if shape is not None and given != shape:
                return None
            values.append(given)
            continue
        if given.shape != shape or given.dtype != dtype or given.strides != strides or given.stream:
            return None
        pointer = int(given.gpu_data.device_pointer)
        if pointer & MISALIGNED:
            return None
        values.append(pointer)
    return values


READERS = {"torch": _torch_values, "cupy": _cupy_values, "numba": _numba_values}


def pointer_of(array: Any) -> int:
    """The address of a new array of torch, cupy or numba."""
    library = library_of(type(array))
    if library == "torch":
        return int(array.data_ptr())
    if library == "cupy":
        return int(array.data.ptr)
    return int(array.device_ctypes_pointer.value or 0)


def maker(like: DeviceArray | None, shape: tuple[int, ...], dtype: np.dtype, devices: Any) -> Callable[[], Any]:
    """Makes new arrays in the kind of `like`, not initialised."""
    if like is None or like.library != "torch":
        kind = like and replace(like, owner=None)  # an array of the caller's is not kept alive
        return lambda: new_array(kind, shape, dtype, devices)
    made = new_array(like, shape, dtype, devices)
    empty, options = type(made).new_empty, {"dtype": made.dtype, "device": made.device}
    small = made.new_empty(0)  # holds no memory of the caller's
    return lambda: empty(small, shape, **options)
