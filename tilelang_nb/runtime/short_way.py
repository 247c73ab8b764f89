"""A call that is like an earlier one, launched in the shortest time.

What the arguments of the earlier call said of themselves (type, type of elements, shape, order of memory, device)
decides its launch.  Arguments that say the same need no binding: their addresses go into the parameter block.  All of
this is one function that is generated for the kernel, a line for each step of the call: loops over arguments, and a
Python call for each step, would take as long as the driver's launch.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .device_arrays import DeviceArray, cupy_stream_of, library_of, new_array, torch_guard, torch_stream_of
from .device_launch import NOTHING_SHOWN, Plan, Shown
from .device_transfer import ALIGNMENT
from .driver import DriverError
from .parameter_block import is_packed_as_it_is

MISALIGNED = ALIGNMENT - 1
LAUNCHED = (None, NOTHING_SHOWN)

# `(arguments, stream or None) -> (result, what was shown)`, or None where the call is not like the earlier one.
# LaunchError: the driver refuses.
Call = Callable[[tuple[Any, ...], "int | None"], "tuple[Any, Shown] | None"]

# By library: what tells that an array `{a}` is not like the earlier one, which had these; and its address.
DIFFERENCES = {
    "interface": (
        '({i} := {a}.__cuda_array_interface__)["shape"] != {shape}',
        '{i}["typestr"] != {dtype}',
        '{i}.get("strides") != {strides}',
        '{i}.get("stream") is not None',
    ),
    "torch": ("{a}.shape != {shape}", "{a}.dtype is not {dtype}"),
    "cupy": (
        "{a}.shape != {shape}",
        "{a}.dtype != {dtype}",
        "{a}.strides != {strides}",
    ),
    "numba": ("{a}.shape != {shape}", "{a}.dtype != {dtype}", "{a}.strides != {strides}", "{a}.stream"),
}
ADDRESSES = {
    "interface": '{i}["data"][0]',
    "torch": "{a}.data_ptr()",
    "cupy": "{a}.data.ptr",
    "numba": "({a}.device_ctypes_pointer.value or 0)",
}


@dataclass(frozen=True)
class Outputs:
    """What a call makes.  makers: of the tensors that it returns.  places: the number of each among the values of the
    plan.  workspaces: how many; `memory` gives their addresses for a stream, the last of the values.
    """

    makers: Sequence[Callable[[], Any]] = ()
    places: Sequence[int] = ()
    workspaces: int = 0
    memory: Callable[[int], tuple[int, ...]] | None = None


def short_way(
    kernel: Any,
    plan: Plan,
    parameters: Sequence[Any],
    args: Sequence[Any],
    bound: Mapping[str, Any],
    written: frozenset[str],
    outputs: Outputs,
    *,
    numbers_decide: bool,
    one_device: bool,
) -> Call | None:
    """The short way for calls like this one; None where there is none.

    parameters: those that are given.  bound: what the arguments were read as, by name.  written: names of parameters.
    numbers_decide: do sizes of the launch depend on numbers?
    """
    arrays = {name: array for name, array in bound.items() if isinstance(array, DeviceArray)}
    libraries = {array.library for array in arrays.values()}
    if len(libraries) != 1:
        return None
    (library,) = libraries
    if library not in DIFFERENCES:
        return None
    if library in ("numba", "interface") and any(array.stream for array in arrays.values()):
        return None  # work of a stream of their own has to be ordered
    if library == "interface" and any(array.size == 0 for array in arrays.values()):
        return None  # whose address may be None
    names: dict[str, Any] = {}
    conditions: list[str] = []  # of the call
    differing: list[str] = []  # of its arrays
    values: list[str] = []
    for at, (parameter, given) in enumerate(zip(parameters, args)):
        names[f"kind{at}"] = type(given)
        (conditions if parameter.kind == "scalar" else differing).append(f"a{at}.__class__ is not kind{at}")
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
            if library == "cupy" and not one_device:
                differences.append("{a}.data.device_id != {device}")
            if library == "interface" and parameter.name in written:
                differences.append('{i}["data"][1]')
            differing += [_of(difference, at) for difference in differences]
            said = _said(given, library)
            names |= {f"shape{at}": said[0], f"dtype{at}": said[1], f"strides{at}": said[2]}
            names[f"device{at}"] = arrays[parameter.name].device
            values.append(f"p{at}")
        else:
            return None
    names["alike"] = alike = torch_guard([given for given in args if library_of(type(given)) == "torch"])
    if alike is None:
        conditions += differing
    else:
        tensors = ", ".join(value.replace("p", "a") for value in values if value.startswith("p"))
        conditions.append(f"not alike({tensors}) and ({' or '.join(differing)})")
    checks = [
        f"if len(args) != {len(args)}:",
        "    return None",
        f"{', '.join(f'a{at}' for at in range(len(args)))}, = args",
        f"if {' or '.join(conditions)}:",
        "    return None",
    ]
    pointers = [at for at, value in enumerate(values) if value.startswith("p")]
    checks += [f"p{at} = {_of(ADDRESSES[library], at)}" for at in pointers]
    checks += [f"if ({' | '.join(f'p{at}' for at in pointers)}) & {MISALIGNED}:", "    return None"]
    if library in ("numba", "interface") and not one_device:
        # They do not say which device they are of.
        names["device_of"] = plan.device.devices.driver.device_of
        for at in pointers:
            checks += [f"if p{at} and device_of(p{at}) != device{at}:", "    return None"]
    # An array that does not answer (a sparse tensor of torch) is for the long way, which says what is wrong with it.
    lines = ["try:", *_within(checks), "except Exception:", "    return None"]
    lines += _stream(library, next(iter(arrays.values())).device, names)
    lines += _launch(kernel, plan, values, outputs, one_device, names)
    names["DriverError"] = DriverError
    lines = ["try:", *_within(lines), "except DriverError as error:", "    raise faults.error(error, kernel) from None"]
    return _function(lines, names)


def _within(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines]


def _stream(library: str, device: int, names: dict[str, Any]) -> list[str]:
    """The lines that find the stream; one that records a graph is nothing for the short way."""
    find = "stream = 0"
    if library == "cupy":
        names["current_stream"], find = cupy_stream_of(), f"stream = current_stream({device}).ptr"
    elif library == "torch":
        names["current_stream"], find = torch_stream_of(), f"stream = current_stream({device})"
    return ["if stream is None:", f"    {find}", "if stream and is_capturing(stream):", "    return None"]


def _launch(
    kernel: Any, plan: Plan, values: list[str], outputs: Outputs, one_device: bool, names: dict[str, Any]
) -> list[str]:
    """The lines that make what the call returns, fill a parameter block and launch."""
    on = plan.device
    driver = on.devices.driver
    names |= {"kernel": kernel, "faults": on.faults, "is_capturing": driver.is_capturing}
    names["refused"] = (struct.error, OverflowError)
    lines = ["if faults.lost is not None:", "    return None"]
    made = [f"m{at}" for at in range(len(outputs.makers))]
    for at, make in enumerate(outputs.makers):
        names[f"make{at}"] = make
    names["pointer_of"] = pointer_of
    inner = [f"{name} = make{at}()" for at, name in enumerate(made)]
    values = list(values)
    # From the first parameter on, so that each place is right when its turn comes.
    for place, name in sorted(zip(outputs.places, made)):
        values.insert(place, f"pointer_of({name})")
    if outputs.workspaces:
        names["memory"] = outputs.memory
        spaces = [f"w{at}" for at in range(outputs.workspaces)]
        inner.append(f"{', '.join(spaces)}, = memory(stream)")
        values += spaces
    result = "None" if not made else made[0] if len(made) == 1 else f"[{', '.join(made)}]"
    inner += ["switched = faults.kernel is not kernel or faults.stream != stream"]
    if plan.reports:
        names["run"] = plan.run
        inner += [
            "if switched:",
            "    faults.launching(kernel, stream)",
            "try:",
            f"    shown = run([{', '.join(values)}], stream)",
            "except refused:",
            "    return None",
            "faults.launched(kernel, stream)",
            "faults.idle(stream)",
            f"return {result}, shown",
        ]
    else:
        layout = plan.layout
        names |= {"free": layout.free, "new_block": layout.block, "pack_into": layout.pack_into, "again": plan.again}
        names |= {"launch": driver.launch, "LAUNCHED": LAUNCHED}
        names |= {"NOTHING_SHOWN": NOTHING_SHOWN, "maps": layout.maps}
        inner += [
            "block = free.pop() if free else new_block()",
            "try:",
            f"    pack_into(block.memory, 0, {', '.join(values)})",
            "except refused:",  # a number that its type does not hold: the long way says so
            "    free.append(block)",
            "    return None",
            *(["maps.put(block)"] if layout.maps is not None else []),
            "if block.stream != stream:",
            "    block.turn_to(stream)",
            "if switched:",
            "    faults.launching(kernel, stream)",
            "for call in block.calls:",
            "    result = launch(*call)",
            "    if result:",
            "        again(result, call, block)",
            "free.append(block)",
            "if switched:",
            "    faults.launched(kernel, stream)",
            "return LAUNCHED" if not made else f"return {result}, NOTHING_SHOWN",
        ]
    if one_device:
        return lines + inner
    names |= {"enter": on.devices.enter, "leave": on.devices.leave}
    lines += [f"before = enter({on.number})", "try:"]
    return [*lines, *_within(inner), "finally:", "    leave(before)"]


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


def _function(lines: list[str], names: dict[str, Any]) -> Call:
    text = "\n    ".join(["def call(args, stream):", *lines])
    exec(compile(text, "<a call like an earlier one>", "exec"), names)
    function: Call = names["call"]
    return function


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
