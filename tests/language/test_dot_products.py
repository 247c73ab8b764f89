"""`T.dp4a` is four products of bytes and their sum."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang_nb


@pytest.mark.parametrize(("dtype", "total"), [("int8", "int32"), ("uint8", "uint32"), ("uint8", "int32")])
@pytest.mark.parametrize("operands", ["A[t, j * 4], B[t, j * 4], C[t]", "A[t, j * 4:j * 4 + 4], B[t, j * 4], C[t]"])
def test_sums_of_four_products_are_exact(dtype: str, total: str, operands: str) -> None:
    compiled = tilelang_nb.compile_cell(
        f"""
@T.prim_func
def k(A: T.Tensor((32, 16), "{dtype}"), B: T.Tensor((32, 16), "{dtype}"), C: T.Tensor((32,), "{total}")):
    with T.Kernel(1, threads=32):
        t = T.get_thread_binding(0)
        for j in T.serial(4):
            T.dp4a({operands})
""",
        target="sim",
    )
    assert compiled.ok, compiled.to_text()
    random, limits = np.random.default_rng(0), np.iinfo(dtype)
    a, b = random.integers(limits.min, limits.max + 1, (2, 32, 16)).astype(dtype)
    c = np.arange(32, dtype=total)
    compiled.kernels["k"](a, b, c)
    assert np.array_equal(c, np.arange(32) + (a.astype("int64") * b.astype("int64")).sum(1))


def test_mistakes(kernel: Any, refused: Any) -> None:
    from tilelang_nb import language as T

    a, b, c = (
        kernel.buffer(name, (8,), kind, "local") for name, kind in (("a", "int8"), ("b", "int8"), ("c", "int32"))
    )
    for operands, code in (
        ((a, b[0], c[0]), "TL204"),
        ((a[5], b[0], c[0]), "TL204"),
        ((a[0], kernel.buffer("u", (4,), "uint8", "local")[0], c[0]), "TL205"),
        ((a[0], b[0], kernel.buffer("f", (4,), "float32", "local")[0]), "TL205"),
        ((a[0], b[0], c), "TL004"),
        ((3, b[0], c[0]), "TL004"),
    ):
        with refused(code):
            T.dp4a(*operands)
