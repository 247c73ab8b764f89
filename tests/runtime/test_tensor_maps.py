"""Tensor maps of launches: what is encoded, how often, and where it stands among the parameters."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from lowering.hopper import ROLES
from runtime.stand_in_device import DeviceMemory, StandInDevices

import tilelang_nb
from tilelang_nb.device import DeviceProgram
from tilelang_nb.runtime.device_calls import DeviceCalls

CELL = """
m = T.dynamic("m")

@T.prim_func
def k(A: T.Tensor((m, 128), "float16"), B: T.Tensor((128, 256), "float16"), C: T.Tensor((m, 256), "float32")):
    with T.Kernel(T.ceildiv(m, 128), threads=256) as by:
        A_s = T.alloc_shared((128, 64), "float16")
        B_s = T.alloc_shared((64, 256), "float16")
        C_l = T.alloc_fragment((128, 256), "float32")
        T.clear(C_l)
        for ko in T.Pipelined(2, num_stages=2):
            T.copy(A[by * 128, ko * 64], A_s)
            T.copy(B[ko * 64, 0], B_s)
            T.gemm(A_s, B_s, C_l)
        T.copy(C_l, C[by * 128, 0])
"""


@pytest.fixture(autouse=True)
def no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DeviceProgram, "cubin", property(lambda self: b"machine code"))


def on(devices: StandInDevices) -> Any:
    cell = tilelang_nb.compile_cell(CELL, target="cuda", arch="sm_90a")
    assert cell.ok, cell.to_text()
    kernel = cell.kernels["k"].compile(options=ROLES)
    build = kernel.build()
    (launch,) = build.device.launches
    devices.driver.parameters[launch.name] = len(launch.parameters)
    kernel._calls = DeviceCalls(kernel, build, devices)
    return kernel


def arrays(m: int) -> tuple[DeviceMemory, DeviceMemory, DeviceMemory]:
    shapes = ((m, 128), np.float16), ((128, 256), np.float16), ((m, 256), np.float32)
    a, b, c = (DeviceMemory(np.zeros(shape, dtype)) for shape, dtype in shapes)
    return a, b, c


def encoded(devices: StandInDevices) -> list[tuple[int, Any]]:
    return [entry[1:] for entry in devices.driver.log if entry[0] == "tensor_map"]


def address(array: DeviceMemory) -> int:
    return int(array.__cuda_array_interface__["data"][0])


def maps_of(devices: StandInDevices, kernel: Any) -> list[int]:
    """The first words of the maps of the last launch."""
    (launch,) = kernel.build().device.launches
    slots = devices.driver.launches[-1].slots
    kinds = [parameter.kind for parameter in launch.parameters]
    return [int.from_bytes(slot, "little") for kind, slot in zip(kinds, slots) if kind == "tensor map"]


def test_a_map_says_extents_strides_box_and_swizzle_of_its_array() -> None:
    devices = StandInDevices()
    kernel = on(devices)
    a, b, c = arrays(300)
    kernel(a, b, c)
    assert dict(encoded(devices)) == {
        address(a): ("float16", (128, 300), (256,), (64, 128), 128),
        address(b): ("float16", (256, 128), (512,), (64, 64), 128),
        address(c): ("float32", (256, 300), (1024,), (32, 64), 128),
    }
    assert sorted(maps_of(devices, kernel)) == sorted([address(a), address(b), address(c)])


def test_a_map_is_encoded_once_for_an_address_and_a_shape() -> None:
    devices = StandInDevices()
    kernel = on(devices)
    one, other = arrays(128), arrays(128)
    for given in (one, one, other, one, other):
        kernel(*given)
        assert sorted(maps_of(devices, kernel)) == sorted(map(address, given))
    assert len(encoded(devices)) == 6
    larger = arrays(256)
    kernel(*larger)
    assert len(encoded(devices)) == 9


def test_an_array_without_elements_has_no_map() -> None:
    devices = StandInDevices()
    kernel = on(devices)
    a, b, c = arrays(0)
    kernel(a, b, c)
    assert [found for found, _ in encoded(devices)] == [address(b)]
