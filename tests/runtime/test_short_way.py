"""Calls that are like an earlier one go past the binding, and only those."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from runtime.stand_in_device import DeviceMemory, StandInDevices
from runtime.test_device_calls import CELL, named, no_compiler, on, scale  # noqa: F401  (a fixture)

import tilelang_nb
from tilelang_nb.runtime import device_calls


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
