"""Launches with arrays of every library, on streams, with output, and with what a device refuses or loses."""

from __future__ import annotations

import threading
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilelang_nb

CELL = """
n = T.dynamic("n")
m = T.dynamic("m")
step = T.dynamic("step")

@T.prim_func
def scaled(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32"), s: T.float32):
    with T.Kernel(T.ceildiv(n, 256), threads=128) as b:
        for i in T.Parallel(256):
            B[b * 256 + i] = A[b * 256 + i] * s

@T.prim_func
def add_one(A: T.Tensor((n,), "float32")):
    with T.Kernel(T.ceildiv(n, 256), threads=128) as b:
        for i in T.Parallel(256):
            A[b * 256 + i] = A[b * 256 + i] + 1.0

@T.prim_func
def halves(A: T.Tensor((n,), "bfloat16"), B: T.Tensor((n,), "bfloat16"), s: T.bfloat16):
    with T.Kernel(T.ceildiv(n, 256), threads=128) as b:
        for i in T.Parallel(256):
            B[b * 256 + i] = A[b * 256 + i] * s

@T.prim_func
def strided(A: T.StridedTensor((n, m), (step, 1), "float32")):
    with T.Kernel(n, threads=32) as b:
        for i in T.Parallel(32):
            if i < m:
                A[b, i] = A[b, i] + 1

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
def wide(A: T.Tensor((n, m), "int8")):
    with T.Kernel(n, T.ceildiv(m, 1024), threads=256) as (b, c):
        for i in T.Parallel(1024):
            A[b, c * 1024 + i] = (b + c + i) % 127

@T.prim_func
def high(A: T.Tensor((n, m), "int32")):
    with T.Kernel(n, m, threads=32) as (b, c):
        A[b, c] = b + c

@T.prim_func
def large_tile(A: T.Tensor((64, 1024), "float32"), B: T.Tensor((64, 1024), "float32")):
    with T.Kernel(4, threads=128) as b:
        tile = T.alloc_shared((16, 1024), "float32")
        T.copy(A[b * 16, 0], tile)
        for i, j in T.Parallel(16, 1024):
            B[b * 16 + i, j] = tile[i, 1023 - j]

@T.prim_func
def checked(A: T.Tensor((n,), "int32"), limit: T.int32):
    with T.Kernel(T.ceildiv(n, 64), threads=64) as b:
        for i in T.Parallel(64):
            T.device_assert(A[b * 64 + i] < limit, "too large")

@T.prim_func
def told(A: T.Tensor((8,), "float32")):
    with T.Kernel(2, threads=4) as b:
        for i in T.Parallel(4):
            T.print(A[b * 4 + i], msg="element")
        T.print(msg="done")

@T.prim_func
def outside(A: T.Tensor((4,), "int32"), B: T.Tensor((4,), "float32")):
    with T.Kernel(1, threads=1):
        B[A[0]] = 1.0
"""


@pytest.fixture(scope="module")
def kernels() -> dict[str, Any]:
    c = tilelang_nb.compile_cell(CELL, target="cuda")
    assert c.ok, c.to_text()
    return c.kernels


def ramp(count: int, dtype: Any = np.float32) -> np.ndarray:
    return (np.arange(count) % 251).astype(dtype)


# -- libraries


def test_auto_means_the_device(kernels: dict[str, Any]) -> None:
    assert tilelang_nb.compile_cell(CELL).target.kind == "cuda"


@pytest.mark.parametrize("count", [0, 1, 255, 256, 100_003])
def test_numpy_arrays_are_copied_there_and_back(kernels: dict[str, Any], count: int) -> None:
    a, b = ramp(count), np.full(count, -1, np.float32)
    kernels["scaled"](a, b, 0.5)
    assert np.array_equal(b, a * np.float32(0.5)) and np.array_equal(a, ramp(count))


def test_views_of_numpy_arrays_of_any_order(kernels: dict[str, Any]) -> None:
    memory = ramp(1000)
    wanted = memory.copy()
    wanted[::-3] += 1
    kernels["add_one"](memory[::-3])
    assert np.array_equal(memory, wanted)
    whole = np.zeros((4, 10), np.float32)
    kernels["strided"](whole[:, 2:8])
    assert whole[:, 2:8].all() and whole.sum() == 24


def test_numba_arrays(kernels: dict[str, Any]) -> None:
    from numba import cuda

    a, b = cuda.to_device(ramp(1000)), cuda.device_array(1000, np.float32)
    for factor in (2.0, 3.0):
        kernels["scaled"](a, b, factor)
        assert np.array_equal(b.copy_to_host(), ramp(1000) * np.float32(factor))
    stream = cuda.stream()
    kernels["add_one"](b, stream=stream)
    stream.synchronize()
    assert np.array_equal(b.copy_to_host(), ramp(1000) * 3 + 1)
    bound = b.bind(stream)
    kernels["add_one"](bound)
    assert np.array_equal(bound.copy_to_host(), ramp(1000) * 3 + 2)


def test_cupy_arrays(kernels: dict[str, Any]) -> None:
    cupy = pytest.importorskip("cupy")
    a, b = cupy.asarray(ramp(1000)), cupy.empty(1000, np.float32)
    for factor in (2.0, 3.0):
        kernels["scaled"](a, b, factor)
        assert np.array_equal(b.get(), ramp(1000) * np.float32(factor))
    with cupy.cuda.Stream(non_blocking=True) as stream:
        for _ in range(20):
            b += 1
            kernels["add_one"](b)
        stream.synchronize()
    assert np.array_equal(b.get(), ramp(1000) * 3 + 40)


def test_torch_tensors_on_the_current_stream(kernels: dict[str, Any]) -> None:
    torch = pytest.importorskip("torch")
    a = torch.from_numpy(ramp(1000)).cuda()
    b = torch.empty_like(a)
    for factor in (2.0, 3.0):
        kernels["scaled"](a, b, factor)
        assert np.array_equal(b.cpu().numpy(), ramp(1000) * np.float32(factor))
    with torch.cuda.stream(torch.cuda.Stream()) as _:
        for _ in range(20):
            b += 1
            kernels["add_one"](b)
        done = b.cpu()
    assert np.array_equal(done.numpy(), ramp(1000) * 3 + 40)


def test_bfloat16_tensors_of_torch_and_ml_dtypes(kernels: dict[str, Any]) -> None:
    torch = pytest.importorskip("torch")
    wanted = (ramp(300).astype(ml_dtypes.bfloat16).astype(np.float32) * 1.5).astype(ml_dtypes.bfloat16)
    a = torch.from_numpy(ramp(300)).to(torch.bfloat16).cuda()
    b = torch.zeros_like(a)
    kernels["halves"](a, b, 1.5)
    assert np.array_equal(b.float().cpu().numpy(), wanted.astype(np.float32))
    host = np.zeros(300, ml_dtypes.bfloat16)
    kernels["halves"](ramp(300).astype(ml_dtypes.bfloat16), host, 1.5)
    assert np.array_equal(host, wanted)


def test_a_misaligned_tensor_and_one_with_gaps(kernels: dict[str, Any]) -> None:
    torch = pytest.importorskip("torch")
    memory = torch.zeros(1001, device="cuda")
    kernels["add_one"](memory[1:])
    assert memory[0] == 0 and bool((memory[1:] == 1).all())
    with pytest.raises(tilelang_nb.LaunchError, match="row-major"):
        kernels["add_one"](memory[::2])
    whole = torch.zeros((4, 10), device="cuda")
    kernels["strided"](whole[:, 2:8])
    assert float(whole.sum()) == 24 and bool(whole[:, 2:8].all())


def test_dlpack_exporters(kernels: dict[str, Any]) -> None:
    torch = pytest.importorskip("torch")

    class Exporter:
        def __init__(self, tensor: Any):
            self.tensor = tensor

        def __dlpack__(self, **options: Any) -> Any:
            return self.tensor.__dlpack__(**options)

        def __dlpack_device__(self) -> Any:
            return self.tensor.__dlpack_device__()

    tensor = torch.zeros(512, device="cuda")
    for _ in range(3):
        kernels["add_one"](Exporter(tensor))
    assert bool((tensor == 3).all())


def test_the_array_interface_with_a_stream(kernels: dict[str, Any]) -> None:
    torch = pytest.importorskip("torch")

    class Owner:
        def __init__(self, tensor: Any, stream: Any):
            self.tensor, self.stream = tensor, stream

        @property
        def __cuda_array_interface__(self) -> Any:
            return {**self.tensor.__cuda_array_interface__, "stream": self.stream.cuda_stream, "version": 3}

    tensor = torch.zeros(1 << 20, device="cuda")
    torch.cuda.synchronize()
    stream = torch.cuda.Stream()
    for _ in range(10):
        with torch.cuda.stream(stream):
            tensor += 1
        kernels["add_one"](Owner(tensor, stream))
    stream.synchronize()
    assert bool((tensor == 20).all())


def test_returned_tensors_are_of_the_caller_s_library(kernels: dict[str, Any]) -> None:
    torch = pytest.importorskip("torch")
    k = kernels["scaled"].compile(out_idx=[1])
    host = k(ramp(100), 2.0)
    assert isinstance(host, np.ndarray) and np.array_equal(host, ramp(100) * 2)
    host = k(torch.from_numpy(ramp(100)), 2.0)
    assert isinstance(host, torch.Tensor) and not host.is_cuda and np.array_equal(host.numpy(), ramp(100) * 2)
    for factor in (2.0, 4.0):
        made = k(torch.from_numpy(ramp(100)).cuda(), factor)
        assert made.is_cuda and np.array_equal(made.cpu().numpy(), ramp(100) * np.float32(factor))


def test_a_tensor_that_requires_grad_is_read_and_not_written(kernels: dict[str, Any]) -> None:
    torch = pytest.importorskip("torch")
    a = torch.ones(256, device="cuda", requires_grad=True)
    b = torch.empty(256, device="cuda")
    kernels["scaled"](a, b, 3.0)
    kernels["scaled"](torch.nn.Parameter(a.detach()), b, 3.0, stream=torch.cuda.current_stream())
    assert bool((b == 3).all())
    for _ in range(2):
        with pytest.raises(tilelang_nb.LaunchError, match="requires grad") as caught:
            kernels["scaled"](b, a, 3.0)
        assert "detach" in caught.value.diagnostic.help
    with pytest.raises(tilelang_nb.LaunchError, match="layout"):
        kernels["add_one"](torch.eye(4, device="cuda").to_sparse())


EAGER = """
@tilelang.jit
def add(A, B, block: int = 128):
    N = T.const("N")
    A: T.Tensor[[N], T.float32]
    B: T.Tensor[[N], T.float32]
    C = T.empty((N,), T.float32)
    with T.Kernel(T.ceildiv(N, block), threads=block) as bx:
        for i in T.Parallel(block):
            C[bx * block + i] = A[bx * block + i] + B[bx * block + i]
    return C
"""


def test_eager_kernels_take_and_return_device_arrays() -> None:
    torch = pytest.importorskip("torch")
    c = tilelang_nb.compile_cell(EAGER, target="cuda")
    assert c.ok, c.to_text()
    add = c.namespace["add"]
    for count in (1000, 64, 1000):
        a = torch.from_numpy(ramp(count)).cuda()
        made = add(a, a + 1)
        assert made.is_cuda and torch.equal(made, 2 * a + 1)
    assert len(add.kernels) == 2
    assert add.bench(a, a, repeat=5).milliseconds > 0
    host = add(ramp(64), ramp(64))
    assert isinstance(host, np.ndarray) and np.array_equal(host, 2 * ramp(64))


def test_a_graph_of_torch_holds_launches(kernels: dict[str, Any]) -> None:
    torch = pytest.importorskip("torch")
    tensor = torch.zeros(512, device="cuda")
    kernels["add_one"](tensor)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kernels["add_one"](tensor)
        kernels["add_one"](tensor)
    for _ in range(5):
        graph.replay()
    torch.cuda.synchronize()
    assert bool((tensor == 11).all())


def test_launches_of_several_threads(kernels: dict[str, Any]) -> None:
    from numba import cuda

    arrays = [cuda.to_device(np.zeros(4096, np.float32)) for _ in range(8)]
    cuda.synchronize()

    def work(array: Any) -> None:
        for _ in range(200):
            kernels["add_one"](array)

    threads = [threading.Thread(target=work, args=(array,)) for array in arrays]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all((array.copy_to_host() == 200).all() for array in arrays)


# -- launches


def test_several_launches_and_a_workspace(kernels: dict[str, Any]) -> None:
    from numba import cuda

    a, b = cuda.to_device(ramp(64)), cuda.device_array(64, np.float32)
    for _ in range(3):
        kernels["through_workspace"](a, b)
        assert np.array_equal(b.copy_to_host(), 2 * ramp(64)[::-1])


def test_more_than_2_31_elements(kernels: dict[str, Any]) -> None:
    torch = pytest.importorskip("torch")
    rows, columns = 36_000, 65_536
    assert rows * columns > 2**31
    tensor = torch.empty((rows, columns), dtype=torch.int8, device="cuda")
    kernels["wide"](tensor)
    column = torch.arange(columns, device="cuda")
    for row in (0, 1, 32_767, 32_768, 33_000, rows - 1):
        wanted = (row + column // 1024 + column % 1024) % 127
        assert torch.equal(tensor[row].to(torch.int64), wanted), row


def test_a_grid_beyond_y_is_refused_and_x_takes_it(kernels: dict[str, Any]) -> None:
    with pytest.raises(tilelang_nb.LaunchError, match="70000 blocks along y") as caught:
        kernels["high"](np.zeros((1, 70_000), np.int32))
    assert caught.value.diagnostic.code == "TL208"
    a = np.zeros((70_000, 2), np.int32)
    kernels["high"](a)
    assert np.array_equal(a, np.arange(70_000)[:, None] + np.arange(2))


def test_shared_memory_beyond_48_kib(kernels: dict[str, Any]) -> None:
    a, b = ramp(64 * 1024).reshape(64, 1024), np.zeros((64, 1024), np.float32)
    kernels["large_tile"](a, b)
    assert np.array_equal(b, a[:, ::-1])


def test_code_for_another_device_is_refused(kernels: dict[str, Any]) -> None:
    k = kernels["add_one"].compile(target="cuda", arch="sm_75")
    if k.build().device.arch[3] == str(tilelang_nb.runtime.numba_device.devices().facts(0).capability[0]):
        pytest.skip("the device is of that generation")
    with pytest.raises(tilelang_nb.LaunchError, match="does not run here") as caught:
        k(np.zeros(4, np.float32))
    assert caught.value.diagnostic.code == "TL302"


# -- output


def test_a_failed_assertion_names_line_block_and_thread_and_the_context_lives_on(kernels: dict[str, Any]) -> None:
    a = np.zeros(200, np.int32)
    kernels["checked"](a, 5)
    a[130] = 9
    with pytest.raises(tilelang_nb.LaunchError, match="too large") as caught:
        kernels["checked"](a, 5)
    found = caught.value.diagnostic
    assert found.code == "TL404" and "thread (2, 0, 0) of block (2, 0, 0)" in found.message
    assert CELL.split("\n")[found.span.line - 1].strip().startswith("T.device_assert")
    kernels["checked"](np.zeros(200, np.int32), 5)


def test_printed_lines_are_those_of_the_simulated_device(
    kernels: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    a = np.linspace(0, 1, 8, dtype=np.float32)
    print("before")
    kernels["told"](a)
    print("after")
    shown = capsys.readouterr().out.split("\n")
    simulated = kernels["told"].compile(target="sim")
    simulated(a)
    assert shown[0] == "before" and shown[-2] == "after"
    assert tuple(shown[1:-2]) == kernels["told"].printed == simulated.printed and len(simulated.printed) == 16
