"""Memory of any DLPack exporter: of the host as a NumPy array, with the types that NumPy's own reader refuses
(bfloat16, float8), of a device as an address.

`numpy.from_dlpack` knows no bfloat16, so a torch CPU tensor of that type would have to go through torch.  The
structure is small and stable (DLPack 1.x), so it is read here.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

CPU, CUDA, CUDA_HOST, CUDA_MANAGED = 1, 2, 3, 13
READ_ONLY = 1

# (type code, bits) of DLPack -> NumPy type
TYPES: dict[tuple[int, int], Any] = {
    **{(0, bits): np.dtype(f"int{bits}") for bits in (8, 16, 32, 64)},
    **{(1, bits): np.dtype(f"uint{bits}") for bits in (8, 16, 32, 64)},
    **{(2, bits): np.dtype(f"float{bits}") for bits in (16, 32, 64)},
    (4, 16): np.dtype(ml_dtypes.bfloat16),
    (6, 8): np.dtype(np.bool_),
    (8, 8): np.dtype(ml_dtypes.float8_e4m3),
    (9, 8): np.dtype(ml_dtypes.float8_e4m3b11fnuz),
    (10, 8): np.dtype(ml_dtypes.float8_e4m3fn),
    (11, 8): np.dtype(ml_dtypes.float8_e4m3fnuz),
    (12, 8): np.dtype(ml_dtypes.float8_e5m2),
    (13, 8): np.dtype(ml_dtypes.float8_e5m2fnuz),
    (14, 8): np.dtype(ml_dtypes.float8_e8m0fnu),
}


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class _Managed(ctypes.Structure):
    _fields_ = [("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class _Versioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    ]


class _Memory:
    """Keeps the exporter's capsule alive as long as an array made of it; its death frees the tensor."""

    def __init__(self, capsule: Any, interface: dict[str, Any]):
        self.capsule, self.__array_interface__ = capsule, interface


def on_host(exporter: Any) -> bool:
    """Is its memory readable by the host?"""
    return int(exporter.__dlpack_device__()[0]) in (CPU, CUDA_HOST)


def on_cuda(exporter: Any) -> bool:
    """Is its memory that of a CUDA device?"""
    return int(exporter.__dlpack_device__()[0]) in (CUDA, CUDA_MANAGED)


def from_dlpack(exporter: Any) -> np.ndarray:
    """A NumPy view of the exporter's memory.

    BufferError: the exporter does not give its memory (the text says why).  TypeError: a type that NumPy and
    ml_dtypes lack.
    """
    capsule, managed = _capsule(exporter)
    tensor = managed.tensor
    dtype = TYPES.get((tensor.code, tensor.bits))
    if dtype is None or tensor.lanes != 1:
        raise TypeError(f"DLPack type code {tensor.code} of {tensor.bits} bits and {tensor.lanes} lanes")
    shape = tuple(tensor.shape[axis] for axis in range(tensor.ndim))
    if 0 in shape:
        return np.empty(shape, dtype)
    strides = None
    if tensor.strides:
        strides = tuple(tensor.strides[axis] * dtype.itemsize for axis in range(tensor.ndim))
    writable = not (isinstance(managed, _Versioned) and managed.flags & READ_ONLY)
    raw = np.dtype(f"V{dtype.itemsize}")
    interface = {
        "data": ((tensor.data or 0) + tensor.byte_offset, not writable),
        "shape": shape,
        "strides": strides,
        "typestr": raw.str,
        "version": 3,
    }
    return np.asarray(_Memory(capsule, interface)).view(dtype)


@dataclass(frozen=True)
class DeviceView:
    """Memory of a device as an exporter gives it.  strides: in bytes; None for row-major.  owner: keeps it alive."""

    pointer: int
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    dtype: np.dtype
    read_only: bool
    owner: Any


def device_view(exporter: Any) -> DeviceView:
    """The exporter's device memory, in order with its work on the default stream.  Errors as `from_dlpack`."""
    capsule, managed = _capsule(exporter, stream=1)
    tensor = managed.tensor
    dtype = TYPES.get((tensor.code, tensor.bits))
    if dtype is None or tensor.lanes != 1:
        raise TypeError(f"DLPack type code {tensor.code} of {tensor.bits} bits and {tensor.lanes} lanes")
    shape = tuple(tensor.shape[axis] for axis in range(tensor.ndim))
    strides = None
    if tensor.strides:
        strides = tuple(tensor.strides[axis] * dtype.itemsize for axis in range(tensor.ndim))
    read_only = bool(isinstance(managed, _Versioned) and managed.flags & READ_ONLY)
    pointer = (tensor.data or 0) + tensor.byte_offset
    return DeviceView(pointer, shape, strides, dtype, read_only, (capsule, exporter))


def _capsule(exporter: Any, **more: Any) -> tuple[Any, Any]:
    try:
        capsule = exporter.__dlpack__(max_version=(1, 1), **more)
    except TypeError:  # an exporter older than DLPack 1.0
        capsule = exporter.__dlpack__(**more)
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    valid = ctypes.pythonapi.PyCapsule_IsValid
    valid.restype, valid.argtypes = ctypes.c_int, [ctypes.py_object, ctypes.c_char_p]
    for name, structure in ((b"dltensor_versioned", _Versioned), (b"dltensor", _Managed)):
        if valid(capsule, name):
            return capsule, ctypes.cast(get(capsule, name), ctypes.POINTER(structure)).contents
    raise BufferError("its DLPack capsule was used before")
