"""Devices for tests on a machine without one: memory is the host's, copies are real, and a launch is recorded and, where
the test gives a function for it, carried out by NumPy.

It stands at the seam of `numba_device.NumbaDevices`; what is above it (binding, plans, parameter blocks, copies, the
short way, faults) is the code that runs on a GPU.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tilelang_nb.runtime.driver import CLUSTER_DIMENSION, DriverError, LaunchAttribute, LaunchConfig
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


@dataclass(frozen=True)
class Launch:
    """A recorded launch.  slots: the 8 bytes of each parameter of the CUDA kernel."""

    name: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared: int
    stream: int
    slots: tuple[bytes, ...]
    cluster: tuple[int, ...] = (1, 1, 1)


class Memory:
    """Host memory that plays device memory, aligned as a device's."""

    def __init__(self, size: int):
        self.bytes = np.full(size + 256, 0xA5, np.uint8)
        start = self.bytes.ctypes.data
        self.pointer = start + -start % 256


class StandInMarks:
    """As `Marks`.  A mark is written when the test says that the work before it is done."""

    def __init__(self, driver: StandInDriver):
        self.driver = driver
        self.put_: list[tuple[int, int, int]] = []
        self.words: dict[int, int] = {}

    def put(self, at: int, number: int, stream: int) -> bool:
        self.put_.append((at, number, stream))
        self.driver.log.append(("mark", stream))
        return True

    def reached(self, at: int) -> int:
        return self.words.get(at, 0)

    def done(self, count: int) -> None:
        """The first `count` marks are written."""
        self.words |= {at: number for at, number, _ in self.put_[:count]}


@dataclass
class StandInDriver:
    """The calls of `Driver`.  log: their names with what tells them apart.  fails: results of calls by name."""

    work: Callable[[Launch], None] | None = None
    launches: list[Launch] = field(default_factory=list)
    log: list[Any] = field(default_factory=list)
    fails: dict[str, str] = field(default_factory=dict)
    parameters: dict[str, int] = field(default_factory=dict)
    context: int = 100
    functions: list[str] = field(default_factory=list)
    recording: set[int] = field(default_factory=set)
    words: Any = None
    owners: dict[int, int] = field(default_factory=dict)

    def _note(self, name: str, *more: Any) -> None:
        self.log.append((name, *more))
        if name in self.fails:
            raise DriverError(self.fails[name], name)

    def load(self, cubin: bytes) -> Any:
        self._note("load")
        return object()

    def unload(self, library: Any) -> None:
        self._note("unload", library)

    def function(self, library: Any, name: str) -> int:
        if name not in self.functions:
            self.functions.append(name)
        return self.functions.index(name) + 1

    def allow_shared(self, function: int, size: int) -> None:
        self._note("allow_shared", self.functions[function - 1], size)

    def launch(self, config: Any, handle: Any, parameters: Any, extra: None) -> int:
        if "launch" in self.fails:
            return -list(self.fails).index("launch") - 1
        function = self.functions[handle.value - 1]
        given = LaunchConfig.from_address(config.value)
        grid, block = (given.grid_x, given.grid_y, given.grid_z), (given.block_x, given.block_y, given.block_z)
        count = self.parameters[function]
        addresses = (ctypes.c_void_p * count).from_address(parameters.value) if count else ()
        slots = tuple(ctypes.string_at(place, 8) for place in addresses)
        cluster: tuple[int, ...] = (1, 1, 1)
        if given.attribute_count:
            attribute = LaunchAttribute.from_address(given.attributes)
            assert (given.attribute_count, attribute.number) == (1, CLUSTER_DIMENSION)
            cluster = tuple(attribute.value[:3])
        made = Launch(function, grid, block, given.shared, given.stream or 0, slots, cluster)
        self.launches.append(made)
        self.log.append(("launch", function, made.stream))
        if self.work is not None:
            self.work(made)
        return 0

    def tensor_map(self, address: int, *outline: Any) -> bytes:
        """The address stands in the first word, as the tests read it."""
        self._note("tensor_map", address, outline)
        return address.to_bytes(8, "little") + bytes(120)

    def error_of(self, result: int, what: str) -> DriverError:
        return DriverError(list(self.fails.values())[-result - 1], what)

    def marks(self, count: int) -> StandInMarks | None:
        self.words = StandInMarks(self)
        return self.words

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
        return stream in self.recording

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
        self.driver.context = 100 + number

    def enter(self, number: int) -> int | None:
        before = self.driver.context if self.count > 1 else None
        if before == 100 + number:
            return None
        self.activate(number)
        return before

    def leave(self, before: int | None) -> None:
        if before is not None:
            self.driver.context = before

    @contextlib.contextmanager
    def kept(self) -> Iterator[None]:
        before = self.driver.context
        yield
        self.driver.context = before

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
