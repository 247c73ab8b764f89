"""Accumulators go to shared memory as matrices where the architecture and the layouts allow it."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from lowering.products import compiled, thread_text

TEXT = """
    @T.prim_func
    def k(A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((2, M, N + 16), dtype)):
        with T.Kernel(1, threads=threads) as bx:
            a = T.alloc_shared((M, K), "float16")
            b = T.alloc_shared((K, N), "float16")
            c = T.alloc_fragment((M, N), "float32")
            s = T.alloc_shared((2, M, N + 16), dtype)
            T.copy(A, a)
            T.copy(B, b)
            T.clear(c)
            T.clear(s)
            T.gemm(a, b, c, policy=T.GemmWarpPolicy.{policy})
            STORE
            T.copy(s, C)
"""


def run(
    M: int = 64, N: int = 64, threads: int = 128, policy: str = "Square", dtype: str = "float16", arch: str = "sm_90",
    store: str = "T.copy(c, s[1, 0:M, 8:N + 8])", column: int = 8,
) -> Any:  # fmt: skip
    """The kernel after its run on the simulated device, compared with NumPy."""
    text = TEXT.replace("{policy}", policy).replace("STORE", store)
    kernel = compiled(text, arch, M=M, N=N, K=32, threads=threads, dtype=dtype)
    rng = np.random.default_rng(M + N)
    a, b = rng.integers(-4, 5, (M, 32)).astype(np.float16), rng.integers(-4, 5, (32, N)).astype(np.float16)
    c = np.full((2, M, N + 16), 9, np.dtype(getattr(ml_dtypes, dtype, dtype)))
    kernel(a, b, c)
    assert tuple(kernel.findings) == (), [str(finding) for finding in kernel.findings]
    expected = np.zeros((2, M, N + 16), np.float32)
    expected[1, :, column : column + N] = a.astype(np.float32) @ b.astype(np.float32)
    np.testing.assert_array_equal(c.astype(np.float32), expected)
    return kernel


def matrices(kernel: Any) -> int:
    return thread_text(kernel).count("stmatrix")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize(
    ("M", "N", "threads", "policy"),
    [
        (64, 64, 128, "Square"),
        (64, 64, 128, "FullRow"),
        (64, 128, 128, "FullCol"),
        (32, 48, 64, "FullRow"),
        (128, 32, 64, "Square"),
    ],
)
def test_every_warp_stores_its_part(M, N, threads, policy, dtype):
    assert matrices(run(M, N, threads, policy, dtype)) == 1


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"arch": "sm_80"}, "there is no such instruction"),
        ({"dtype": "float32"}, "elements have 32 bits"),
        ({"store": "T.copy(c, s[1, 0:M, 5:N + 5])", "column": 5}, "rows of matrices would not begin at 16 bytes"),
        (
            {"store": "for i, j in T.Parallel(M, N):\n                s[1, i, 8 + j] = T.cast(c[i, j], dtype)"},
            "the loop is the user's, and may stand where only some threads run it",
        ),
        (
            {
                "store": "for i, j in T.Parallel(M, N):\n                s[1, M - 1 - i, 8 + j] = T.cast(c[M - 1 - i, j], dtype)"
            },
            "rows are not in step",
        ),
        ({"N": 32, "threads": 128, "policy": "FullCol"}, "a warp has 8 columns"),
    ],
)
def test_others_store_elements(given, why):
    assert matrices(run(**given)) == 0, why
