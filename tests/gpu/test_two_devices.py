"""Launches on the second of two devices, and on both: memory, code, streams, times and faults of each."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest

import tilelang_nb
from tilelang_nb.runtime import device_launch, numba_device

CELL = """
n = T.dynamic("n")

@T.prim_func
def add_one(A: T.Tensor((n,), "float32")):
    with T.Kernel(T.ceildiv(n, 256), threads=256) as b:
        for i in T.Parallel(256):
            A[b * 256 + i] = A[b * 256 + i] + 1

@T.prim_func
def total(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32"), C: T.Tensor((n,), "float32")):
    with T.Kernel(T.ceildiv(n, 256), threads=256) as b:
        for i in T.Parallel(256):
            C[b * 256 + i] = A[b * 256 + i] + B[b * 256 + i]

@T.prim_func
def through_workspace(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
    W = T.alloc_global((64,), "float32")
    with T.Kernel(2, threads=32) as b:
        for i in T.Parallel(32):
            W[b * 32 + i] = A[b * 32 + i] * 2
    with T.Kernel(2, threads=32) as b:
        for i in T.Parallel(32):
            B[b * 32 + i] = W[63 - (b * 32 + i)]

@T.prim_func
def told(A: T.Tensor((4,), "float32"), limit: T.float32):
    with T.Kernel(1, threads=4):
        for i in T.Parallel(4):
            T.device_assert(A[i] < limit, "too large")
            T.print(A[i], msg="element")

@T.prim_func
def outside(A: T.Tensor((4,), "int32"), B: T.Tensor((4,), "float32")):
    with T.Kernel(1, threads=1):
        B[A[0]] = 1.0
"""


def few() -> str | None:
    reason = numba_device.missing()
    if reason is not None:
        return reason
    count = numba_device.devices().count
    return None if count > 1 else f"there is {count}"


pytestmark = pytest.mark.skipif(few() is not None, reason=f"needs two devices: {few()}")


@pytest.fixture(scope="module")
def kernels() -> dict[str, Any]:
    c = tilelang_nb.compile_cell(CELL, target="cuda")
    assert c.ok, c.to_text()
    return c.kernels


@pytest.fixture
def torch() -> Any:
    torch = pytest.importorskip("torch")
    torch.cuda.set_device(0)
    return torch


@pytest.fixture(autouse=True)
def the_current_device_stays() -> Any:
    devices = numba_device.devices()
    devices.activate(0)
    yield
    assert devices.current() == 0


def ramp(count: int) -> np.ndarray:
    return np.arange(count, dtype=np.float32)


def test_tensors_of_each_device_are_worked_on_there(kernels: dict[str, Any], torch: Any) -> None:
    tensors = [torch.zeros(1000, device=f"cuda:{number}") for number in (0, 1)]
    for _ in range(10):
        for tensor in tensors:
            kernels["add_one"](tensor)
            assert torch.cuda.current_device() == 0
    assert all(bool((tensor == 10).all()) for tensor in tensors)
    devices = numba_device.devices()
    loaded = kernels["add_one"].build()._loaded
    assert {on.number for on in loaded} == {0, 1}
    assert {devices.driver.device_of(tensor.data_ptr()) for tensor in tensors} == {0, 1}


@pytest.mark.parametrize("current", [0, 1])
def test_arrays_of_the_host_go_to_the_current_device(kernels: dict[str, Any], current: int) -> None:
    c = tilelang_nb.compile_cell(CELL.replace("+ 1", f"+ {current + 5}"), target="cuda")
    kernel, array = c.kernels["add_one"], np.zeros(300, np.float32)
    numba_device.devices().activate(current)
    kernel(array)
    assert numba_device.devices().current() == current and (array == current + 5).all()
    assert [on.number for on in kernel.build()._loaded] == [current]
    numba_device.devices().activate(0)


def test_arrays_of_numba_on_each_device(kernels: dict[str, Any]) -> None:
    from numba import cuda

    arrays = []
    for number in (0, 1):
        with cuda.gpus[number]:
            arrays.append(cuda.to_device(ramp(500)))
    for _ in range(4):
        for array in arrays:
            kernels["add_one"](array)
    for number, array in enumerate(arrays):
        with cuda.gpus[number]:
            assert np.array_equal(array.copy_to_host(), ramp(500) + 4)
    out = kernels["total"].compile(out_idx=[2])
    with cuda.gpus[1]:
        made = out(arrays[1], arrays[1])
        assert numba_device.devices().driver.device_of(made.device_ctypes_pointer.value) == 1
        assert np.array_equal(made.copy_to_host(), 2 * (ramp(500) + 4))


def test_arrays_of_cupy_on_each_device_and_its_streams(kernels: dict[str, Any]) -> None:
    cupy = pytest.importorskip("cupy")
    arrays = []
    for number in (0, 1):
        with cupy.cuda.Device(number):
            arrays.append(cupy.zeros(500, np.float32))
    for turn in range(4):
        with cupy.cuda.Device(turn % 2), cupy.cuda.Stream(non_blocking=True) as stream:
            for array in arrays:  # that of the other device goes into that device's stream
                kernels["add_one"](array)
            stream.synchronize()
    for number, array in enumerate(arrays):
        with cupy.cuda.Device(number):
            cupy.cuda.Device(number).synchronize()
            assert (array.get() == 4).all()


def test_streams_of_torch_on_the_second_device(kernels: dict[str, Any], torch: Any) -> None:
    with torch.cuda.device(1):
        stream = torch.cuda.Stream()
        tensor = torch.zeros(1 << 20, device="cuda:1")
        torch.cuda.synchronize()
        with torch.cuda.stream(stream):
            for _ in range(20):
                tensor += 1
                kernels["add_one"](tensor)
            done = tensor.cpu()
    assert bool((done == 40).all())
    kernels["add_one"](tensor, stream=torch.cuda.current_stream(1))
    with torch.cuda.stream(stream):  # from outside of the device
        kernels["add_one"](tensor)
    torch.cuda.synchronize(1)
    assert bool((tensor == 42).all())


def test_tensors_of_both_devices_in_one_call_are_refused(kernels: dict[str, Any], torch: Any) -> None:
    first, second = (torch.zeros(256, device=f"cuda:{number}") for number in (0, 1))
    kernels["total"](first, first, first)
    kernels["total"](second, second, second)
    for arguments in ((first, second, first), (second, second, first)):
        with pytest.raises(tilelang_nb.LaunchError, match="memory of device") as caught:
            kernels["total"](*arguments)
        assert caught.value.diagnostic.code == "TL301"
    kernels["total"](first, np.ones(256, np.float32), first)  # an array of the host goes where the others are
    assert torch.cuda.current_device() == 0


def test_workspaces_and_results_lie_on_the_device_of_the_arguments(kernels: dict[str, Any], torch: Any) -> None:
    for number in (0, 1, 0, 1):
        a = torch.arange(64, dtype=torch.float32, device=f"cuda:{number}")
        b = torch.zeros_like(a)
        kernels["through_workspace"](a, b)
        assert torch.equal(b, 2 * a.flip(0))
        made = kernels["total"].compile(out_idx=[2])(a, a)
        assert made.device == a.device and torch.equal(made, 2 * a)


def test_what_a_kernel_says_is_read_on_its_device(
    kernels: dict[str, Any], torch: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in (1, 0, 1):
        tensor = torch.arange(4, dtype=torch.float32, device=f"cuda:{number}") + number
        kernels["told"](tensor, 100.0)
        shown = capsys.readouterr().out.split("\n")[:-1]
        assert [float(line.rsplit(" ", 1)[1]) for line in shown] == [number, number + 1, number + 2, number + 3]
        with pytest.raises(tilelang_nb.LaunchError, match="too large") as caught:
            kernels["told"](tensor, float(number) + 0.5)
        assert caught.value.diagnostic.code == "TL404"
        capsys.readouterr()


def test_times_of_the_second_device(kernels: dict[str, Any], torch: Any) -> None:
    a, b, c = (torch.ones(1 << 22, device="cuda:1") for _ in range(3))
    result = kernels["total"].bench(a, b, c, baseline=lambda: torch.add(a, b, out=c), repeat=20)
    assert torch.cuda.current_device() == 0
    assert 1000 < result.gigabytes_per_second < 20_000 and 0.5 < result.ratio < 2
    profiler = kernels["total"].get_profiler()
    assert profiler is not None
    with torch.cuda.device(1):
        on_current = kernels["add_one"].bench(torch.ones(1 << 22, device="cuda:0"), repeat=20)
        assert torch.cuda.current_device() == 1
    assert on_current.milliseconds > 0


def test_threads_on_different_devices(kernels: dict[str, Any], torch: Any) -> None:
    tensors = [torch.zeros(4096, device=f"cuda:{number % 2}") for number in range(6)]
    for number in (0, 1):
        torch.cuda.synchronize(number)
    failed: list[Any] = []

    def work(tensor: Any) -> None:
        try:
            for _ in range(200):
                kernels["add_one"](tensor)
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(tensor,)) for tensor in tensors]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed and all(bool((tensor == 200).all()) for tensor in tensors)


def test_code_of_kernels_that_are_gone_is_freed_on_both(torch: Any) -> None:
    import gc

    from tilelang_nb.runtime import cache
    from tilelang_nb.runtime.device_wait import faults

    devices = numba_device.devices()
    tensors = [torch.zeros(256, device=f"cuda:{number}") for number in (0, 1)]
    for turn in range(6):
        c = tilelang_nb.compile_cell(CELL.replace("+ 1", f"+ {turn}.5"), target="cuda")
        for tensor in tensors:
            c.kernels["add_one"](tensor)
        del c
        cache.clear()
        gc.collect()
        assert faults() == []
    gc.collect()
    assert faults() == [] and all(not device_launch.device(devices, number).unused for number in (0, 1))
    assert all(bool((tensor == 18).all()) for tensor in tensors)


FAULT = f"""
import numpy as np, torch
import tilelang_nb
from tilelang_nb.runtime.device_wait import faults
c = tilelang_nb.compile_cell({CELL!r}, target="cuda", filename="lost.py")
good = torch.zeros(256, device="cuda:0")
c.kernels["add_one"](good)
far = torch.full((4,), 1 << 30, dtype=torch.int32, device="cuda:1")
c.kernels["outside"](far, torch.zeros(4, device="cuda:1"))
for error in faults():
    print(error.diagnostic.message, "|", error.diagnostic.help)
for number in (0, 1):
    try:
        c.kernels["add_one"](torch.zeros(256, device=f"cuda:{{number}}") if number else good)
        print(number, "launched")
    except tilelang_nb.LaunchError as error:
        print(number, error.diagnostic.message, "|", error.diagnostic.help)
    except Exception as error:
        print(number, type(error).__name__)
"""


def test_a_fault_on_one_device_names_it_and_the_kernel() -> None:
    run = subprocess.run([sys.executable, "-c", FAULT], capture_output=True, text=True, timeout=120)
    assert "Traceback" not in run.stderr, run.stderr
    said = run.stdout.strip().split("\n")
    assert "on device 1 in kernel `outside` of lost.py line" in said[0] and "restart" in said[0], said
    # The driver may stop all work of the process, and does so on an H200: then the reason is still the right one.
    lost = re.search("cannot run: the CUDA context was lost after [a-z ]+ in kernel `outside` .* restart", said[1])
    assert said[1] == "0 launched" or lost, said
    assert said[2].startswith("1 ") and "launched" not in said[2], said
