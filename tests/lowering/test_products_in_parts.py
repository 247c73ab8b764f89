"""`T.wgmma_gemm` in a part of `T.ws` whose tiles other parts fill, in bulk or one element at a time: a product of warp
groups wherever wgmma takes the tiles, and why not elsewhere.
"""

from __future__ import annotations

import numpy as np
import pytest

import tilelang_nb

TEXT = """
@T.prim_func
def k(A: T.Tensor((64, {depth}), "float16"), B: T.Tensor(({depth}, 128), "float16"), C: T.Tensor((64, 128), "float32")):
    with T.Kernel(1, threads=256):
        A_s = T.alloc_shared((64, {depth}), "float16")
        B_s = T.alloc_shared(({depth}, 128), "float16")
        c = T.alloc_fragment((64, 128), "float32")
        ready = T.alloc_barrier(128)
        with T.ws(1):
            {filled}
            T.fence_proxy_async()
            T.barrier_arrive(ready)
        with T.ws(0):
            T.barrier_wait(ready, 0)
            T.wgmma_gemm(A_s, B_s, c, clear_accum=True)
            T.wait_wgmma(0)
            T.copy(c, C)
"""
COPIES = "T.copy(A, A_s)\n            T.copy(B, B_s)"
BULK = "T.copy(A, A_s)\n            T.tma_copy(B, B_s, barrier=ready)"
ALL_BULK = "T.tma_copy(A, A_s, barrier=ready)\n            T.tma_copy(B, B_s, barrier=ready)"
REASONS = {
    "threads fill both": (COPIES, 64, ""),
    "threads fill one": (BULK, 64, ""),
    "rows of an odd width": (ALL_BULK, 72, "those of `A_s`, 72 of float16, have 144; 80 columns would do"),
    "bulk copies fill both": (ALL_BULK, 64, ""),
}


@pytest.mark.parametrize("name", REASONS)
def test_the_product_is_right_and_its_engine_has_its_reason(name: str) -> None:
    filled, depth, reason = REASONS[name]
    cell = tilelang_nb.compile_cell(TEXT.format(filled=filled, depth=depth), {}, target="sim", arch="sm_90a")
    assert cell.ok, cell.to_text()
    kernel = cell.namespace["k"]
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-4, 5, shape).astype(np.float16) for shape in ((64, depth), (depth, 128)))
    c = np.zeros((64, 128), np.float32)
    kernel(a, b, c)
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32))
    assert kernel.findings == (), [str(one) for one in kernel.findings]
    (product,) = [one for one in kernel.decisions if one.subject == "product"]
    assert product.value.startswith("mma.sync" if reason else "wgmma") and reason in product.reason


BOTH = """
@T.prim_func
def k(A: T.Tensor((256, 128), "float16"), B: T.Tensor((128, 128), "float16"), C: T.Tensor((256, 128), "float32")):
    with T.Kernel(1, threads=256):
        a = T.alloc_shared((256, 64), "float16")
        b = T.alloc_shared((128, 128), "float16")
        c = T.alloc_fragment((128, 128), "float32")
        d = T.alloc_fragment((128, 128), "float32")
        T.copy(B, b)
        T.sync_threads()
        with T.ws(0):
            T.clear(c)
            for k in range(2):
                T.copy(A[0, k * 64], a[0:128, :])
                T.gemm(a[0:128, :], b[k * 64 : k * 64 + 64, :], c)
            T.copy(c, C[0, 0])
        with T.ws(1):
            T.clear(d)
            for k in range(2):
                T.copy(A[128, k * 64], a[128:256, :])
                T.gemm(a[128:256, :], b[k * 64 : k * 64 + 64, :], d)
            T.copy(d, C[128, 0])
"""


def test_each_part_has_registers_of_its_own_for_its_sums() -> None:
    """128 in each thread, not the 256 of both."""
    cell = tilelang_nb.compile_cell(BOTH, {}, target="sim", arch="sm_90a")
    assert cell.ok, cell.to_text()
    kernel = cell.namespace["k"]
    rng = np.random.default_rng(0)
    a, b = rng.integers(-4, 5, (256, 128)).astype(np.float16), rng.integers(-4, 5, (128, 128)).astype(np.float16)
    c = np.zeros((256, 128), np.float32)
    kernel(a, b, c)
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32))
    assert kernel.findings == (), [str(one) for one in kernel.findings]
    assert [one.value[:5] for one in kernel.decisions if one.subject == "product"] == ["wgmma", "wgmma"]
