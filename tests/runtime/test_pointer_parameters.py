"""Kernels whose parameters are pointers: the array that a launch passes is what `T.make_tensor` says."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilelang_nb

PRODUCT = """
@T.prim_func
def product(a: T.ptr, b: T.ptr, c: T.ptr, m: T.int32, n: T.int32, k: T.int32):
    A = T.make_tensor(a, (m, k), "float16")
    B = T.make_tensor(b, (k, n), "float16")
    C = T.make_tensor(c, (m, n), T.float32)
    with T.Kernel(T.ceildiv(n, 32), T.ceildiv(m, 32), threads=128) as (bx, by):
        A_shared = T.alloc_shared((32, 32), "float16")
        B_shared = T.alloc_shared((32, 32), "float16")
        C_local = T.alloc_fragment((32, 32), "float32")
        T.clear(C_local)
        for ko in T.Pipelined(T.ceildiv(k, 32), num_stages=2):
            T.copy(A[by * 32, ko * 32], A_shared)
            T.copy(B[ko * 32, bx * 32], B_shared)
            T.gemm(A_shared, B_shared, C_local)
        T.copy(C_local, C[by * 32, bx * 32])
"""
SCALED = """
@T.prim_func
def scaled(a: {annotation}, b: T.ptr, n: T.int64):
    with T.Kernel(T.ceildiv(n, 64), threads=64) as bx:
        A = T.make_tensor(a, (n,), "{dtype}")
        B = T.make_tensor(b, [n, 2], "{dtype}"{strides})
        for i in T.Parallel(64):
            for j in range(2):
                B[bx * 64 + i, j] = A[bx * 64 + i] * (j + 2)
"""


def kernel(text: str, target: str = "sim") -> Any:
    compiled = tilelang_nb.compile_cell(text, target=target)
    assert compiled.ok, compiled.to_text()
    return next(iter(compiled.kernels.values()))


def scaled(annotation: str = "T.ptr", dtype: str = "float32", strides: str = "") -> Any:
    return kernel(SCALED.format(annotation=annotation, dtype=dtype, strides=strides))


def refused(call: Any, *arguments: Any) -> str:
    with pytest.raises(tilelang_nb.LaunchError) as caught:
        call(*arguments)
    return str(caught.value)


@pytest.mark.parametrize(("m", "n", "k"), [(64, 32, 96), (45, 70, 33)])
def test_a_product_over_pointers_takes_its_sizes_from_numbers(m: int, n: int, k: int) -> None:
    random = np.random.default_rng(0)
    a, b = random.standard_normal((m, k)).astype("float16"), random.standard_normal((k, n)).astype("float16")
    c = np.zeros((m, n), "float32")
    product = kernel(PRODUCT)
    product(a, b, c, m, n, k)
    np.testing.assert_allclose(c, a.astype("float32") @ b.astype("float32"), rtol=1e-3, atol=1e-3)
    again = np.zeros(m * n, "float32")
    product(a.reshape(-1), np.concatenate([b.reshape(-1), b.reshape(-1)]), again, m, n, k)
    assert np.array_equal(again.reshape(m, n), c)


def test_the_program_for_a_device_is_that_of_tensors() -> None:
    source = kernel(PRODUCT, "cuda").cuda_source
    assert "a" in source and "product" in source
    assert len(kernel(PRODUCT, "cuda").ptx) > 1000


@pytest.mark.parametrize("annotation", ["T.ptr", "T.ptr()", 'T.ptr("bfloat16")', "T.handle", 'T.handle("bfloat16")'])
def test_every_spelling_of_a_pointer_is_one(annotation: str) -> None:
    a = np.arange(80).astype(ml_dtypes.bfloat16)
    b = np.zeros((80, 2), ml_dtypes.bfloat16)
    scaled(annotation, "bfloat16")(a, b, 80)
    assert np.array_equal(b.astype("float32"), np.stack([a.astype("float32") * 2, a.astype("float32") * 3], 1))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float8_e4m3fn"])
def test_a_pointer_with_strides_skips_what_lies_between(dtype: str) -> None:
    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    a = (np.arange(5) % 4).astype(kind)
    b = np.full((5 * 3,), 9, kind)
    scaled(dtype=dtype, strides=", strides=(3, 1)")(a, b, 5)
    wanted = np.full((5, 3), 9.0)
    wanted[:, 0], wanted[:, 1] = np.arange(5) % 4 * 2, np.arange(5) % 4 * 3
    assert np.array_equal(b.astype("float64").reshape(5, 3), wanted)


def test_an_array_that_is_too_small_is_refused_with_the_shape_that_is_needed() -> None:
    said = refused(scaled(), np.zeros(9, "float32"), np.zeros((10, 2), "float32"), 10)
    assert "error[TL301]" in said and "10 elements for shape (n,) with n = 10 (argument n)" in said
    assert "9 elements, shape (9,)" in said


def test_what_is_no_array_in_one_row_of_the_dtype_is_refused() -> None:
    a, b = np.zeros(10, "float32"), np.zeros((10, 2), "float32")
    assert "dtype float64" in refused(scaled(), a.astype("float64"), b, 10)
    assert "elements in one row" in refused(scaled(), np.zeros(40, "float32")[::2], b, 10)
    assert "pass the array itself, not its address" in refused(scaled(), a.ctypes.data, b, 10)
    assert "TL301" in refused(scaled(), None, b, 10)
    assert "these sizes do not fit" in refused(scaled(), a, b, -1)
    both = refused(scaled(), a.astype("float64"), b[:3], 10)
    assert "dtype float64" in both and "20 elements" in both
    assert "n" in refused(scaled(), a, b)


def test_zero_elements_are_no_mistake() -> None:
    scaled()(np.zeros(0, "float32"), np.zeros((3, 2), "float32"), 0)
