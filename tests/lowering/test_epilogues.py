"""What follows a product: the way of its result to global memory, fused arithmetic, sums over parts of the depth."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from lowering.products import compiled, thread_text


def halves(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(np.float16)


def ran(text: str, *arrays: np.ndarray, arch: str = "sm_80", **names: Any) -> Any:
    kernel = compiled(text, arch, **names)
    kernel(*arrays)
    assert tuple(kernel.findings) == (), [str(finding) for finding in kernel.findings]
    return kernel


MATMUL = """
@T.prim_func
def k(A: T.Tensor((m, 96), "float16"), B: T.Tensor((96, n), "float16"), bias: T.Tensor((n,), "float32"),
      C: T.Tensor((m, n), dtype)):
    with T.Kernel(T.ceildiv(n, 64), T.ceildiv(m, 64), threads=128) as (bx, by):
        A_s = T.alloc_shared((64, 32), "float16")
        B_s = T.alloc_shared((32, 64), "float16")
        C_s = T.alloc_shared((64, 64), dtype)
        c = T.alloc_fragment((64, 64), "float32")
        {before}
        T.clear(c)
        for k in T.Pipelined(3, num_stages=2):
            T.copy(A[by * 64, k * 32], A_s)
            T.copy(B[k * 32, bx * 64], B_s)
            T.gemm(A_s, B_s, c)
        {after}
"""
EPILOGUES = {
    "straight to global memory": "T.copy(c, C[by * 64, bx * 64])",
    "through a shared tile": "T.copy(c, C_s)\n        T.copy(C_s, C[by * 64, bx * 64])",
    "by elements": "for i, j in T.Parallel(64, 64):\n            C[by * 64 + i, bx * 64 + j] = c[i, j]",
}


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("shape", [(128, 128), (100, 72), (64, 200)])
@pytest.mark.parametrize("name", EPILOGUES)
def test_a_result_gets_to_global_memory(name, shape, dtype):
    m, n = shape
    a, b, bias, c = halves(m, 96), halves(96, n, seed=1), np.zeros(n, np.float32), np.zeros((m, n), dtype)
    ran(MATMUL.format(before="pass", after=EPILOGUES[name]), a, b, bias, c, m=m, n=n, dtype=dtype)
    np.testing.assert_array_equal(c, (a.astype(np.float32) @ b.astype(np.float32)).astype(dtype))


@pytest.mark.parametrize("name", ["straight to global memory", "through a shared tile"])
def test_stores_of_a_narrow_result_are_wide(name):
    """Every store request of a warp covers whole sectors, as few as there can be."""
    m = n = 128
    a, b, bias, c = halves(m, 96), halves(96, n, seed=1), np.zeros(n, np.float32), np.zeros((m, n), np.float16)
    kernel = ran(MATMUL.format(before="pass", after=EPILOGUES[name]), a, b, bias, c, m=m, n=n, dtype="float16")
    (row,) = [row for row in kernel.counters[0].global_sectors if row.buffer == "C"]
    assert row.used == row.ideal
    stores = [row for row in kernel.counters[0].shared_banks if row.buffer == "C_s"]
    assert all(row.used == row.ideal for row in stores)


def test_bias_and_activation_are_fused():
    after = """
        for i, j in T.Parallel(64, 64):
            c[i, j] = T.max(c[i, j] + bias[bx * 64 + j], 0.0)
        T.copy(c, C[by * 64, bx * 64])"""
    m, n = 100, 120
    a, b, c = halves(m, 96), halves(96, n, seed=1), np.zeros((m, n), np.float32)
    bias = np.arange(n, dtype=np.float32) - 60
    kernel = ran(MATMUL.format(before="pass", after=after.strip()), a, b, bias, c, m=m, n=n, dtype="float32")
    np.testing.assert_array_equal(c, np.maximum(a.astype(np.float32) @ b.astype(np.float32) + bias, 0))
    assert kernel.layouts["c"].memory == "fragment"


def test_a_row_sum_of_the_result():
    after = """
        rows = T.alloc_fragment((64,), "float32")
        T.reduce_sum(c, rows, dim=1)
        for i in T.Parallel(64):
            T.atomic_add(C[by * 64 + i, 0], rows[i])"""
    a, b, c = halves(128, 96), halves(96, 128, seed=1), np.zeros((128, 128), np.float32)
    ran(
        MATMUL.format(before="pass", after=after.strip()),
        a,
        b,
        np.zeros(128, np.float32),
        c,
        m=128,
        n=128,
        dtype="float32",
    )
    np.testing.assert_array_equal(c[:, 0], (a.astype(np.float32) @ b.astype(np.float32)).sum(1))
    assert not c[:, 1:].any()


@pytest.mark.parametrize("way", ["by elements", "from a shared tile", "from the fragment"])
@pytest.mark.parametrize("parts", [1, 3, 4])
def test_parts_of_the_depth_are_added_by_atomics(parts, way):
    ends = {
        "by elements": "for i, j in T.Parallel(64, 64):\n            T.atomic_add(C[by * 64 + i, bx * 64 + j], c[i, j])",
        "from a shared tile": "T.copy(c, C_s)\n        T.atomic_add(C[by * 64, bx * 64], C_s)",
        "from the fragment": "T.atomic_add(C[by * 64, bx * 64], c)",
    }
    text = f"""
@T.prim_func
def k(A: T.Tensor((64, 192), "float16"), B: T.Tensor((192, 128), "float16"), C: T.Tensor((64, 128), "float32")):
    with T.Kernel(2, 1, parts, threads=128) as (bx, by, bz):
        A_s = T.alloc_shared((64, 16), "float16")
        B_s = T.alloc_shared((16, 64), "float16")
        C_s = T.alloc_shared((64, 64), "float32")
        c = T.alloc_fragment((64, 64), "float32")
        T.clear(c)
        for k in T.Pipelined(192 // parts // 16, num_stages=3):
            T.copy(A[by * 64, (bz * (192 // parts // 16) + k) * 16], A_s)
            T.copy(B[(bz * (192 // parts // 16) + k) * 16, bx * 64], B_s)
            T.gemm(A_s, B_s, c)
        {ends[way]}
"""
    a, b, c = halves(64, 192), halves(192, 128, seed=1), np.zeros((64, 128), np.float32)
    ran(text, a, b, c, parts=parts)
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32))


@pytest.mark.parametrize("options", ["3", "4, order='column'", "2, enable=False"])
def test_blocks_in_panels_compute_the_same(options):
    m, n = 192, 320
    a, b, bias, c = halves(m, 96), halves(96, n, seed=1), np.zeros(n, np.float32), np.zeros((m, n), np.float32)
    text = MATMUL.format(before=f"T.use_swizzle({options})", after="T.copy(c, C[by * 64, bx * 64])")
    kernel = ran(text, a, b, bias, c, m=m, n=n, dtype="float32")
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32))
    (swizzle,) = kernel.build().lowered.swizzles
    assert (swizzle is None) == ("False" in options)
    assert "T.ptx.mma" in thread_text(kernel)


def test_the_report_names_no_tile_that_the_text_has_not():
    """A narrow result leaves through a tile that the compiler adds."""
    text = MATMUL.format(before="pass", after="T.copy(c, C[by * 64, bx * 64])").replace(
        "        C_s = T.alloc_shared((64, 64), dtype)\n", ""
    )
    kernel = compiled(text, "sm_80", m=128, n=128, dtype="float16")
    own = {one.name for one in kernel.layouts.maps if one.own}
    assert own and not any(name in kernel.to_text().split("source ")[0] for name in own)
    assert all(name not in one.value for name in own for one in kernel.build().lowered.decisions)
