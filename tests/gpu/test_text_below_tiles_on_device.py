"""Copies of single threads, loops dealt out by hand, and names of CUDA C give on a GPU what NumPy gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from lowering.test_loop_layouts_by_hand import LAYOUTS
from lowering.test_loop_layouts_by_hand import TEXT as DEALT
from lowering.test_ptx_cp_async import EDGE, GATHERED, RING, TURNED

import tilelang_nb


def kernel(text: str) -> Any:
    cell = tilelang_nb.compile_cell(text, {}, target="cuda")
    assert cell.ok, cell.to_text()
    return cell.namespace["k"]


@pytest.mark.parametrize(("dtype", "count"), [("float16", 8), ("float16", 2), ("float32", 1), ("int8", 8)])
@pytest.mark.parametrize("predicate", ["", ", row != 1"])
def test_copies_of_single_threads(dtype: str, count: int, predicate: str) -> None:
    text = TURNED.format(
        dtype=dtype, count=count, columns=256, predicate=predicate, wait="T.ptx_wait_group(0)", layout="pass",
        target="S[row, column]", source="A[row, column]",
    )  # fmt: skip
    a = np.random.default_rng(1).integers(-50, 50, (4, 256)).astype(dtype)
    b = np.full_like(a, 99)
    kernel(text)(a, b)
    expected = a.copy()
    if predicate:
        expected[1] = 0
    np.testing.assert_array_equal(b, expected[:, ::-1])


def test_rows_that_are_looked_up() -> None:
    rng = np.random.default_rng(3)
    a, rows = rng.standard_normal((64, 128)).astype(np.float16), rng.integers(0, 64, 16).astype(np.int32)
    b = np.zeros((16, 128), np.float32)
    kernel(GATHERED)(a, rows, b)
    expected = a[rows].astype(np.float32) * 2
    expected[rows == 0, 64:] = 0
    np.testing.assert_array_equal(b, expected)


def test_a_ring_and_an_edge() -> None:
    a = np.random.default_rng(5).integers(-9, 10, (8, 512)).astype(np.float32)
    b = np.zeros(512, np.float32)
    kernel(RING.format(pending=1))(a, b)
    np.testing.assert_array_equal(b, a.sum(0)[::-1])
    row, turned = np.arange(1, 62).astype(np.float16), np.zeros(64, np.float16)
    kernel(EDGE)(row, turned)
    np.testing.assert_array_equal(turned, np.concatenate([row, np.zeros(3, np.float16)])[::-1])


@pytest.mark.parametrize("name", LAYOUTS)
def test_iterations_run_where_the_text_says(name: str) -> None:
    layout, shape, expected = LAYOUTS[name]
    names, extents = ", ".join("ijk"[: len(shape)]), ", ".join(map(str, shape))
    made = kernel(DEALT.format(shape=shape, layout=layout, names=names, extents=extents, threads=128))
    a = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    b, who = np.zeros(shape, np.float32), np.full(shape, -1, np.int32)
    made(a, b, who)
    np.testing.assert_array_equal(b, a * 2)
    np.testing.assert_array_equal(who, np.fromfunction(expected, shape, dtype=np.int64))


@pytest.mark.parametrize("name", ["half", "new", "max", "float4", "threadIdx"])
def test_names_that_are_words_of_cuda(name: str) -> None:
    made = kernel(
        f"""
@T.prim_func
def k(A: T.Tensor((8, 64), "float16"), B: T.Tensor((8, 64), "float32"), {name}: T.int32):
    with T.Kernel(1, threads=32):
        for row in range({name}):
            for i in T.Parallel(64):
                B[row, i] = T.max(T.cast(A[row, i], "float32"), 0.5)
"""
    )
    a = np.random.default_rng(0).standard_normal((8, 64)).astype(np.float16)
    b = np.zeros((8, 64), np.float32)
    made(a, b, 8)
    np.testing.assert_array_equal(b, np.maximum(a.astype(np.float32), 0.5))
