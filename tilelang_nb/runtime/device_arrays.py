"""What a caller hands over in the memory of a device: tensors of torch, arrays of cupy and numba, and whatever gives
its memory through `__cuda_array_interface__` or DLPack.

The libraries are not imported: an array is recognised by its type, and a type exists only where its library does.
Recognisers are looked up once for each type.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..source.wording import of_type
from . import dlpack
from .host_arrays import PLACEHOLDER, NoHostArray, describe_type, host_array, host_dtype

LEGACY_STREAM = 1  # what the array interface and DLPack call the default stream


@dataclass(frozen=True)
class Flags:
    """As NumPy's flags of an array."""

    writeable: bool
    c_contiguous: bool
    aligned: bool = True
    f_contiguous: bool = False


@dataclass(frozen=True)
class DeviceArray:
    """An array in device memory.

    shape and strides: as NumPy's, strides in bytes.  device: its number.  stream: the stream that the owner puts its
    work on, 0 for the default one, None where the memory can be used at once.  library: "torch", "cupy", "numba",
    "interface" for others with `__cuda_array_interface__`, "" for exporters.  owner: keeps the memory alive.
    """

    pointer: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype
    device: int
    stream: int | None
    library: str
    owner: Any
    read_only: bool = False

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def span(self) -> int:
        """Bytes from the first element to the end of the last; strides go forward."""
        if self.size == 0:
            return 0
        return self.itemsize + sum((extent - 1) * stride for extent, stride in zip(self.shape, self.strides))

    @property
    def flags(self) -> Flags:
        return Flags(not self.read_only, self.size == 0 or self._is_row_major(), self.pointer % self.itemsize == 0)

    def _is_row_major(self) -> bool:
        step = self.itemsize
        for extent, stride in zip(reversed(self.shape), reversed(self.strides)):
            if extent != 1 and stride != step:
                return False
            step *= extent
        return True


def row_major(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """Strides in bytes of an array without gaps."""
    strides, step = [], itemsize
    for extent in reversed(shape):
        strides.append(step)
        step *= max(extent, 1)
    return tuple(reversed(strides))


class Reader:
    """Reads the arguments of a launch on a device.  devices: asked for the device of an address."""

    def __init__(self, devices: Any):
        self.devices = devices

    def __call__(self, given: Any) -> np.ndarray | DeviceArray:
        """A device array, or a NumPy array over host memory.  NoHostArray: it is neither."""
        library = library_of(type(given))
        if library == "torch":
            return self._torch(given) if given.is_cuda else host_array(given)
        if library == "cupy":
            steps = tuple(given.strides)
            number, pointer = int(given.data.device_id), int(given.data.ptr)
            stream = int(cupy_stream_of()(number).ptr)
            return DeviceArray(pointer, tuple(given.shape), steps, given.dtype, number, stream, "cupy", given)
        if library == "numba":
            return self._numba(given)
        if isinstance(given, (np.ndarray, np.generic)) or hasattr(given, "__array_interface__"):
            return host_array(given)
        if hasattr(given, "__dlpack__") and hasattr(given, "__dlpack_device__"):
            if dlpack.on_host(given):
                return host_array(given)
            if not dlpack.on_cuda(given):
                remedy = "copy it to the host, or to a CUDA device"
                raise NoHostArray(f"{describe_type(given)} in memory of another kind of device", remedy)
            return self._exporter(given)
        if hasattr(given, "__cuda_array_interface__"):
            return self._interface(given)
        if isinstance(given, (list, tuple)):
            raise NoHostArray(
                of_type(given), f"pass `np.array({PLACEHOLDER}, dtype)`: a kernel reads and writes memory"
            )
        raise NoHostArray(
            describe_type(given),
            "pass an array: NumPy, numba, cupy, torch, or one with `__cuda_array_interface__` or `__dlpack__`",
        )

    def _torch(self, given: Any) -> DeviceArray:
        dtype = torch_dtype(given.dtype)
        if dtype is None:
            raise NoHostArray(f"a torch tensor of {given.dtype}", "pass a tensor of another type")
        if str(given.layout) != "torch.strided":
            raise NoHostArray(f"a torch tensor of layout {given.layout}", f"pass `{PLACEHOLDER}.to_dense()`")
        strides = tuple(step * dtype.itemsize for step in given.stride())
        number = given.get_device()
        stream = torch_stream(number)
        pointer, shape = given.data_ptr(), tuple(given.shape)
        # What autograd follows may be read; a kernel that wrote it would go past autograd.
        return DeviceArray(pointer, shape, strides, dtype, number, stream, "torch", given, given.requires_grad)

    def _numba(self, given: Any) -> DeviceArray:
        pointer = int(given.device_ctypes_pointer.value or 0)
        number = self._device(pointer)
        stream = int(given.stream) if given.stream else 0
        shape, strides = tuple(given.shape), tuple(given.strides)
        return DeviceArray(pointer, shape, strides, np.dtype(given.dtype), number, stream, "numba", given)

    def _interface(self, given: Any) -> DeviceArray:
        interface = given.__cuda_array_interface__
        shape = tuple(int(extent) for extent in interface["shape"])
        dtype = np.dtype(interface["typestr"])
        if interface.get("mask") is not None:
            raise NoHostArray(f"{describe_type(given)} with a mask", "pass an array without one")
        pointer, read_only = interface["data"]
        strides = interface.get("strides")
        steps = row_major(shape, dtype.itemsize) if strides is None else tuple(int(step) for step in strides)
        stream = interface.get("stream")
        if stream is not None:
            stream = 0 if stream == LEGACY_STREAM else int(stream)
        pointer = int(pointer or 0)
        number = self._device(pointer)
        return DeviceArray(pointer, shape, steps, dtype, number, stream, "interface", given, bool(read_only))

    def _exporter(self, given: Any) -> DeviceArray:
        number = int(given.__dlpack_device__()[1])
        try:
            view = dlpack.device_view(given)
        except BufferError as error:
            raise NoHostArray(f"{describe_type(given)} ({error})", f"pass `{PLACEHOLDER}.detach()`") from error
        except TypeError as error:
            raise NoHostArray(f"{describe_type(given)} of {error}", "pass an array of another type") from error
        steps = row_major(view.shape, view.dtype.itemsize) if view.strides is None else view.strides
        # The exporter was asked to make the default stream wait for its work.
        return DeviceArray(view.pointer, view.shape, steps, view.dtype, number, 0, "", view.owner, view.read_only)

    def _device(self, pointer: int) -> int:
        return self.devices.driver.device_of(pointer) if pointer else self.devices.current()


def outline(given: Any) -> DeviceArray | None:
    """Shape, strides and type of an array in device memory, without its address; None for anything else."""
    library = library_of(type(given))
    if library == "torch":
        dtype = torch_dtype(given.dtype) if given.is_cuda else None
        if dtype is None:
            return None
        shape, strides = tuple(given.shape), tuple(step * dtype.itemsize for step in given.stride())
    elif library or (hasattr(given, "__cuda_array_interface__") and not hasattr(given, "__array_interface__")):
        interface = given.__cuda_array_interface__
        dtype = np.dtype(given.dtype if library else interface["typestr"])
        shape = tuple(int(extent) for extent in interface["shape"])
        steps = interface.get("strides")
        strides = row_major(shape, dtype.itemsize) if steps is None else tuple(int(step) for step in steps)
    elif hasattr(given, "__dlpack__") and hasattr(given, "__dlpack_device__") and dlpack.on_cuda(given):
        view = dlpack.device_view(given)
        shape, dtype = view.shape, view.dtype
        strides = row_major(shape, dtype.itemsize) if view.strides is None else view.strides
    else:
        return None
    return DeviceArray(0, shape, strides, dtype, 0, None, library, given)


def library_of(kind: type) -> str:
    """Which library a type of array belongs to; "" for others."""
    found = _LIBRARIES.get(kind)
    if found is None:
        found = _LIBRARIES[kind] = _library(kind)
    return found


_LIBRARIES: dict[type, str] = {}


def _library(kind: type) -> str:
    for base in kind.__mro__:
        module = base.__module__.partition(".")[0]
        if module == "torch" and base.__name__ == "Tensor":
            return "torch"
        if module == "cupy" and base.__name__ == "ndarray":
            return "cupy"
    return "numba" if getattr(kind, "__cuda_ndarray__", False) else ""


@functools.cache
def torch_dtype(dtype: Any) -> np.dtype | None:
    """The NumPy type of a torch type; None where there is none."""
    return host_dtype(str(dtype).removeprefix("torch."))


@functools.cache
def torch_stream_of() -> Callable[[int], int]:
    """The function that gives torch's stream for a device."""
    import sys

    torch = sys.modules["torch"]
    raw = getattr(torch._C, "_cuda_getCurrentRawStream", None)  # a tenth of the time of the public way
    return raw or (lambda device: torch.cuda.current_stream(device).cuda_stream)


def torch_guard(tensors: list[Any]) -> Callable[..., bool] | None:
    """A function of as many tensors: are they like these in type, elements, sizes, strides, device and requires_grad?

    One call of C++ takes a third of the time of asking each tensor.  It may say no where yes is right (one tensor given
    twice, another mode of torch), so who hears no asks the tensors.  None where torch has no such function.
    """
    import sys

    if not tensors:
        return None
    try:
        guards = sys.modules["torch"]._C._dynamo.guards
        check: Callable[..., bool] = guards.TensorGuards(
            *tensors, dynamic_dims_sizes=None, dynamic_dims_strides=None
        ).check
        return check if isinstance(check(*tensors), bool) else None
    except Exception:  # it is no public interface
        return None


def torch_stream(device: int) -> int:
    """The stream that torch works on."""
    return torch_stream_of()(device)


@functools.cache
def cupy_stream_of() -> Callable[[int], Any]:
    """The function that gives cupy's stream for a device; `.ptr` is its handle."""
    import sys

    current: Callable[..., Any] = sys.modules["cupy"].cuda.get_current_stream
    try:
        current(0)
    except TypeError:  # an older cupy tells only that of the current device
        return lambda device: current()
    return current


def stream_handle(stream: Any) -> int:
    """The driver's handle of a stream: an int, or a stream of numba, torch, cupy or CUDA Python.

    TypeError: it is no stream.
    """
    if stream is None:
        return 0
    if isinstance(stream, int) and not isinstance(stream, bool):
        return stream
    if hasattr(stream, "__cuda_stream__"):
        protocol = stream.__cuda_stream__
        return int((protocol() if callable(protocol) else protocol)[1])
    for name in ("cuda_stream", "ptr", "handle"):
        handle = getattr(stream, name, None)
        if handle is not None:
            return int(getattr(handle, "value", handle) or 0)
    raise TypeError(f"{describe_type(stream)} is no stream")


def new_array(like: DeviceArray | None, shape: tuple[int, ...], dtype: np.dtype, devices: Any) -> Any:
    """A new device array in the kind of the caller's; numba's where the caller has none of its own."""
    import sys

    if like is not None and like.library == "torch":
        torch = sys.modules["torch"]
        return torch.empty(shape, dtype=getattr(torch, dtype.name), device=like.owner.device)
    if like is not None and like.library == "cupy":
        return sys.modules["cupy"].empty(shape, dtype)
    return devices.array(shape, dtype)
