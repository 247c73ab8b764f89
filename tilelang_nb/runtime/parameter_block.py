"""The arguments of a launch as the driver takes them: one slot of memory per parameter of the CUDA kernel and an array
of the addresses of the slots.

A block is made once and filled anew for every launch; its slots begin at multiples of 8 bytes, which aligns every
type that a kernel takes by value.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any

import numpy as np

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


class Block:
    """memory: the slots.  address: of the array of their addresses."""

    __slots__ = ("address", "addresses", "memory")

    def __init__(self, slots: int):
        self.memory = (ctypes.c_char * (SLOT * max(slots, 1)))()
        start = ctypes.addressof(self.memory)
        self.addresses = (ctypes.c_void_p * max(slots, 1))(*(start + SLOT * slot for slot in range(max(slots, 1))))
        self.address = ctypes.addressof(self.addresses)


class Layout:
    """How the parameters of one CUDA kernel are filled from the values of a call.

    dtypes: for each parameter its type, or "pointer".  positions: for each the index of its value in the values of a
    call.  Several threads may launch at once: each takes a free block and gives it back.
    """

    def __init__(self, dtypes: Sequence[str], positions: Sequence[int]):
        self.slots = len(dtypes)
        self.pack_into = struct.Struct("<" + "".join(map(slot_format, dtypes))).pack_into
        self.pick = _picker(positions)
        self.free: list[Block] = []

    def block(self, values: Sequence[Any]) -> Block:
        """A block filled with the values.  struct.error, OverflowError: a number does not fit its type."""
        try:
            block = self.free.pop()
        except IndexError:
            block = Block(self.slots)
        self.pack_into(block.memory, 0, *self.pick(values))
        return block


def _picker(positions: Sequence[int]) -> Callable[[Sequence[Any]], Sequence[Any]]:
    if len(positions) == 1:
        only = positions[0]
        return lambda values: (values[only],)
    if not positions:
        return lambda values: ()
    if list(positions) == list(range(len(positions))):
        count = len(positions)
        return lambda values: values[:count]
    return itemgetter(*positions)
