"""Benchmarks: what is launched and timed, what is counted, and where a time is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from runtime.stand_in_device import FACTS, DeviceMemory, StandInDevices
from runtime.test_device_calls import on

import tilelang_nb
from tilelang_nb.device import DeviceProgram
from tilelang_nb.device.counting import count
from tilelang_nb.runtime.device_wait import faults
from tilelang_nb.runtime.launch_record import recording
from tilelang_nb.runtime.roofline import limits_of, roofline
from tilelang_nb.runtime.timing import Times, bench

CELL = """
@T.prim_func
def add(A: T.Tensor((1024,), "float32"), B: T.Tensor((1024,), "float32"), C: T.Tensor((1024,), "float32")):
    with T.Kernel(4, threads=128) as b:
        for i in T.Parallel(256):
            C[b * 256 + i] = A[b * 256 + i] + B[b * 256 + i]

@T.prim_func
def triangle(A: T.Tensor((64, 64), "float32"), s: T.Tensor((64,), "float32")):
    with T.Kernel(64, threads=1) as b:
        total = T.alloc_var("float32")
        total = 0.0
        for i in range(b + 1):
            total = total + A[b, i]
        s[b] = total

@T.prim_func
def product(A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float16"), C: T.Tensor((64, 64), "float32")):
    with T.Kernel(1, threads=128):
        a = T.alloc_shared((64, 64), "float16")
        b = T.alloc_shared((64, 64), "float16")
        c = T.alloc_fragment((64, 64), "float32")
        T.clear(c)
        T.copy(A, a)
        T.copy(B, b)
        T.gemm(a, b, c)
        T.copy(c, C)

@T.prim_func
def by_data(A: T.Tensor((64,), "int32"), s: T.Tensor((1,), "float32")):
    with T.Kernel(1, threads=1):
        for i in range(A[0]):
            s[0] = s[0] + 1.0
"""

EAGER = """
@tilelang.jit
def twice(A, block: int = 32):
    N = T.const("N")
    A: T.Tensor[[N], T.float32]
    B = T.empty((N,), T.float32)
    with T.Kernel(T.ceildiv(N, block), threads=block) as bx:
        for i in T.Parallel(block):
            B[bx * block + i] = A[bx * block + i] * 2.0
    return B
"""


@pytest.fixture(scope="module")
def kernels() -> dict[str, Any]:
    c = tilelang_nb.compile_cell(CELL, target="cuda", arch="sm_90a")
    assert c.ok, c.to_text()
    return c.kernels


@pytest.fixture(autouse=True)
def no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DeviceProgram, "cubin", property(lambda self: b"machine code"))


def counted(kernel: Any) -> Any:
    return count(kernel.build().lowered.launches, {})


def test_operations_are_those_of_the_algorithm(kernels: dict[str, Any]) -> None:
    found = counted(kernels["add"])
    assert (found.operations, found.matrix_operations) == (1024, 0)
    assert found.read == {"A", "B"} and found.written == {"C"}
    found = counted(kernels["product"])
    assert found.operations + found.matrix_operations == 2 * 64**3


def test_a_loop_that_grows_with_the_block_counts_at_its_mean(kernels: dict[str, Any]) -> None:
    assert counted(kernels["triangle"]).operations == pytest.approx(64 * 65 / 2, rel=0.02)


def test_a_loop_whose_length_is_read_counts_as_unknown(kernels: dict[str, Any]) -> None:
    assert counted(kernels["by_data"]).operations is None


def test_a_benchmark_times_launches_alone_and_copies_host_arrays_once(kernels: dict[str, Any]) -> None:
    devices = StandInDevices()
    devices.clock = [float(at) for at in range(1000)]
    k = on(kernels["add"], devices)
    a = np.arange(1024, dtype=np.float32)
    c = np.zeros(1024, np.float32)
    result = bench(k, k.build(), (a, a, c), {}, repeat=5, warm_up=2, devices=devices)
    names = [entry[0] for entry in devices.driver.log]
    assert names.count("launch") == 7 and names.count("copy_to_device") == 2 and "copy_to_host" not in names
    assert result.times.milliseconds == (1.0,) * 5 and result.milliseconds == 1.0
    assert result.bytes == 3 * 4096 and result.gigabytes_per_second == pytest.approx(3 * 4096 / 1e6)
    assert result.teraflops == pytest.approx(1024 / 1e9) and "1.0000 ms" in str(result)


def test_a_benchmark_is_made_in_the_given_stream(kernels: dict[str, Any]) -> None:
    devices = StandInDevices()
    devices.clock = [float(at) for at in range(100)]
    k = on(kernels["add"], devices)
    arrays = tuple(DeviceMemory(np.zeros(1024, np.float32)) for _ in range(3))
    bench(k, k.build(), arrays, {}, repeat=2, stream=9, devices=devices)
    assert {launch.stream for launch in devices.driver.launches} == {9}


def test_a_benchmark_on_another_device_leaves_the_current_one(kernels: dict[str, Any]) -> None:
    devices = StandInDevices(count=2)
    devices.clock = [float(at) for at in range(100)]
    k = on(kernels["add"], devices)
    arrays = tuple(DeviceMemory(np.zeros(1024, np.float32)) for _ in range(3))
    devices.driver.owners = {array.pointer: 1 for array in arrays}
    made: list[int] = []
    devices.driver.work = lambda launch: made.append(devices.driver.context)
    bench(k, k.build(), arrays, {}, repeat=2, devices=devices)
    assert set(made) == {101} and devices.driver.context == 100


def test_a_baseline_is_timed_in_turn_and_gives_the_ratio(kernels: dict[str, Any]) -> None:
    devices = StandInDevices()
    devices.clock = [0.0, 1.0, 1.0, 3.0, 3.0, 4.0, 4.0, 6.0]
    k = on(kernels["add"], devices)
    order: list[str] = []
    devices.driver.work = lambda launch: order.append("kernel")
    arrays = tuple(DeviceMemory(np.zeros(1024, np.float32)) for _ in range(3))

    def by_numpy() -> None:
        order.append("baseline")

    result = bench(k, k.build(), arrays, {}, baseline=by_numpy, repeat=2, warm_up=0, devices=devices)
    assert (
        order == ["kernel", "baseline"] * 2 and result.ratio == 0.5 and "0.500 of the time of by_numpy" in str(result)
    )


def test_a_benchmark_without_a_number_of_launches_fills_its_time(kernels: dict[str, Any]) -> None:
    devices = StandInDevices()
    devices.clock = [0.5 * at for at in range(2000)]
    k = on(kernels["add"], devices)
    arrays = tuple(DeviceMemory(np.zeros(1024, np.float32)) for _ in range(3))
    assert len(bench(k, k.build(), arrays, {}, devices=devices).times.milliseconds) == 200


@pytest.mark.parametrize(
    "ask",
    [
        lambda k: k.bench(),
        lambda k: tilelang_nb.compile_cell(EAGER, target="sim").namespace["twice"].bench(np.zeros(64, np.float32)),
        lambda k: k.get_profiler().do_bench(),
        lambda k: k.get_profiler().do_bench(lambda *arrays: None),
        lambda k: tilelang_nb.profiler.do_bench(lambda: None),
    ],
)
def test_the_simulated_device_is_not_timed(ask: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_ENABLE_CUDASIM", "1")
    k = tilelang_nb.compile_cell(CELL, target="sim").kernels["add"]
    with pytest.raises(tilelang_nb.LaunchError, match="no clock") as caught:
        ask(k)
    assert caught.value.diagnostic.code == "TL302" and "counters" in caught.value.diagnostic.help


def test_without_a_device_a_benchmark_is_refused_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_ENABLE_CUDASIM", "1")
    k = tilelang_nb.compile_cell(CELL, target="cuda").kernels["add"]
    with pytest.raises(tilelang_nb.LaunchError, match="NUMBA_ENABLE_CUDASIM") as caught:
        k.bench()
    assert caught.value.diagnostic.code == "TL302"


def test_quantiles_lie_between_launches() -> None:
    times = Times((4.0, 1.0, 3.0, 2.0))
    assert (times.median, times.mean, times.least, times.most) == (2.5, 2.5, 1.0, 4.0)
    assert times.quantile(0.0) == 1.0 and times.quantile(1.0) == 4.0 and times.quantile(0.5) == 2.5
    assert Times((5.0,)).quantile(0.9) == 5.0


def test_the_roofline_is_the_slower_of_memory_and_arithmetic() -> None:
    limits = limits_of(replace(FACTS, memory_hertz=3_201_000_000, bus_bits=6144))
    assert limits.bytes == pytest.approx(4.917e12, rel=1e-3)
    assert limits.matrix_operations == pytest.approx(132 * 4096 * 1.98e9)
    assert roofline(limits, 4.917e9, 1e6, 0).bound == "memory"
    assert roofline(limits, 4.917e9, 1e6, 0).milliseconds == pytest.approx(1.0, rel=1e-3)
    assert roofline(limits, 1e6, 0.0, 2e13).bound == "matrix units"
    assert roofline(limits_of(replace(FACTS, capability=(3, 5), memory_hertz=0)), 1e6, 1e6, 1e6) is None


def test_the_calls_of_a_block_are_recorded_with_their_last_arguments() -> None:
    k = tilelang_nb.compile_cell(CELL, target="sim").kernels["add"]
    arrays = [np.zeros(1024, np.float32) for _ in range(3)]
    with recording() as launches:
        k(*arrays, stream=0)
        k(*arrays)
    k(*arrays)
    assert [kernel for kernel, _, _ in launches.calls] == [k, k] and launches.calls[0][2] == {}
    with pytest.raises(tilelang_nb.LaunchError, match="no clock"):
        list(launches.timed())


def test_a_fault_that_comes_up_while_waiting_is_given_once(kernels: dict[str, Any]) -> None:
    devices = StandInDevices()
    k = on(kernels["add"], devices)
    arrays = [DeviceMemory(np.zeros(1024, np.float32)) for _ in range(3)]
    k(*arrays)
    assert faults(devices) == []
    assert faults(devices) == [] and [e for e in devices.driver.log if e[0] == "synchronise"] == [("synchronise", 0)]
    k(*arrays, stream=4)
    devices.driver.fails["synchronise_context"] = "CUDA_ERROR_ILLEGAL_ADDRESS"
    (error,) = faults(devices)
    assert "illegal address on device 0 in kernel `add` of <cell> line 3" in error.diagnostic.message
    assert faults(devices) == []
