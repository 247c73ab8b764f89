"""Eager kernels whose parameters are pointers."""

from __future__ import annotations

from typing import Any

import numpy as np

import tilelang_nb

PRODUCT = """
@tilelang.jit
def product(A: T.ptr, B: T.ptr, C: T.ptr, M: int, N: int, K: int, dtype: T.dtype, out_dtype: T.dtype, block: int = 32):
    A = T.make_tensor(A, (M, K), dtype)
    B = T.make_tensor(B, (K, N), dtype)
    C = T.make_tensor(C, (M, N), out_dtype)
    with T.Kernel(T.ceildiv(M, block), T.ceildiv(N, block), threads=128) as (bx, by):
        A_shared = T.alloc_shared((block, block), dtype)
        B_shared = T.alloc_shared((block, block), dtype)
        C_local = T.alloc_fragment((block, block), out_dtype)
        T.clear(C_local)
        for k in T.Pipelined(T.ceildiv(K, block), num_stages=2):
            T.copy(A[bx * block, k * block], A_shared)
            T.copy(B[k * block, by * block], B_shared)
            T.gemm(A_shared, B_shared, C_local)
        T.copy(C_local, C[bx * block, by * block])
"""
SHIFTED = """
@tilelang.jit
def shifted(a: T.ptr, X, n: T.int32):
    N = T.const("N")
    X: T.Tensor[[N], T.float32]
    A = T.make_tensor(a, (n, 2), "float32")
    Y = T.empty((N,), T.float32)
    with T.Kernel(1, threads=32):
        for i in T.serial(n):
            Y[i] = A[i, 1] + X[i]
    return Y
"""


def kernel(text: str) -> Any:
    compiled = tilelang_nb.compile_cell(text, target="sim")
    assert compiled.ok, compiled.to_text()
    return next(value for name, value in compiled.namespace.items() if name in ("product", "shifted"))


def test_a_product_over_pointers_is_compiled_for_its_numbers() -> None:
    product = kernel(PRODUCT)
    random = np.random.default_rng(0)
    a, b = random.standard_normal((48, 40)).astype("float16"), random.standard_normal((40, 32)).astype("float16")
    c = np.zeros((48, 32), "float32")
    product(a, b, c, 48, 32, 40, "float16", "float32")
    np.testing.assert_allclose(c, a.astype("float32") @ b.astype("float32"), rtol=1e-3, atol=1e-3)
    product(a, b.reshape(-1), c.reshape(-1), 48, 32, 40, "float16", "float32")
    assert len(product.kernels) == 1
    from tilelang_nb import language as T

    made = product.compile(A=T.ptr(), B=T.ptr(), C=T.ptr(), M=64, N=64, K=64, dtype="float16", out_dtype="float32")
    assert [parameter.shape for parameter in made.parameters] == [(64, 64)] * 3


def test_pointers_stand_beside_arrays_sizes_numbers_and_results() -> None:
    shifted = kernel(SHIFTED)
    x = np.ones(10, "float32")
    assert shifted(np.arange(20, dtype="float32"), x, 10).tolist() == [2.0 * at + 2 for at in range(10)]
    assert shifted(np.arange(8, dtype="float32"), x, 4)[:4].tolist() == [2, 4, 6, 8]
    assert len(shifted.kernels) == 1
