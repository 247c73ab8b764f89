"""Vectors at 64-bit indices are vectors in CUDA C."""

from __future__ import annotations

import re

import pytest

import tilelang_nb

TEXT = """
m = T.symbolic("m")

@T.prim_func
def k(A: T.Tensor((m, {n}), "{dtype}"), C: T.Tensor((m, {n}), "{dtype}")):
    with T.Kernel(T.ceildiv(m, 64), T.ceildiv({n}, 128), threads=128) as (by, bx):
        s = T.alloc_shared((64, 128), "{dtype}")
        f = T.alloc_fragment((64, 128), "{dtype}")
        T.copy(A[by * 64, bx * 128], s)
        T.copy(s, f)
        for i, j in T.Parallel(64, 128):
            f[i, j] = f[i, j] + f[i, j]
        T.copy(f, C[by * 64, bx * 128])
"""


@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_90a"])
@pytest.mark.parametrize("n", [256, 136, 100])
@pytest.mark.parametrize("dtype", ["float16", "float32", "uint8"])
def test_the_rows_are_symbolic(dtype: str, n: int, arch: str) -> None:
    cell = tilelang_nb.compile_cell(TEXT.format(n=n, dtype=dtype), {}, target="cuda", arch=arch)
    assert cell.ok, cell.to_text()
    source = cell.kernels["k"].cuda_source
    assert "longlong" not in source.split("__global__")[-1]  # no vector of indices
    assert re.search(r"\*\(\w+\*\)\(C", source)
