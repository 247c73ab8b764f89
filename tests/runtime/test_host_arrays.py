"""Memory of others: DLPack exporters, `__array_interface__`, numba's simulated device, and what has no host memory."""

from __future__ import annotations

import ctypes
import gc
import weakref
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilelang_nb
from tilelang_nb.runtime import dlpack
from tilelang_nb.runtime.host_arrays import NoHostArray, host_array


class Exporter:
    """A DLPack exporter over a NumPy array; with another type code it is as a torch tensor of bfloat16."""

    def __init__(self, array: np.ndarray, code: int | None = None, device: int = 1, versioned: bool = False):
        self.array, self.code, self.device, self.versioned = array, code, device, versioned

    def __dlpack_device__(self) -> tuple[int, int]:
        return (self.device, 0)

    def __dlpack__(self, **options: Any) -> Any:
        if options and not self.versioned:
            raise TypeError("this exporter is older than DLPack 1.0")
        capsule = self.array.__dlpack__(**options)
        if self.code is not None:
            _, managed = dlpack._capsule(_Given(capsule))
            managed.tensor.code = self.code
        return capsule


class _Given:
    def __init__(self, capsule: Any):
        self.capsule = capsule

    def __dlpack__(self, **_: Any) -> Any:
        return self.capsule


@pytest.mark.parametrize("versioned", [False, True])
@pytest.mark.parametrize(
    ("raw", "code", "dtype"),
    [
        (np.int16, 4, ml_dtypes.bfloat16),
        (np.uint8, 10, ml_dtypes.float8_e4m3fn),
        (np.uint8, 12, ml_dtypes.float8_e5m2),
        (np.float32, None, np.float32),
        (np.int64, None, np.int64),
        (np.bool_, None, np.bool_),
    ],
)
def test_a_dlpack_exporter_is_seen_in_place_with_its_type(
    raw: Any, code: int | None, dtype: Any, versioned: bool
) -> None:
    memory = np.zeros((3, 4), raw)
    view = host_array(Exporter(memory, code, versioned=versioned))
    assert view.dtype == np.dtype(dtype) and view.shape == (3, 4) and view.flags.writeable
    view[1, 2] = 1
    assert memory.view(np.uint8).any() and view.ctypes.data == memory.ctypes.data


def test_strides_and_offsets_of_an_exporter_are_kept() -> None:
    memory = np.arange(24, dtype=np.int32).reshape(4, 6)
    view = host_array(Exporter(memory[1:, ::-2]))
    assert np.array_equal(view, memory[1:, ::-2]) and view.strides == memory[1:, ::-2].strides


def test_an_exporter_lives_as_long_as_the_view_and_no_longer() -> None:
    class Watched(np.ndarray):
        pass

    memory = np.zeros(6, np.int16).view(Watched)
    alive = weakref.ref(memory)
    view = host_array(Exporter(memory, 4))
    del memory
    gc.collect()
    assert alive() is not None and view[0] == 0
    del view
    gc.collect()
    assert alive() is None


def test_a_read_only_exporter_gives_a_read_only_view() -> None:
    memory = np.zeros(6, np.float32)
    memory.flags.writeable = False
    assert not host_array(Exporter(memory, versioned=True)).flags.writeable


def test_an_empty_exporter_gives_an_empty_array() -> None:
    assert host_array(Exporter(np.zeros((0, 3), np.int16), 4)).shape == (0, 3)


def test_device_memory_is_refused_on_the_simulated_device() -> None:
    with pytest.raises(NoHostArray, match="device memory"):
        host_array(Exporter(np.zeros(3, np.float32), device=2))

    class OnTheGpu:
        __cuda_array_interface__: dict[str, Any] = {}

    with pytest.raises(NoHostArray, match="device memory"):
        host_array(OnTheGpu())


def test_an_exporter_that_refuses_is_quoted() -> None:
    class NeedsGradient(Exporter):
        def __dlpack__(self, **_: Any) -> Any:
            raise BufferError("can't export tensors that require gradient")

    with pytest.raises(NoHostArray, match="require gradient"):
        host_array(NeedsGradient(np.zeros(3, np.float32)))


def test_types_without_a_numpy_form_are_refused() -> None:
    with pytest.raises(NoHostArray, match="type code 5"):
        host_array(Exporter(np.zeros(3, np.int64), code=5))


def test_an_object_with_the_array_interface_is_seen_in_place() -> None:
    memory = (ctypes.c_float * 6)()

    class Foreign:
        __array_interface__ = {
            "data": (ctypes.addressof(memory), False),
            "shape": (6,),
            "typestr": "<f4",
            "version": 3,
        }

    host_array(Foreign())[2] = 5
    assert memory[2] == 5


class Followed(Exporter):
    """As a tensor of torch that requires grad."""

    requires_grad = True

    def __dlpack__(self, **options: Any) -> Any:
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")

    def detach(self) -> Exporter:
        return Exporter(self.array)


def test_what_autograd_follows_is_read_and_not_written() -> None:
    compiled = tilelang_nb.compile_cell(
        """
@T.prim_func
def k(A: T.Tensor((4,), "float32"), B: T.Tensor((4,), "float32")):
    with T.Kernel(1, threads=4):
        for i in T.Parallel(4):
            B[i] = A[i] * 2
""",
        target="sim",
    )
    a, b = np.arange(4, dtype=np.float32), np.zeros(4, np.float32)
    compiled.kernels["k"](Followed(a), b)
    assert b.tolist() == [0, 2, 4, 6]
    with pytest.raises(tilelang_nb.LaunchError) as caught:
        compiled.kernels["k"](a, Followed(b))
    assert "one that requires grad" in str(caught.value) and "detach()`" in caught.value.diagnostic.help
    assert not host_array(Followed(a)).flags.writeable
