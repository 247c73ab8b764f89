"""The calls of the CUDA driver that launches need, over `cuda.bindings`: libraries, launches, copies, events.

Devices, contexts, memory and streams are numba's (`numba_device`); what numba does not give, or gives too slowly for
the path of every launch, is here.  The calls of that path go through ctypes with arguments made before: the bindings
would make new ones for each call.  Handles, addresses and sizes are ints.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence
from typing import Any

LIBRARY = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"

# Results after which the context of the process takes no more work: only a new process has a working one.
LOST = frozenset(
    [
        "CUDA_ERROR_ILLEGAL_ADDRESS",
        "CUDA_ERROR_LAUNCH_TIMEOUT",
        "CUDA_ERROR_CONTEXT_IS_DESTROYED",
        "CUDA_ERROR_ASSERT",
        "CUDA_ERROR_HARDWARE_STACK_ERROR",
        "CUDA_ERROR_ILLEGAL_INSTRUCTION",
        "CUDA_ERROR_MISALIGNED_ADDRESS",
        "CUDA_ERROR_INVALID_ADDRESS_SPACE",
        "CUDA_ERROR_INVALID_PC",
        "CUDA_ERROR_LAUNCH_FAILED",
        "CUDA_ERROR_ECC_UNCORRECTABLE",
        "CUDA_ERROR_NVLINK_UNCORRECTABLE",
        "CUDA_ERROR_EXTERNAL_DEVICE",
        "CUDA_ERROR_TENSOR_MEMORY_LEAK",
        "CUDA_ERROR_CONTAINED",
        "CUDA_ERROR_UNKNOWN",
    ]
)


class DriverError(Exception):
    """A call of the driver failed.

    result: the name of its result, `CUDA_ERROR_...`.  what: what was being done.  ran: had the kernel at hand begun?
    A fault that comes up before it has is one of earlier work.
    """

    def __init__(self, result: str, what: str):
        super().__init__(f"{what}: {result}")
        self.result, self.what, self.ran = result, what, False

    @property
    def is_lost(self) -> bool:
        """Does the context take no more work?"""
        return self.result in LOST

    @property
    def words(self) -> str:
        """The result in words, `illegal address`."""
        return self.result.removeprefix("CUDA_ERROR_").lower().replace("_", " ")


# Types of elements in tensor maps by their width and kind; bytes are bytes.
TENSOR_TYPES = {
    "float16": "FLOAT16",
    "bfloat16": "BFLOAT16",
    "float32": "FLOAT32",
    "float64": "FLOAT64",
    "int16": "UINT16",
    "uint16": "UINT16",
    "int32": "INT32",
    "uint32": "UINT32",
    "int64": "INT64",
    "uint64": "UINT64",
}
POINTER_CONTEXT, POINTER_DEVICE = 1, 9  # of `CUpointer_attribute`
PORTABLE, MAPPED = 1, 2  # memory of the host for every context, with addresses on the devices


class Marks:
    """Words of the host's memory, one for a stream: `put` lets the stream write it when the work before is done.

    They can be read after the context was lost.  The memory is as long as the process.
    """

    def __init__(self, address: int, count: int, write: Any):
        self.count, self._write, self._address = count, write, address
        self._words = (ctypes.c_uint32 * count).from_address(address)
        for at in range(count):
            self._words[at] = 0

    def put(self, at: int, number: int, stream: int) -> bool:
        """Put the write of word `at` into a stream; False where the driver refuses."""
        place = ctypes.c_void_p(self._address + 4 * at)
        return self._write(ctypes.c_void_p(stream), place, ctypes.c_uint32(number), 0) == 0

    def reached(self, at: int) -> int:
        """The last number that was written."""
        return int(self._words[at])


class LaunchAttribute(ctypes.Structure):
    """`CUlaunchAttribute`: a number of `CUlaunchAttributeID`, and 64 bytes of value."""

    _fields_ = (("number", ctypes.c_uint), ("gap", ctypes.c_uint), ("value", ctypes.c_uint * 16))


CLUSTER_DIMENSION = 4  # of `CUlaunchAttributeID`


class LaunchConfig(ctypes.Structure):
    """`CUlaunchConfig`: extents of the grid and of a block, bytes of dynamic shared memory, the stream."""

    _fields_ = (
        *((name, ctypes.c_uint) for name in ("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z", "shared")),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.c_void_p),
        ("attribute_count", ctypes.c_uint),
    )
    kept: Any


# What `Driver.launch` takes: addresses of a configuration, of a function, of the array of parameter addresses; None.
LaunchArguments = tuple[ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, None]


def launch_arguments(config: LaunchConfig, function: int, parameters: int) -> LaunchArguments:
    """The arguments of one launch.  They hold nothing alive."""
    return ctypes.c_void_p(ctypes.addressof(config)), ctypes.c_void_p(function), ctypes.c_void_p(parameters), None


def launch_config(
    configuration: Sequence[int], stream: int = 0, cluster: tuple[int, int, int] = (1, 1, 1)
) -> LaunchConfig:
    """Grid x, y, z, block x, y, z and bytes of dynamic shared memory as the driver takes them.

    cluster: blocks of a cluster along x, y and z.
    """
    config = LaunchConfig(*configuration, stream, None, 0)
    if cluster != (1, 1, 1):
        attribute = LaunchAttribute(CLUSTER_DIMENSION, 0, (ctypes.c_uint * 16)(*cluster))
        config.kept = attribute  # as long as the configuration, which has its address
        config.attributes, config.attribute_count = ctypes.addressof(attribute), 1
    return config


class Driver:
    """The driver of this process.  Every method raises DriverError where the driver refuses.

    launch: the driver's own launch for the path of every call, of `LaunchArguments` as four arguments; gives the number
    of a result, 0 for none.  Releases the interpreter's lock, since the driver may wait for room in its queue.
    """

    def __init__(self) -> None:
        from cuda.bindings import driver

        self._cuda = driver
        self._library = ctypes.CDLL(LIBRARY)
        self.launch = self._library.cuLaunchKernelEx
        self._streams: dict[int, Any] = {}
        self._devices_of_contexts: dict[int, int] = {}

    def _do(self, what: str, returned: tuple[Any, ...]) -> Any:
        result, *values = returned
        if int(result) != 0:
            raise DriverError(result.name, what)
        return values[0] if len(values) == 1 else values or None

    def error_of(self, result: int, what: str) -> DriverError:
        """The exception of the number of a result that is not 0."""
        try:
            return DriverError(self._cuda.CUresult(result).name, what)
        except ValueError:  # of a driver that is newer than the bindings
            return DriverError(f"CUDA_ERROR_{result}", what)

    # -- contexts

    def retain_context(self, device: int) -> int:
        """The primary context of a device: the one that numba and the frameworks use."""
        return int(self._do("opening the device", self._cuda.cuDevicePrimaryCtxRetain(device)))

    def current_context(self) -> int:
        """The context of the calling thread; 0 for none."""
        word = ctypes.c_void_p()
        result = self._library.cuCtxGetCurrent(ctypes.byref(word))
        if result:
            raise self.error_of(result, "asking for the context")
        return word.value or 0

    def set_context(self, context: int) -> None:
        """Make a context the calling thread's; 0 for none."""
        result = self._library.cuCtxSetCurrent(ctypes.c_void_p(context))
        if result:
            raise self.error_of(result, "choosing the context")

    def synchronise_context(self) -> None:
        """Wait for all work of the current context."""
        self._do("waiting for the device", self._cuda.cuCtxSynchronize())

    # -- code

    def load(self, cubin: bytes) -> Any:
        """A library of kernels for the devices of its architecture."""
        return self._do("loading the kernel", self._cuda.cuLibraryLoadData(cubin, None, None, 0, None, None, 0))

    def unload(self, library: Any) -> None:
        """Free the memory of a library, none of whose kernels runs or will run."""
        self._do("unloading a kernel", self._cuda.cuLibraryUnload(library))

    def function(self, library: Any, name: str) -> int:
        """A kernel of a library as a function of the current context."""
        kernel = self._do("finding the kernel", self._cuda.cuLibraryGetKernel(library, name.encode()))
        return int(self._do("finding the kernel", self._cuda.cuKernelGetFunction(kernel)))

    def allow_shared(self, handle: int, size: int) -> None:
        """Let launches of a function use up to `size` bytes of dynamic shared memory."""
        function = self._cuda.CUfunction(handle)
        attribute = self._cuda.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        self._do("raising the shared memory of the kernel", self._cuda.cuFuncSetAttribute(function, attribute, size))

    def tensor_map(
        self, address: int, dtype: str, dims: Sequence[int], strides: Sequence[int], box: Sequence[int], swizzle: int
    ) -> bytes:
        """A tensor map of 128 bytes: an array in boxes, the fastest dimension first.

        strides: bytes, from the second dimension on.  swizzle: bytes of a row in shared memory, 0 for none.
        """
        kinds, cuda = self._cuda.CUtensorMapDataType, self._cuda
        kind = getattr(kinds, f"CU_TENSOR_MAP_DATA_TYPE_{TENSOR_TYPES.get(dtype, 'UINT8')}")
        order = f"CU_TENSOR_MAP_SWIZZLE_{f'{swizzle}B' if swizzle else 'NONE'}"
        word, half = cuda.cuuint64_t, cuda.cuuint32_t
        made = self._do(
            "describing an array",
            cuda.cuTensorMapEncodeTiled(
                kind,
                len(dims),
                address,
                [word(extent) for extent in dims],
                [word(stride) for stride in strides] or [word(16)],  # of one dimension: not read, and not missing
                [half(extent) for extent in box],
                [half(1)] * len(dims),
                cuda.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
                getattr(cuda.CUtensorMapSwizzle, order),
                cuda.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                cuda.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
            ),
        )
        return b"".join(int(one).to_bytes(8, "little") for one in made.opaque)

    # -- memory

    def copy_to_device(self, target: int, source: int, size: int, stream: int) -> None:
        """From host memory, in the order of a stream."""
        self._do("copying to the device", self._cuda.cuMemcpyHtoDAsync(target, source, size, self.stream(stream)))

    def copy_to_host(self, target: int, source: int, size: int, stream: int) -> None:
        """Into host memory, in the order of a stream; it holds the bytes when the stream is synchronised."""
        self._do("copying from the device", self._cuda.cuMemcpyDtoHAsync(target, source, size, self.stream(stream)))

    def copy_within(self, target: int, source: int, size: int, stream: int) -> None:
        """From device memory to device memory, in the order of a stream."""
        self._do("copying on the device", self._cuda.cuMemcpyDtoDAsync(target, source, size, self.stream(stream)))

    def fill(self, target: int, byte: int, size: int, stream: int) -> None:
        """Set `size` bytes of device memory, in the order of a stream."""
        self._do("filling device memory", self._cuda.cuMemsetD8Async(target, byte, size, self.stream(stream)))

    def device_of(self, pointer: int) -> int:
        """The number of the device that an address belongs to."""
        what, query = "asking for the device of an array", self._library.cuPointerGetAttribute
        context = ctypes.c_void_p()
        result = query(ctypes.byref(context), POINTER_CONTEXT, ctypes.c_uint64(pointer))
        if result:
            raise self.error_of(result, what)
        if context.value:
            found = self._devices_of_contexts.get(context.value)
            if found is None:
                found = self._devices_of_contexts[context.value] = self._device_of_context(context.value)
            return found
        number = ctypes.c_int()  # memory of a pool has no context
        result = query(ctypes.byref(number), POINTER_DEVICE, ctypes.c_uint64(pointer))
        if result:
            raise self.error_of(result, what)
        return number.value

    def _device_of_context(self, context: int) -> int:
        before = self.current_context()
        self.set_context(context)
        try:
            return int(self._do("asking for the device of a context", self._cuda.cuCtxGetDevice()))
        finally:
            self.set_context(before)

    # -- order

    def stream(self, handle: int) -> Any:
        """The bindings' object of a stream.  0 is the default stream."""
        found = self._streams.get(handle)
        if found is None:
            if len(self._streams) > 4096:
                self._streams.clear()
            found = self._streams[handle] = self._cuda.CUstream(handle)
        return found

    def synchronise(self, stream: int) -> None:
        """Wait for the work of a stream."""
        self._do("waiting for the stream", self._cuda.cuStreamSynchronize(self.stream(stream)))

    def is_capturing(self, stream: int) -> bool:
        """Does the stream record a graph instead of running its work?  The default stream never does."""
        if not stream:
            return False
        state = ctypes.c_int()
        result = self._library.cuStreamIsCapturing(ctypes.c_void_p(stream), ctypes.byref(state))
        if result:
            raise self.error_of(result, "asking for the state of the stream")
        return state.value != 0

    def marks(self, count: int) -> Marks | None:
        """Words of the host's memory that streams write; None where the driver has no such memory or no such write."""
        memory = ctypes.c_void_p()
        try:
            write = self._library.cuStreamWriteValue32_v2
        except AttributeError:
            return None
        if self._library.cuMemHostAlloc(ctypes.byref(memory), ctypes.c_size_t(4 * count), PORTABLE | MAPPED):
            return None
        return Marks(memory.value or 0, count, write)

    def order(self, first: int, then: int) -> None:
        """What is put into stream `then` from now on waits for what stream `first` holds."""
        flags = self._cuda.CUevent_flags.CU_EVENT_DISABLE_TIMING
        event = self._do("making an event", self._cuda.cuEventCreate(flags))
        try:
            self._do("recording an event", self._cuda.cuEventRecord(event, self.stream(first)))
            self._do("waiting for an event", self._cuda.cuStreamWaitEvent(self.stream(then), event, 0))
        finally:
            self._cuda.cuEventDestroy(event)
