"""The devices of this machine through numba.cuda: the one file that knows numba, so that a successor can take its
place.

numba finds the devices, owns their primary contexts, allocates (with the memory manager that the user gave it), makes
events and arrays; `driver` loads and launches kernels in the same contexts.  Nothing here needs numba's compiler.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .driver import LIBRARY, Driver, DriverError

if TYPE_CHECKING:
    import numpy as np  # the targets are known before numpy is loaded, while a notebook loads the extension

NO_DRIVER = "no NVIDIA driver is installed"
SIMULATED = "NUMBA_ENABLE_CUDASIM is set"


@dataclass(frozen=True)
class DeviceFacts:
    """What a launch and a report need to know of a device.

    shared_bytes: the most that a block may use.  l2_bytes: the second-level cache.  clock_hertz and memory_hertz: the
    fastest clocks of multiprocessors and memory, 0 where the driver does not say.  bus_bits: width of the memory bus.
    """

    number: int
    name: str
    capability: tuple[int, int]
    multiprocessors: int
    shared_bytes: int
    shared_bytes_default: int
    l2_bytes: int
    memory_bytes: int
    clock_hertz: int
    memory_hertz: int
    bus_bits: int
    largest_grid: tuple[int, int, int]
    largest_block: tuple[int, int, int]
    threads: int

    @property
    def arch(self) -> str:
        """The architecture to compile for, `sm_90a`: from Hopper on the one with the instructions of this chip only."""
        major, minor = self.capability
        return f"sm_{major}{minor}{'a' if major >= 9 else ''}"


def asks_for_simulator() -> bool:
    """Is `NUMBA_ENABLE_CUDASIM` set, to a number other than 0?"""
    value = os.environ.get("NUMBA_ENABLE_CUDASIM", "").strip()
    return value not in ("", "0")


def missing() -> str | None:
    """Why there is no device here; None where there is one."""
    return SIMULATED if asks_for_simulator() else _missing()


@functools.cache
def _missing() -> str | None:
    # Without a driver there is nothing for numba to find, and the import of numba would be the slowest part of a cell.
    try:
        ctypes.CDLL(LIBRARY)
    except OSError:
        return NO_DRIVER
    try:
        import cuda.bindings.driver  # noqa: F401
    except ImportError:
        return "cuda-bindings is not installed: in the folder of tilelang-nb, pip install '.[cuda]'"
    try:
        from numba import cuda as numba_cuda

        count = len(numba_cuda.gpus)
    except ImportError:
        return "numba is not installed: pip install numba numba-cuda"
    except Exception as error:  # numba raises what the driver says, of several types
        return f"numba.cuda finds no device: {' '.join(str(error).split())[:200]}"
    return None if count else "numba.cuda finds no device"


@functools.cache
def devices() -> NumbaDevices:
    """The devices of this machine.  Only where `missing()` is None."""
    return NumbaDevices()


def _attribute(device: Any, name: str) -> int:
    """An attribute that newer drivers may not have; 0 then."""
    try:
        return int(getattr(device, name))
    except Exception:
        return 0


def _driver_error(error: Exception, what: str) -> Exception:
    """numba's error of a call of the driver as ours; another error as it is."""
    result = re.search(r"CUDA_ERROR_\w+", str(error))
    return DriverError(result[0], what) if result else error


def opened() -> NumbaDevices | None:
    """The devices where this process has used them; None where it has not."""
    return devices() if devices.cache_info().currsize else None


class Memory:
    """Device memory of numba's memory manager; freed when the object dies.  pointer: its address."""

    def __init__(self, owner: Any):
        pointer = owner.device_pointer
        self.owner, self.pointer = owner, int(getattr(pointer, "value", pointer))


class NumbaDevices:
    """The devices, their contexts, memory and streams.

    Methods act in the context of the device that is current in the thread; `activate` chooses it.
    count: of devices.  opened: what launches share of each device, by its number.
    """

    def __init__(self) -> None:
        from numba import cuda

        self._numba = cuda
        self.count = len(cuda.gpus)
        self.driver = Driver()
        self.opened: dict[int, Any] = {}
        self._handles: dict[int, int] = {}
        self._lock = threading.Lock()
        self._facts: dict[int, DeviceFacts] = {}

    def facts(self, number: int) -> DeviceFacts:
        """What is known of a device."""
        found = self._facts.get(number)
        if found is None:
            found = self._facts[number] = self._read_facts(number)
        return found

    def _read_facts(self, number: int) -> DeviceFacts:
        device = self._numba.gpus[number]
        name = device.name
        return DeviceFacts(
            number,
            name.decode() if isinstance(name, bytes) else str(name),
            tuple(device.compute_capability),
            device.MULTIPROCESSOR_COUNT,
            device.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
            device.MAX_SHARED_MEMORY_PER_BLOCK,
            device.L2_CACHE_SIZE,
            self._memory_bytes(number),
            1000 * _attribute(device, "CLOCK_RATE"),
            1000 * _attribute(device, "MEMORY_CLOCK_RATE"),
            _attribute(device, "GLOBAL_MEMORY_BUS_WIDTH"),
            (device.MAX_GRID_DIM_X, device.MAX_GRID_DIM_Y, device.MAX_GRID_DIM_Z),
            (device.MAX_BLOCK_DIM_X, device.MAX_BLOCK_DIM_Y, device.MAX_BLOCK_DIM_Z),
            device.MAX_THREADS_PER_BLOCK,
        )

    def _memory_bytes(self, number: int) -> int:
        from cuda.bindings import driver

        result, size = driver.cuDeviceTotalMem(number)
        return int(size) if int(result) == 0 else 0

    # -- contexts

    def current(self) -> int:
        """The device of the calling thread, the first where none was chosen."""
        context = self.driver.current_context()
        if context:
            for number, handle in self._handles.items():
                if handle == context:
                    return number
            try:
                active = self._numba.gpus.current
            except Exception:  # numba knows primary contexts only
                return 0
            return int(active.id) if active is not None else 0
        return 0

    def activate(self, number: int) -> None:
        """Make the primary context of a device the calling thread's."""
        context = self._handles.get(number)
        if context is None:
            with self._lock:
                self._numba.gpus[number].get_primary_context()  # so that numba has it too
                context = self._handles[number] = self.driver.retain_context(number)
        if self.driver.current_context() != context:
            self.driver.set_context(context)

    def enter(self, number: int) -> int | None:
        """Make the device the calling thread's; what `leave` takes to choose the one before again.

        The device that is current is also that of torch, cupy and numba: a call must not change it.
        """
        before = None
        if self.count > 1:
            before = self.driver.current_context()
            if before == self._handles.get(number):
                return None
        self.activate(number)
        return before

    def leave(self, before: int | None) -> None:
        """Choose the device from before `enter` again."""
        if before is not None:
            self.driver.set_context(before)

    @contextlib.contextmanager
    def kept(self) -> Iterator[None]:
        """The device that is the calling thread's before is so again afterwards."""
        before = self.driver.current_context() if self.count > 1 else None
        try:
            yield
        finally:
            self.leave(before)

    # -- memory

    def allocate(self, size: int) -> Memory:
        """Device memory of at least 256 bytes' alignment.  DriverError: there is not enough."""
        try:
            return Memory(self._numba.current_context().memalloc(max(size, 1)))
        except Exception as error:
            raise _driver_error(error, f"allocating {size} bytes") from error

    def is_array(self, given: Any) -> bool:
        """Is it a device array of numba?"""
        return bool(getattr(type(given), "__cuda_ndarray__", False))

    def array(self, shape: tuple[int, ...], dtype: np.dtype) -> Any:
        """A new device array of numba, not initialised."""
        return self._numba.device_array(shape, dtype)

    # -- time

    def event(self) -> Any:
        """An event that takes the time."""
        return self._numba.event(timing=True)

    def record(self, event: Any, stream: int) -> None:
        """Put an event into a stream."""
        event.record(self._numba.external_stream(stream) if stream else self._numba.default_stream())

    def milliseconds(self, first: Any, last: Any) -> float:
        """The time between two events; waits for the second."""
        try:
            last.synchronize()
            return float(self._numba.event_elapsed_time(first, last))
        except Exception as error:
            raise _driver_error(error, "timing") from error
