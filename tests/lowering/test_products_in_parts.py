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
