"""A call that is like an earlier one, launched in the shortest time.

What the arguments of the earlier call said of themselves (type, type of elements, shape, order of memory, device)
decides its launch.  Arguments that say the same need no binding: their addresses go into the parameter block.  The
check is a function generated for the kernel, one line for each argument: a loop over them, and a call for each, would
take as long as the driver's launch.
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

# By library: what tells that an array `{a}` is not like the earlier one, which had these; and its address.
DIFFERENCES = {
    "interface": (
        '({i} := {a}.__cuda_array_interface__)["shape"] != {shape}',
        '{i}["typestr"] != {dtype}',
        '{i}.get("strides") != {strides}',
        '{i}.get("stream") is not None',
    ),
    "torch": ("{a}.shape != {shape}", "{a}.shape != {shape}", "{a}.dtype is not {dtype}"),
    "cupy": (
        "{a}.shape != {shape}",
        "{a}.dtype != {dtype}",
        "{a}.strides != {strides}",
        "{a}.data.device_id != {device}",
    ),
    "numba": ("{a}.shape != {shape}", "{a}.dtype != {dtype}", "{a}.strides != {strides}", "{a}.stream"),
}
ADDRESSES = {
    "interface": '{i}["data"][0]',
    "torch": "{a}.data_ptr()",
    "cupy": "{a}.data.ptr",
    "numba": "int({a}.gpu_data.device_pointer)",
}


@dataclass
class ShortWay:
    """values: what fills the parameter block for the arguments of a call; None where they are not like the earlier
    ones.  stream: the one that the arrays' library works on.  run, faults: of the plan.  finish: adds what is made for
    the call to the values, and gives the tensors that the call returns.
    """

    values: Callable[[tuple[Any, ...]], list[Any] | None]
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
    arrays = {name: array for name, array in bound.items() if isinstance(array, DeviceArray)}
    libraries = {array.library for array in arrays.values()}
    if len(libraries) != 1:
        return None
    (library,) = libraries
    if library not in DIFFERENCES:
        return None
    if library in ("numba", "interface") and (not one_device or any(array.stream for array in arrays.values())):
        return None  # they do not say which device they are of; work of a stream of their own has to be ordered
    if library == "interface" and any(array.size == 0 for array in arrays.values()):
        return None  # whose address may be None
    names: dict[str, Any] = {}
    conditions: list[str] = []
    values: list[str] = []
    for at, (parameter, given) in enumerate(zip(parameters, args)):
        names[f"kind{at}"] = type(given)
        conditions.append(f"a{at}.__class__ is not kind{at}")
        if parameter.kind == "scalar":
            if type(given) is not _plain_type(parameter.dtype) or not is_packed_as_it_is(parameter.dtype):
                return None
            if numbers_decide:
                names[f"number{at}"] = given
                conditions.append(f"a{at} != number{at}")
            values.append(f"a{at}")
        elif parameter.name in arrays:
            differences = list(DIFFERENCES[library])
            if library == "torch":
                differences.append("not {a}.is_cuda" if one_device else "{a}.get_device() != {device}")
                gaps = "not {a}.is_contiguous()" if parameter.strides is None else "{a}.stride() != {strides}"
                differences += [gaps, "{a}.requires_grad"] if parameter.name in written else [gaps]
            if library == "interface" and parameter.name in written:
                differences.append('{i}["data"][1]')
            conditions += [_of(difference, at) for difference in differences]
            said = _said(given, library)
            names |= {f"shape{at}": said[0], f"dtype{at}": said[1], f"strides{at}": said[2]}
            names[f"device{at}"] = arrays[parameter.name].device
            values.append(f"p{at}")
        else:
            return None
    pointers = [at for at, value in enumerate(values) if value.startswith("p")]
    read = [(f"p{at}", _of(ADDRESSES[library], at)) for at in pointers]
    streams: dict[str, Callable[[], int]] = dict.fromkeys(DIFFERENCES, _default_stream) | {"cupy": cupy_stream}
    if library == "torch":
        streams["torch"] = functools.partial(torch_stream_of(), next(iter(arrays.values())).device)
    return ShortWay(_function(len(args), conditions, read, values, names), streams[library])


def _said(array: Any, library: str) -> tuple[Any, Any, Any]:
    """Shape, type of elements and strides as the library says them."""
    if library == "interface":
        interface = array.__cuda_array_interface__
        return interface["shape"], interface["typestr"], interface.get("strides")
    return array.shape, array.dtype, array.stride() if library == "torch" else array.strides


def _of(text: str, at: int) -> str:
    """A difference or an address, for argument `at`."""
    words = ("a", "i", "shape", "dtype", "strides", "device")
    return text.format(**{word: f"{word}{at}" for word in words})


def _function(
    count: int, conditions: list[str], read: list[tuple[str, str]], values: list[str], names: dict[str, Any]
) -> Callable[[tuple[Any, ...]], list[Any] | None]:
    """The function of a tuple of `count` arguments: the values, or None where a condition says that they differ."""
    targets = ", ".join(f"a{at}" for at in range(count))
    lines = [
        "def values(args):",
        f"    if len(args) != {count}:",
        "        return None",
        f"    ({targets},) = args",
        f"    if {' or '.join(conditions)}:",
        "        return None",
        *(f"    {name} = {address}" for name, address in read),
        f"    if ({' | '.join(name for name, _ in read)}) & {MISALIGNED}:",
        "        return None",
        f"    return [{', '.join(values)}]",
    ]
    exec("\n".join(lines), names)
    function: Callable[[tuple[Any, ...]], list[Any] | None] = names["values"]
    return function


def _default_stream() -> int:
    return 0


def _plain_type(dtype: str) -> type:
    if dtype == "bool":
        return bool
    return int if dtype.startswith(("int", "uint")) else float


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
