"""The calls of the CUDA driver that launches need, over `cuda.bindings`: libraries, launches, copies, events.

Devices, contexts, memory and streams are numba's (`numba_device`); what numba does not give, or gives too slowly for
the path of every launch, is here.  Handles are the objects of the bindings, addresses and sizes are ints.
"""

from __future__ import annotations

from typing import Any

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


class Driver:
    """The driver of this process.  Every method raises DriverError where the driver refuses.

    raw_launch: the driver's own launch for the path of every call, `(function, grid x, y, z, block x, y, z, bytes of
    dynamic shared memory, stream, address of the array of parameter addresses, 0) -> (result,)`.
    """

    def __init__(self) -> None:
        from cuda.bindings import driver

        self._cuda = driver
        self.raw_launch = driver.cuLaunchKernel
        self._streams: dict[int, Any] = {}

    def _do(self, what: str, returned: tuple[Any, ...]) -> Any:
        result, *values = returned
        if int(result) != 0:
            raise DriverError(result.name, what)
        return values[0] if len(values) == 1 else values or None

    def error_of(self, result: Any, what: str) -> DriverError:
        """The exception of a result that is not 0."""
        return DriverError(result.name, what)

    # -- contexts

    def retain_context(self, device: int) -> Any:
        """The primary context of a device: the one that numba and the frameworks use."""
        return self._do("opening the device", self._cuda.cuDevicePrimaryCtxRetain(device))

    def current_context(self) -> int:
        """The context of the calling thread; 0 for none."""
        return int(self._do("asking for the context", self._cuda.cuCtxGetCurrent()) or 0)

    def set_context(self, context: Any) -> None:
        """Make a context the calling thread's."""
        self._do("choosing the context", self._cuda.cuCtxSetCurrent(context))

    def synchronise_context(self) -> None:
        """Wait for all work of the current context."""
        self._do("waiting for the device", self._cuda.cuCtxSynchronize())

    # -- code

    def load(self, cubin: bytes) -> Any:
        """A library of kernels for the devices of its architecture."""
        return self._do("loading the kernel", self._cuda.cuLibraryLoadData(cubin, None, None, 0, None, None, 0))

    def function(self, library: Any, name: str) -> Any:
        """A kernel of a library as a function of the current context."""
        kernel = self._do("finding the kernel", self._cuda.cuLibraryGetKernel(library, name.encode()))
        return self._do("finding the kernel", self._cuda.cuKernelGetFunction(kernel))

    def allow_shared(self, function: Any, size: int) -> None:
        """Let launches of a function use up to `size` bytes of dynamic shared memory."""
        attribute = self._cuda.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        self._do("raising the shared memory of the kernel", self._cuda.cuFuncSetAttribute(function, attribute, size))

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
        attribute = self._cuda.CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
        return int(self._do("asking for the device of an array", self._cuda.cuPointerGetAttribute(attribute, pointer)))

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
        """Does the stream record a graph instead of running its work?"""
        status = self._do("asking for the state of the stream", self._cuda.cuStreamIsCapturing(self.stream(stream)))
        return int(status) != 0

    def order(self, first: int, then: int) -> None:
        """What is put into stream `then` from now on waits for what stream `first` holds."""
        flags = self._cuda.CUevent_flags.CU_EVENT_DISABLE_TIMING
        event = self._do("making an event", self._cuda.cuEventCreate(flags))
        try:
            self._do("recording an event", self._cuda.cuEventRecord(event, self.stream(first)))
            self._do("waiting for an event", self._cuda.cuStreamWaitEvent(self.stream(then), event, 0))
        finally:
            self._cuda.cuEventDestroy(event)
