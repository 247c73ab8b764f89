"""Devices for tests on a machine without one: memory is the host's, copies are real, and a launch is recorded and, where
the test gives a function for it, carried out by NumPy.

It stands at the seam of `numba_device.NumbaDevices`; what is above it (binding, plans, parameter blocks, copies, the
short way, faults) is the code that runs on a GPU.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tilelang_nb.runtime.driver import DriverError
from tilelang_nb.runtime.numba_device import DeviceFacts

FACTS = DeviceFacts(
    number=0,
    name="Stand-in",
    capability=(9, 0),
    multiprocessors=132,
    shared_bytes=232448,
    shared_bytes_default=49152,
    l2_bytes=60 << 20,
    memory_bytes=1 << 37,
    clock_hertz=1_980_000_000,
    memory_hertz=3_201_000_000,
    bus_bits=6016,
    largest_grid=(2**31 - 1, 65535, 65535),
    largest_block=(1024, 1024, 64),
    threads=1024,
)


class Result(int):
    """As a result of the bindings: an int with a name."""

    name = "CUDA_ERROR_INVALID_VALUE"

    @classmethod
    def of(cls, name: str) -> Result:
        made = cls(1)
        made.name = name
        return made


@dataclass(frozen=True)
class Launch:
    """A recorded launch.  slots: the 8 bytes of each parameter of the CUDA kernel."""

    name: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared: int
    stream: int
    slots: tuple[bytes, ...]


class Memory:
    """Host memory that plays device memory, aligned as a device's."""

    def __init__(self, size: int):
        self.bytes = np.full(size + 256, 0xA5, np.uint8)
        start = self.bytes.ctypes.data
        self.pointer = start + -start % 256


@dataclass
class StandInDriver:
    """The calls of `Driver`.  log: their names with what tells them apart.  fails: results of calls by name."""

    work: Callable[[Launch], None] | None = None
    launches: list[Launch] = field(default_factory=list)
    log: list[Any] = field(default_factory=list)
    fails: dict[str, str] = field(default_factory=dict)
    parameters: dict[str, int] = field(default_factory=dict)
    context: int = 100
    owners: dict[int, int] = field(default_factory=dict)

    def _note(self, name: str, *more: Any) -> None:
        self.log.append((name, *more))
        if name in self.fails:
            raise DriverError(self.fails[name], name)

    def load(self, cubin: bytes) -> Any:
        self._note("load")
        return object()

    def function(self, library: Any, name: str) -> str:
        return name

    def allow_shared(self, function: str, size: int) -> None:
        self._note("allow_shared", function, size)

    def stream(self, handle: int) -> int:
        return handle

    def raw_launch(
        self,
        function: str,
        gx: int,
        gy: int,
        gz: int,
        bx: int,
        by: int,
        bz: int,
        shared: int,
        stream: int,
        address: int,
        _: int,
    ) -> tuple[Result]:
        if "launch" in self.fails:
            return (Result.of(self.fails["launch"]),)
        count = self.parameters[function]
        addresses = (ctypes.c_void_p * count).from_address(address) if count else ()
        slots = tuple(ctypes.string_at(place, 8) for place in addresses)
        made = Launch(function, (gx, gy, gz), (bx, by, bz), shared, stream, slots)
        self.launches.append(made)
        self.log.append(("launch", function, stream))
        if self.work is not None:
            self.work(made)
        return (Result(0),)

    def error_of(self, result: Result, what: str) -> DriverError:
        return DriverError(result.name, what)

    def copy_to_device(self, target: int, source: int, size: int, stream: int) -> None:
        self._note("copy_to_device", size)
        ctypes.memmove(target, source, size)

    def copy_to_host(self, target: int, source: int, size: int, stream: int) -> None:
        self._note("copy_to_host", size)
        ctypes.memmove(target, source, size)

    def copy_within(self, target: int, source: int, size: int, stream: int) -> None:
        self._note("copy_within", size)
        ctypes.memmove(target, source, size)

    def fill(self, target: int, byte: int, size: int, stream: int) -> None:
        ctypes.memset(target, byte, size)

    def synchronise(self, stream: int) -> None:
        self._note("synchronise", stream)

    def synchronise_context(self) -> None:
        self._note("synchronise_context")

    def is_capturing(self, stream: int) -> bool:
        return False

    def order(self, first: int, then: int) -> None:
        self._note("order", first, then)

    def device_of(self, pointer: int) -> int:
        return self.owners.get(pointer, 0)

    def current_context(self) -> int:
        return self.context


class StandInDevices:
    """The methods of `NumbaDevices`."""

    def __init__(self, count: int = 1, facts: DeviceFacts = FACTS):
        self.count, self._facts = count, facts
        self.driver = StandInDriver()
        self.opened: dict[int, Any] = {}
        self.activated: list[int] = []
        self.allocated: list[int] = []
        self.clock: list[float] = []

    def facts(self, number: int) -> DeviceFacts:
        return self._facts

    def current(self) -> int:
        return 0

    def activate(self, number: int) -> None:
        self.activated.append(number)

    def allocate(self, size: int) -> Memory:
        if "allocate" in self.driver.fails:
            raise DriverError(self.driver.fails["allocate"], f"allocating {size} bytes")
        self.allocated.append(size)
        return Memory(size)

    def array(self, shape: tuple[int, ...], dtype: np.dtype) -> DeviceMemory:
        return DeviceMemory(np.zeros(shape, dtype))

    def event(self) -> list[float]:
        return []

    def record(self, event: list[float], stream: int) -> None:
        event.append(self.clock.pop(0))

    def milliseconds(self, first: list[float], last: list[float]) -> float:
        return last[0] - first[0]


class DeviceMemory:
    """An array in device memory as a library without a name gives it: `__cuda_array_interface__` and nothing else."""

    def __init__(self, content: np.ndarray, *, stream: int | None = None, read_only: bool = False, offset: int = 0):
        self._memory = Memory(content.nbytes + offset + 16)
        self.shape, self.dtype = content.shape, content.dtype
        self.pointer = self._memory.pointer + offset
        self.stream, self.read_only = stream, read_only
        self.strides = content.strides if not content.flags.c_contiguous else None
        self.content[...] = content

    @property
    def content(self) -> np.ndarray:
        """The elements."""
        count = int(np.prod(self.shape))
        raw = (ctypes.c_char * (count * self.dtype.itemsize)).from_address(self.pointer)
        return np.frombuffer(raw, self.dtype, count).reshape(self.shape)

    @property
    def device_ctypes_pointer(self) -> Any:
        return ctypes.c_size_t(self.pointer)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self.pointer, self.read_only),
            "strides": self.strides,
            "stream": self.stream,
            "version": 3,
        }
