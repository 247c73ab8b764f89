"""Groups of lanes that may lie over an edge: vectors where they do not, element by element where they do."""

from __future__ import annotations

import numpy as np
import pytest

import tilelang_nb

COPY = """
{before}@T.prim_func
def k(A: T.Tensor(({n},), "{dtype}"), B: T.Tensor(({n},), "{dtype}")):
    with T.Kernel(T.ceildiv({n}, 512), threads=64) as bx:
        for i in T.Parallel(512):
            B[bx * 512 + i] = A[bx * 512 + i] * 2
"""
FRAGMENT = """
{before}@T.prim_func
def k(A: T.Tensor(({n},), "{dtype}"), B: T.Tensor(({n},), "{dtype}")):
    with T.Kernel(T.ceildiv({n}, 512), threads=64) as bx:
        f = T.alloc_fragment((512,), "float32")
        T.copy(A[bx * 512], f)
        for i in T.Parallel(512):
            f[i] = f[i] * 2
        T.copy(f, B[bx * 512])
"""
SIZES = (1, 3, 4, 511, 512, 513, 1023, 1030)


def check(kernel: object, n: int, dtype: str) -> None:
    a, b = np.arange(1, n + 1).astype(dtype), np.zeros(n, dtype)
    kernel(a, b)
    assert np.array_equal(b, a * 2)


@pytest.mark.parametrize("text", [COPY, FRAGMENT], ids=["elements", "through a fragment"])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_every_size_is_right_and_uses_vectors(text: str, dtype: str) -> None:
    dynamic = tilelang_nb.compile_cell(text.format(before='n = T.dynamic("n")\n\n', n="n", dtype=dtype)).kernels["k"]
    assert "vectorized(" in next(stage.text for stage in dynamic.stages if stage.name == "thread")
    for n in SIZES:
        check(dynamic, n, dtype)
        check(tilelang_nb.compile_cell(text.format(before="", n=n, dtype=dtype)).kernels["k"], n, dtype)


def test_an_edge_that_lies_between_groups_needs_one_condition() -> None:
    kernel = tilelang_nb.compile_cell(COPY.format(before="", n=1000, dtype="float32")).kernels["k"]
    thread = next(stage.text for stage in kernel.stages if stage.name == "thread")
    assert thread.count("if ") == 1 and "else" not in thread and "vectorized(4" in thread


@pytest.mark.parametrize("condition", ["i < n", "i <= n", "n > i", "n >= i", "i < n and i < m", "3 <= i"])
def test_conditions_of_the_kernel_are_split_as_well(condition: str) -> None:
    kernel = tilelang_nb.compile_cell(f"""
@T.prim_func
def k(A: T.Tensor((512,), "int32"), B: T.Tensor((512,), "int32"), n: T.int32, m: T.int32):
    with T.Kernel(1, threads=64):
        for i in T.Parallel(512):
            if {condition}:
                B[i] = A[i]
""").kernels["k"]
    a = np.arange(512, dtype=np.int32) + 1
    for n, m in ((0, 0), (1, 9), (5, 3), (510, 512), (511, 511), (600, 7)):
        b = np.zeros(512, np.int32)
        kernel(a, b, n, m)
        want = [x if eval(condition, {"i": i, "n": n, "m": m}) else 0 for i, x in enumerate(a)]
        assert np.array_equal(b, want), (condition, n, m)


def test_a_choice_by_value_leaves_loads_and_stores_wide() -> None:
    kernel = tilelang_nb.compile_cell("""
@T.prim_func
def k(A: T.Tensor((510,), "float32"), B: T.Tensor((510,), "float32")):
    with T.Kernel(1, threads=64):
        for i in T.Parallel(512):
            B[i] = T.if_then_else(A[i] > 100, 100, A[i])
""").kernels["k"]
    a, b = np.arange(510, dtype=np.float32), np.zeros(510, np.float32)
    kernel(a, b)
    assert np.array_equal(b, np.minimum(a, 100))
