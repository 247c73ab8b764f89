"""Arrays of the host on a device for one call: copied in before it, and copied back after it where it wrote them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..source import catalogue as say
from ..source.diagnostic import Refusal
from .device_arrays import DeviceArray

ALIGNMENT = 16  # of a tensor's first byte: what vector accesses of the generated code assume


@dataclass
class Copy:
    """Bytes of the host from `start` to `end` and their copy on the device.  written: names of the parameters that are
    these bytes and are written.
    """

    start: int
    end: int
    memory: Any
    arrays: list[tuple[str, np.ndarray]]
    written: bool


class Transfers:
    """The copies of one call.  stream: where they are ordered."""

    def __init__(self, devices: Any, stream: int):
        self.devices, self.stream = devices, stream
        self._copies: list[Copy] = []
        self._realigned: list[tuple[DeviceArray, Any, bool]] = []

    @property
    def empty(self) -> bool:
        """Was nothing copied?"""
        return not self._copies and not self._realigned

    def pointer(self, name: str, array: np.ndarray | DeviceArray, written: bool) -> int:
        """The address on the device that the kernel gets for an array.  Refusal TL301: overlapping memory."""
        if isinstance(array, DeviceArray):
            return array.pointer if array.pointer % ALIGNMENT == 0 else self._realign(array, written)
        if array.size == 0:
            return 0
        start = int(array.__array_interface__["data"][0])
        end = start + _span(array)
        for copy in self._copies:
            if (copy.start, copy.end) == (start, end):
                copy.arrays.append((name, array))
                copy.written |= written
                return int(copy.memory.pointer)
            if start < copy.end and copy.start < end and (written or copy.written):
                other = copy.arrays[0][0]
                raise Refusal(
                    say.ArgumentMismatch(
                        argument=name,
                        expected="memory of its own",
                        given=f"memory that overlaps {other}",
                        remedy="a part of an array of the host is copied to the device alone: pass separate arrays",
                        about=other,
                    )
                )
        memory = self.devices.allocate(end - start)
        self.devices.driver.copy_to_device(memory.pointer, start, end - start, self.stream)
        self._copies.append(Copy(start, end, memory, [(name, array)], written))
        return int(memory.pointer)

    def result(self, array: np.ndarray) -> int:
        """The address for an array that the kernel makes."""
        if array.size == 0:
            return 0
        memory = self.devices.allocate(array.nbytes)
        start = int(array.__array_interface__["data"][0])
        self._copies.append(Copy(start, start + array.nbytes, memory, [("", array)], True))
        return int(memory.pointer)

    def finish(self) -> None:
        """Bring back what was written, and wait for it."""
        driver = self.devices.driver
        for moved, memory, written in self._realigned:
            if written:
                driver.copy_within(moved.pointer, memory.pointer, moved.span, self.stream)
        late = []
        for copy in self._copies:
            if not copy.written:
                continue
            array = copy.arrays[0][1]
            if array.flags.c_contiguous:
                driver.copy_to_host(copy.start, copy.memory.pointer, copy.end - copy.start, self.stream)
            else:
                taken = np.empty(copy.end - copy.start, np.uint8)
                driver.copy_to_host(taken.ctypes.data, copy.memory.pointer, taken.nbytes, self.stream)
                late.append((array, taken))
        driver.synchronise(self.stream)
        for array, taken in late:
            array[...] = _same_view(array, taken)

    def _realign(self, array: DeviceArray, written: bool) -> int:
        if array.size == 0:
            return 0
        memory = self.devices.allocate(array.span)
        self.devices.driver.copy_within(memory.pointer, array.pointer, array.span, self.stream)
        self._realigned.append((array, memory, written))
        return int(memory.pointer)


def _span(array: np.ndarray) -> int:
    """Bytes from the first element to the end of the last; strides go forward."""
    return int(array.itemsize + sum((extent - 1) * stride for extent, stride in zip(array.shape, array.strides)))


def _same_view(array: np.ndarray, taken: np.ndarray) -> np.ndarray:
    """The elements of `array` in a copy of its bytes, gaps between them included."""
    # NumPy cannot stride over every type of `ml_dtypes`.
    raw = np.ndarray(array.shape, np.dtype((np.void, array.itemsize)), taken, strides=array.strides)
    return raw.view(array.dtype)
