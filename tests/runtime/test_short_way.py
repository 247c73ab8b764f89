"""Calls that are like an earlier one go past the binding, and only those."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
import pytest
from runtime.stand_in_device import DeviceMemory, StandInDevices
from runtime.test_device_calls import CELL, named, no_compiler, on, scale  # noqa: F401  (a fixture)

import tilelang_nb
from tilelang_nb.runtime import device_arrays, device_calls


class Pointer:
    def __init__(self, address: int):
        self.device_pointer = address


class NumbaArray(DeviceMemory):
    """As numba's device array: `library_of` knows it by this mark."""

    __cuda_ndarray__ = True

    def __init__(self, content: np.ndarray, offset: int = 0):
        super().__init__(content, offset=offset)
        self.strides, self.stream = content.strides, 0  # type: ignore[assignment]
        self.gpu_data = Pointer(self.pointer)


@pytest.fixture(scope="module")
def programs() -> dict[str, Any]:
    c = tilelang_nb.compile_cell(CELL, target="cuda", arch="sm_90a")
    assert c.ok, c.to_text()
    return c.kernels


@pytest.fixture
def bound(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Grows with every call that goes the long way."""
    calls: list[int] = []

    def counting(*args: Any, **kwargs: Any) -> Any:
        calls.append(1)
        return bind(*args, **kwargs)

    bind = device_calls.bind
    monkeypatch.setattr(device_calls, "bind", counting)
    return calls


def zeros(count: int) -> NumbaArray:
    return NumbaArray(np.zeros(count, np.float32))


def test_a_second_call_like_the_first_is_not_bound_and_gives_the_same(
    programs: dict[str, Any], bound: list[int]
) -> None:
    devices = StandInDevices()
    k = on(programs["scaled"], devices, scale)
    for turn in range(4):
        a, b = NumbaArray(np.arange(64, dtype=np.float32) + turn), zeros(64)
        k(a, b, 0.5 * turn)
        assert np.array_equal(b.content, a.content * 0.5 * turn)
    assert len(bound) == 1 and len(devices.driver.launches) == 4


def test_another_shape_goes_the_long_way_and_has_its_own_grid(programs: dict[str, Any], bound: list[int]) -> None:
    devices = StandInDevices()
    k = on(programs["scaled"], devices, scale)
    for count in (64, 128, 64, 128):
        k(zeros(count), zeros(count), 1.0)
    assert len(bound) == 2 and [launch.grid[0] for launch in devices.driver.launches] == [1, 2, 1, 2]


@pytest.mark.parametrize(
    "second",
    [
        lambda: (zeros(64), zeros(65), 1.0),
        lambda: (zeros(64), NumbaArray(np.zeros(64, np.float64)), 1.0),
        lambda: (zeros(64), zeros(64), "1"),
        lambda: (zeros(64), zeros(64)),
        lambda: (zeros(64), zeros(64), 1.0, 2.0),
        lambda: (zeros(64), [0.0] * 64, 1.0),
    ],
)
def test_a_call_that_does_not_fit_is_refused_after_a_good_one(programs: dict[str, Any], second: Any) -> None:
    k = on(programs["scaled"], StandInDevices(), scale)
    k(zeros(64), zeros(64), 1.0)
    with pytest.raises(tilelang_nb.LaunchError) as caught:
        k(*second())
    assert caught.value.diagnostic.code == "TL301"


def test_a_number_out_of_range_is_refused_after_a_good_one(programs: dict[str, Any]) -> None:
    devices = StandInDevices()
    k = on(programs["every_number"], devices)
    good = (zeros(1), True, -3, 5, 0.5, 1.5, 3.0)
    for _ in range(2):
        k(*good)
    with pytest.raises(tilelang_nb.LaunchError, match="`b`"):
        k(good[0], True, 200, *good[3:])
    with pytest.raises(tilelang_nb.LaunchError, match="`c`"):
        k(good[0], True, 1, -1, *good[4:])
    assert len(devices.driver.launches) == 2


def test_a_misaligned_array_goes_the_long_way(programs: dict[str, Any]) -> None:
    devices = StandInDevices()
    k = on(programs["scaled"], devices, scale)
    k(zeros(64), zeros(64), 1.0)
    a, b = NumbaArray(np.arange(64, dtype=np.float32), offset=4), zeros(64)
    k(a, b, 2.0)
    assert np.array_equal(b.content, 2 * a.content)
    assert named(k.build(), devices.driver.launches[1])["A"] % 16 == 0


def test_a_stream_is_taken_on_the_short_way_too(programs: dict[str, Any], bound: list[int]) -> None:
    devices = StandInDevices()
    k = on(programs["scaled"], devices, scale)
    k(zeros(64), zeros(64), 1.0)
    k(zeros(64), zeros(64), 1.0, stream=9)
    assert [launch.stream for launch in devices.driver.launches] == [0, 9] and len(bound) == 1


def test_returned_tensors_are_new_for_every_call(programs: dict[str, Any], bound: list[int]) -> None:
    devices = StandInDevices()
    devices.array = lambda shape, dtype: NumbaArray(np.zeros(shape, dtype))  # type: ignore[method-assign]
    k = on(programs["scaled"].compile(out_idx=[1]), devices, scale)
    a = NumbaArray(np.arange(64, dtype=np.float32))
    first, second = k(a, 2.0), k(a, 3.0)
    assert np.array_equal(first.content, 2 * a.content) and np.array_equal(second.content, 3 * a.content)
    assert len(bound) == 1


def test_a_fault_on_the_short_way_is_a_located_error(programs: dict[str, Any]) -> None:
    devices = StandInDevices()
    k = on(programs["scaled"], devices, scale)
    k(zeros(64), zeros(64), 1.0)
    devices.driver.fails["launch"] = "CUDA_ERROR_LAUNCH_FAILED"
    with pytest.raises(tilelang_nb.LaunchError, match="launch failed"):
        k(zeros(64), zeros(64), 1.0)
    devices.driver.fails.clear()
    with pytest.raises(tilelang_nb.LaunchError, match="restart"):
        k(zeros(64), zeros(64), 1.0)


class Size(tuple):
    """As torch's sizes: a tuple of its own type."""


def stand_in_torch(monkeypatch: pytest.MonkeyPatch, stream: list[int]) -> Any:
    """A module with the few names of torch that launches read; the tensors lie in the host's memory."""
    import sys
    from types import ModuleType, SimpleNamespace

    torch = ModuleType("torch")

    class Dtype:
        def __init__(self, name: str):
            self.name = name

        def __str__(self) -> str:
            return f"torch.{self.name}"

    dtypes = {np.dtype(name): Dtype(name) for name in ("float32", "float64")}

    class Tensor:
        __module__ = "torch"

        def __init__(self, content: np.ndarray, *, is_cuda: bool = True, requires_grad: bool = False):
            self.memory = DeviceMemory(np.ascontiguousarray(content))
            self.shape, self.dtype = Size(content.shape), dtypes[content.dtype]
            self.is_cuda, self.requires_grad, self.layout = is_cuda, requires_grad, "torch.strided"
            self.steps = tuple(step // content.itemsize for step in self.memory.content.strides)

        def stride(self) -> tuple[int, ...]:
            return self.steps

        def is_contiguous(self) -> bool:
            return self.steps == tuple(step // 4 for step in self.memory.content.strides)

        def get_device(self) -> int:
            return 0 if self.is_cuda else -1

        def data_ptr(self) -> int:
            return self.memory.pointer

    torch.Tensor = Tensor  # type: ignore[attr-defined]
    torch._C = SimpleNamespace(_cuda_getCurrentRawStream=lambda device: stream[device])  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch", torch)
    device_arrays.torch_stream_of.cache_clear()
    return torch


def test_tensors_of_torch_go_the_short_way_on_its_current_stream(
    programs: dict[str, Any], bound: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = [11]
    torch = stand_in_torch(monkeypatch, stream)
    devices = StandInDevices()
    k = on(programs["scaled"], devices, scale)
    for turn in range(3):
        stream[0] = 11 + turn
        a, b = torch.Tensor(np.arange(64, dtype=np.float32)), torch.Tensor(np.zeros(64, np.float32))
        k(a, b, 2.0 + turn)
        assert np.array_equal(b.memory.content, a.memory.content * (2 + turn))
    assert len(bound) == 1 and [launch.stream for launch in devices.driver.launches] == [11, 12, 13]
    device_arrays.torch_stream_of.cache_clear()


@pytest.mark.parametrize(
    "change",
    [
        lambda torch, a, b: (torch.Tensor(np.zeros(65, np.float32)), b, 1.0),
        lambda torch, a, b: (torch.Tensor(np.zeros(64, np.float64)), b, 1.0),
        lambda torch, a, b: (a, torch.Tensor(np.zeros(64, np.float32), requires_grad=True), 1.0),
        lambda torch, a, b: (a, b, 1),
        lambda torch, a, b: (a, b, True),
        lambda torch, a, b: (a, b),
        lambda torch, a, b: (a, 1.0, b),
        lambda torch, a, b: (a, None, 1.0),
    ],
)
def test_what_is_not_like_the_earlier_call_is_bound_anew(
    programs: dict[str, Any], bound: list[int], monkeypatch: pytest.MonkeyPatch, change: Any
) -> None:
    torch = stand_in_torch(monkeypatch, [0])
    k = on(programs["scaled"], StandInDevices(), scale)
    a, b = torch.Tensor(np.zeros(64, np.float32)), torch.Tensor(np.zeros(64, np.float32))
    k(a, b, 1.0)
    with contextlib.suppress(tilelang_nb.LaunchError):
        k(*change(torch, a, b))
    assert len(bound) == 2
    gaps = torch.Tensor(np.zeros(64, np.float32))
    gaps.steps = (2,)
    with pytest.raises(tilelang_nb.LaunchError, match="row-major"):
        k(gaps, b, 1.0)
    device_arrays.torch_stream_of.cache_clear()


@pytest.mark.parametrize("says", [True, False, None])
def test_the_guard_of_torch_is_believed_where_it_says_that_tensors_are_alike(
    programs: dict[str, Any], bound: list[int], monkeypatch: pytest.MonkeyPatch, says: bool | None
) -> None:
    from types import SimpleNamespace

    torch = stand_in_torch(monkeypatch, [0])
    asked: list[tuple[Any, ...]] = []

    class TensorGuards:
        def __init__(self, *tensors: Any, dynamic_dims_sizes: None, dynamic_dims_strides: None):
            if says is None:
                raise TypeError("another interface")
            self.shapes = [tensor.shape for tensor in tensors]

        def check(self, *tensors: Any) -> bool:
            asked.append(tensors)
            return bool(says) and [tensor.shape for tensor in tensors] == self.shapes

    torch._C._dynamo = SimpleNamespace(guards=SimpleNamespace(TensorGuards=TensorGuards))
    k = on(programs["scaled"], StandInDevices(), scale)
    a, b = torch.Tensor(np.arange(64, dtype=np.float32)), torch.Tensor(np.zeros(64, np.float32))
    for factor in (1.0, 2.0, 3.0):
        k(a, b, factor)
        assert np.array_equal(b.memory.content, a.memory.content * factor)
    assert len(bound) == 1 and bool(asked) == (says is not None)
    with pytest.raises(tilelang_nb.LaunchError, match="shape"):
        k(a, torch.Tensor(np.zeros(65, np.float32)), 1.0)
    with pytest.raises(tilelang_nb.LaunchError):
        k(a, b, "1")
    device_arrays.torch_stream_of.cache_clear()


def test_a_tensor_that_does_not_answer_goes_the_long_way(
    programs: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    torch = stand_in_torch(monkeypatch, [0])
    k = on(programs["scaled"], StandInDevices(), scale)
    a, b, sparse = (torch.Tensor(np.zeros(64, np.float32)) for _ in range(3))
    k(a, b, 1.0)

    def refusing() -> bool:
        raise RuntimeError("tensors of this layout do not have is_contiguous")

    sparse.layout, sparse.is_contiguous = "torch.sparse_coo", refusing
    with pytest.raises(tilelang_nb.LaunchError, match="layout"):
        k(sparse, b, 1.0)
    device_arrays.torch_stream_of.cache_clear()


def test_arrays_of_two_devices_go_the_short_way_each_to_its_device(programs: dict[str, Any], bound: list[int]) -> None:
    devices = StandInDevices(count=2)
    k = on(programs["scaled"], devices, scale)
    pairs = [(zeros(64), zeros(64)) for _ in range(2)]
    devices.driver.owners = {array.pointer: number for number, pair in enumerate(pairs) for array in pair}
    made: list[int] = []
    devices.driver.work = lambda launch: made.append(devices.driver.context)
    for _ in range(3):
        for a, b in pairs:
            k(a, b, 1.0)
    assert made == [100, 101] * 3 and len(bound) == 2
    with pytest.raises(tilelang_nb.LaunchError, match="memory of device 1"):
        k(pairs[0][0], pairs[1][1], 1.0)


def test_a_stream_that_records_a_graph_goes_the_long_way(programs: dict[str, Any], bound: list[int]) -> None:
    devices = StandInDevices()
    k = on(programs["scaled"], devices, scale)
    devices.driver.recording = {7}
    for stream in (5, 7, 7, 5):
        k(zeros(64), zeros(64), 1.0, stream=stream)
    assert [launch.stream for launch in devices.driver.launches] == [5, 7, 7, 5]


def test_arrays_of_any_library_with_the_interface_go_the_short_way(programs: dict[str, Any], bound: list[int]) -> None:
    devices = StandInDevices()
    k = on(programs["scaled"], devices, scale)
    for turn in range(3):
        a, b = DeviceMemory(np.arange(64, dtype=np.float32) + turn), DeviceMemory(np.zeros(64, np.float32))
        k(a, b, 2.0)
        assert np.array_equal(b.content, 2 * a.content)
    assert len(bound) == 1
    k(a, DeviceMemory(np.zeros(64, np.float32), stream=5), 1.0)  # has to be ordered
    with pytest.raises(tilelang_nb.LaunchError, match="writable"):
        k(a, DeviceMemory(np.zeros(64, np.float32), read_only=True), 1.0)
    with pytest.raises(tilelang_nb.LaunchError, match="shape"):
        k(a, DeviceMemory(np.zeros(65, np.float32)), 1.0)
    assert len(bound) == 4 and devices.driver.launches[-1].stream == 5
