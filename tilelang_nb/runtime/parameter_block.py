"""The arguments of a launch as the driver takes them: one slot of memory per parameter of the CUDA kernel, an array of
the addresses of the slots, and the configuration.

A block is made once and filled anew for every call; its slots begin at multiples of 8 bytes, which aligns every type
that a kernel takes by value.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .driver import launch_arguments, launch_config
from .host_arrays import host_dtype

SLOT = 8
POINTER = "pointer"
FORMATS = {
    POINTER: "Q",
    "bool": "?",
    "int8": "b",
    "int16": "h",
    "int32": "i",
    "int64": "q",
    "uint8": "B",
    "uint16": "H",
    "uint32": "I",
    "uint64": "Q",
    "float16": "e",
    "float32": "f",
    "float64": "d",
}
RAW = {1: "B", 2: "H", 4: "I"}  # formats of the bits of types that `struct` does not know


def slot_format(dtype: str) -> str:
    """The `struct` format of one slot, padding included."""
    code = FORMATS.get(dtype)
    if code is None:
        kind = host_dtype(dtype)
        assert kind is not None  # the language has no scalar parameter of a type that memory cannot hold
        code = RAW[kind.itemsize]
    return f"{code}{SLOT - struct.calcsize('<' + code)}x"


def is_packed_as_it_is(dtype: str) -> bool:
    """Does `struct` take a Python number for this type?"""
    return dtype in FORMATS


def packed_number(dtype: str, number: Any) -> Any:
    """What is packed for a number: itself, or the integer that holds its bits."""
    if dtype in FORMATS:
        return number
    kind = host_dtype(dtype)
    assert kind is not None
    return int(np.asarray(number, np.float64).astype(kind).view(f"uint{8 * kind.itemsize}"))


@dataclass(frozen=True)
class Launch:
    """One launch of a call.  configuration: grid, block and dynamic shared bytes.  places: for each parameter of the
    CUDA kernel, in their order, the number of its slot.  cluster: blocks of a cluster.
    """

    function: int
    configuration: tuple[int, int, int, int, int, int, int]
    places: tuple[int, ...]
    cluster: tuple[int, int, int] = (1, 1, 1)


class Block:
    """memory: the slots.  calls: for each launch what `Driver.launch` takes.  stream: the one they go into.  mapped:
    addresses of the arrays that its tensor maps show.
    """

    __slots__ = ("_arrays", "_configs", "calls", "mapped", "memory", "stream")

    def __init__(self, slots: int, launches: Sequence[Launch]):
        memory = (ctypes.c_char * (SLOT * max(slots, 1)))()
        self.memory = memoryview(memory).cast("B")  # filled in half the time that the array of ctypes takes
        self.stream = 0
        self.mapped: list[int] | None = None
        start = ctypes.addressof(memory)
        self._arrays = [
            (ctypes.c_void_p * max(len(launch.places), 1))(*(start + SLOT * place for place in launch.places))
            for launch in launches
        ]
        self._configs = [launch_config(launch.configuration, cluster=launch.cluster) for launch in launches]
        self.calls = tuple(
            launch_arguments(config, launch.function, ctypes.addressof(array))
            for launch, config, array in zip(launches, self._configs, self._arrays)
        )

    def turn_to(self, stream: int) -> None:
        """Let the launches go into another stream."""
        for config in self._configs:
            config.stream = stream
        self.stream = stream


class Layout:
    """The slots for the calls of a plan: first those of the values of a call, then those of its constants.

    dtypes: of the values, POINTER for addresses.  constants: type and number of each.  Several threads may launch at
    once: each takes a free block and gives it back.  struct.error: a constant does not fit its type.
    maps: the tensor maps among the parameters, or None.
    """

    maps: Any = None

    def __init__(self, dtypes: Sequence[str], constants: Sequence[tuple[str, Any]], launches: Sequence[Launch]):
        self.pack_into = struct.Struct("<" + "".join(map(slot_format, dtypes))).pack_into
        self.free: list[Block] = []
        self._begin, self._slots, self._launches = SLOT * len(dtypes), len(dtypes) + len(constants), launches
        form = "<" + "".join(slot_format(dtype) for dtype, _ in constants)
        self._constants = struct.pack(form, *(packed_number(dtype, number) for dtype, number in constants))

    def block(self) -> Block:
        """A block that no launch uses, its constants filled in."""
        try:
            return self.free.pop()
        except IndexError:
            made = Block(self._slots, self._launches)
            made.memory[self._begin : self._begin + len(self._constants)] = self._constants
            return made

    def filled(self, values: Sequence[Any], stream: int) -> Block:
        """A block for one call.  struct.error, OverflowError: a number does not fit its type."""
        block = self.block()
        self.pack_into(block.memory, 0, *values)
        if self.maps is not None:
            self.maps.put(block)
        if block.stream != stream:
            block.turn_to(stream)
        return block
