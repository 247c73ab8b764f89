"""What a caller hands over as an array, seen as a NumPy array of the same memory; and results in the caller's own kind.

Accepted: NumPy arrays and scalars, objects with `__array_interface__` (numba's simulated device arrays among them)
and DLPack exporters in host memory (torch, jax, cupy pinned arrays).
"""

from __future__ import annotations

import sys
from typing import Any

import ml_dtypes
import numpy as np

from ..source.wording import of_type, with_article
from . import dlpack

PLACEHOLDER = "<argument>"  # the name of the argument in a remedy; who binds the argument knows it


class NoHostArray(Exception):
    """The object cannot be read as an array in host memory.

    given: what it is.  remedy: what to pass instead, with PLACEHOLDER for the argument.
    """

    def __init__(self, given: str, remedy: str):
        super().__init__(given)
        self.given, self.remedy = given, remedy


def host_dtype(name: str) -> np.dtype | None:
    """The NumPy type of a tensor's dtype name; None for a type that arrays cannot have."""
    if name == "tfloat32":  # float32 in memory, rounded by the instructions that read it
        name = "float32"
    kind = getattr(ml_dtypes, name, None)
    try:
        return np.dtype(name if kind is None else kind)
    except TypeError:
        return None


def host_array(given: Any) -> np.ndarray:
    """A NumPy array over the memory of `given`, never a copy.  NoHostArray where that cannot be."""
    if isinstance(given, np.ma.MaskedArray):
        raise NoHostArray("a masked array", f"pass `{PLACEHOLDER}.filled(value)`: a kernel knows no masked elements")
    if isinstance(given, np.ndarray):
        return np.asarray(given)  # a subclass may index in its own way: every part of an np.matrix is a matrix
    if isinstance(given, np.generic):
        array = np.asarray(given)
        array.flags.writeable = False  # a scalar has no memory of its own: a store into it would be lost
        return array
    if hasattr(given, "__array_interface__"):
        return np.asarray(given)
    if hasattr(given, "__dlpack__") and hasattr(given, "__dlpack_device__"):
        return _from_exporter(given)
    if hasattr(given, "__cuda_array_interface__"):
        raise NoHostArray(
            f"{describe_type(given)} in device memory", "the simulated device reads host arrays: copy it to the host"
        )
    if isinstance(given, (list, tuple)):
        raise NoHostArray(of_type(given), f"pass `np.array({PLACEHOLDER}, dtype)`: a kernel reads and writes memory")
    if _has_buffer(given):
        raise NoHostArray(describe_type(given), f"pass `np.asarray({PLACEHOLDER})`, which has the same memory")
    raise NoHostArray(
        describe_type(given), "pass a NumPy array, or an object with `__array_interface__` or `__dlpack__`"
    )


def follows_autograd(given: Any) -> bool:
    """Is it a tensor of torch, or the like, that requires grad?"""
    return getattr(given, "requires_grad", False) is True and callable(getattr(given, "detach", None))


def _has_buffer(given: Any) -> bool:
    """Does it have memory of numbers, as `memoryview`, `array.array` and arrays of ctypes?"""
    try:
        with memoryview(given) as memory:
            return memory.ndim > 0 and not isinstance(given, (bytes, bytearray))
    except TypeError:
        return False


def _from_exporter(given: Any) -> np.ndarray:
    if not dlpack.on_host(given):
        raise NoHostArray(
            f"{describe_type(given)} in device memory",
            f"the simulated device reads host arrays: pass `{PLACEHOLDER}.cpu()`",
        )
    if follows_autograd(given):
        array = _from_exporter(given.detach()).view()
        array.flags.writeable = False  # what autograd follows may be read, and a kernel that wrote it would go past it
        return array
    try:
        return dlpack.from_dlpack(given)
    except BufferError as error:
        raise NoHostArray(
            f"{describe_type(given)} ({error})", f"pass `{PLACEHOLDER}.detach()`, or a NumPy array"
        ) from error
    except TypeError as error:
        raise NoHostArray(f"{describe_type(given)} of {error}", "pass an array of another type") from error


def describe_type(given: Any) -> str:
    """`a torch.Tensor`, `an int`."""
    kind = type(given)
    library = kind.__module__.partition(".")[0]
    return of_type(given) if library in ("builtins", "tilelang_nb") else with_article(f"{library}.{kind.__qualname__}")


def as_callers_kind(result: Any, arguments: tuple[Any, ...]) -> Any:
    """A returned NumPy array as the kind of array the caller works with: a torch tensor where torch tensors were
    passed.  Other arrays are of that kind already.
    """
    torch = sys.modules.get("torch")
    if (
        torch is None
        or not isinstance(result, np.ndarray)
        or not any(isinstance(argument, torch.Tensor) for argument in arguments)
    ):
        return result
    name = result.dtype.name
    if result.dtype.kind != "V" and not hasattr(ml_dtypes, name):
        return torch.from_numpy(result)
    return torch.from_numpy(result.view(f"uint{8 * result.itemsize}").view(f"int{8 * result.itemsize}")).view(
        getattr(torch, name)
    )
