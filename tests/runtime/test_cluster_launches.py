"""Launches in clusters: what the driver is told, and what is refused before it is asked."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
from runtime.stand_in_device import DeviceMemory, StandInDevices

import tilelang_nb
from tilelang_nb.device import DeviceProgram
from tilelang_nb.runtime.device_calls import DeviceCalls
from tilelang_nb.runtime.driver import CLUSTER_DIMENSION, LaunchAttribute, launch_config

CELL = """
n = T.dynamic("n")

@T.prim_func
def k(A: T.Tensor((n,), "float32")):
    with T.ClusterKernel(T.ceildiv(n, 64), 2, threads=64, cluster_dims=(2, 2)) as (bx, by):
        for i in T.Parallel(64):
            if bx * 64 + i < n and by == 0:
                A[bx * 64 + i] = 1
"""


@pytest.fixture(autouse=True)
def no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DeviceProgram, "cubin", property(lambda self: b"machine code"))


def on(devices: StandInDevices) -> Any:
    cell = tilelang_nb.compile_cell(CELL, target="cuda", arch="sm_90a")
    assert cell.ok, cell.to_text()
    kernel = cell.kernels["k"]
    build = kernel.build()
    (launch,) = build.device.launches
    devices.driver.parameters[launch.name] = len(launch.parameters)
    kernel._calls = DeviceCalls(kernel, build, devices)
    return kernel


def test_a_configuration_has_the_attribute_of_its_clusters() -> None:
    assert launch_config((8, 4, 1, 64, 1, 1, 0)).attribute_count == 0
    config = launch_config((8, 4, 1, 64, 1, 1, 0), 5, (2, 4, 1))
    attribute = LaunchAttribute.from_address(config.attributes)
    assert (config.attribute_count, attribute.number, tuple(attribute.value[:3])) == (1, CLUSTER_DIMENSION, (2, 4, 1))
    assert (ctypes.sizeof(LaunchAttribute), LaunchAttribute.value.offset) == (72, 8)


def test_launches_tell_the_driver_of_their_clusters() -> None:
    devices = StandInDevices()
    kernel = on(devices)
    for _ in range(3):  # the later ones on the short way
        kernel(DeviceMemory(np.zeros(200, np.float32)))
    assert [(one.grid, one.cluster) for one in devices.driver.launches] == [((4, 2, 1), (2, 2, 1))] * 3


def test_a_grid_that_is_not_made_of_whole_clusters_is_refused_before_the_launch() -> None:
    devices = StandInDevices()
    kernel = on(devices)
    with pytest.raises(Exception, match="3 blocks along x, which are no whole clusters of 2") as refused:
        kernel(DeviceMemory(np.zeros(150, np.float32)))
    assert "TL208" in str(refused.value) and not devices.driver.launches
