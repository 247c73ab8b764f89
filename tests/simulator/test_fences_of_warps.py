"""A proxy fence of some warps, beside instructions of whole warps."""

from __future__ import annotations

import numpy as np

import tilelang_nb

TEXT = """
@T.prim_func
def k(A: T.Tensor((64, 64), "float16"), C: T.Tensor((64, 64), "float32"), V: T.Tensor((128,), "int32")):
    with T.Kernel(1, threads=128):
        S = T.alloc_shared((64, 64), "float16")
        c = T.alloc_fragment((64, 64), "float32")
        t = T.get_thread_binding()
        T.copy(A, S)
        if t < 32:
            T.fence_proxy_async()
        T.clear(c)
        T.gemm(S, S, c)
        V[t] = T.any_sync(t == 40)
        T.copy(c, C)
"""


def test_products_and_votes_after_a_fence_of_one_warp() -> None:
    a = np.random.default_rng(0).integers(-2, 3, (64, 64)).astype(np.float16)
    for arch in ("sm_90", "sm_90a"):
        cell = tilelang_nb.compile_cell(TEXT, {}, target="sim", arch=arch)
        assert cell.ok, cell.to_text()
        c, votes = np.zeros((64, 64), np.float32), np.zeros(128, np.int32)
        cell.namespace["k"](a, c, votes)
        np.testing.assert_array_equal(c, a.astype(np.float32) @ a.astype(np.float32))
        assert (votes != 0).tolist() == [32 <= t < 64 for t in range(128)]
