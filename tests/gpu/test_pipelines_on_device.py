"""Pipelines, copies by hand and tiles in other orders give on a GPU what Python and NumPy give."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np
import pytest
from lowering.pipelined_bodies import CASES, ROWS, TABLE, WIDTH, text_of

import tilelang_nb


def compiled(text: str, **names: Any) -> Any:
    cell = tilelang_nb.compile_cell(textwrap.dedent(text), dict(names), target="cuda")
    assert cell.ok, cell.to_text()
    return cell.namespace["k"]


@pytest.mark.parametrize("stages", [2, 4])
@pytest.mark.parametrize("name", CASES)
def test_the_loop_gives_what_python_gives(name: str, stages: int) -> None:
    case = CASES[name]
    kernel = compiled(text_of(case, stages))
    a = np.random.default_rng(0).integers(-8, 9, (ROWS, WIDTH)).astype(np.float32)
    for turns in (ROWS, 5, 1, 0):
        c, expected = np.zeros_like(a), np.zeros_like(a)
        kernel(a.copy(), TABLE.copy(), c, turns)
        case.python(a, TABLE, expected, turns)
        np.testing.assert_array_equal(c, expected)


RING = """
@T.prim_func
def k(A: T.Tensor((64, 1024), "float32"), C: T.Tensor((64, 1024), "float32")):
    with T.Kernel(64, threads=128) as bx:
        ring = T.alloc_shared((3, 1024), "float32")
        for i in T.unroll(2):
            T.async_copy(A[i, :], ring[i, :])
        for i in T.serial(64):
            T.ptx_wait_group(1)
            T.sync_threads()
            if i + 2 < 64:
                T.async_copy(A[i + 2, :], ring[(i + 2) % 3, :])
            else:
                T.ptx_commit_group()
            for x in T.Parallel(1024):
                C[i, x] = ring[i % 3, 1023 - x]
"""


def test_a_ring_of_copies_by_hand() -> None:
    a, c = np.random.default_rng(0).random((64, 1024), np.float32), np.zeros((64, 1024), np.float32)
    compiled(RING)(a, c)
    np.testing.assert_array_equal(c, a[:, ::-1])


PRODUCT = """
@T.prim_func
def k(A: T.Tensor((256, 256), "float16"), B: T.Tensor((256, 256), "float16"), C: T.Tensor((256, 256), "float32")):
    with T.Kernel(4, 4, threads=128) as (bx, by):
        A_s = T.alloc_shared((64, 32), "float16")
        B_s = T.alloc_shared((32, 64), "float16")
        c = T.alloc_fragment((64, 64), "float32")
        T.annotate_layout({{A_s: {first}, B_s: {second}}})
        T.clear(c)
        for k in T.Pipelined(8, num_stages=3):
            T.copy(A[by * 64, k * 32], A_s)
            T.copy(B[k * 32, bx * 64], B_s)
            T.gemm(A_s, B_s, c)
        T.copy(c, C[by * 64, bx * 64])
"""


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("T.make_linear_layout(A_s)", "T.make_linear_layout(B_s)"),
        ("lambda i, j: i * 40 + j", "lambda i, j: i * 72 + j"),
        ("lambda i, j: i * 33 + j", "lambda i, j: [j, i]"),
        ("lambda i, j: (i, (j + 8 * i) % 32)", "T.make_quarter_bank_swizzled_layout(B_s)"),
    ],
)
def test_a_product_reads_tiles_in_any_order(first: str, second: str) -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-8, 9, (256, 256)).astype(np.float16) for _ in range(2))
    c = np.zeros((256, 256), np.float32)
    compiled(PRODUCT.format(first=first, second=second))(a, b, c)
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32))


@pytest.mark.parametrize("turns", [0, 3, 7, 9])
def test_a_loop_that_is_left_early_leaves_nothing_under_way(turns: int) -> None:
    """The tile after the loop takes the place of the one that copies are still on their way to."""
    text = """
    @T.prim_func
    def k(A: T.Tensor((8, 64, 64), "float32"), C: T.Tensor((64, 64), "float32"), n: T.int32):
        with T.Kernel(1, threads=128) as bx:
            s = T.alloc_shared((64, 64), "float32")
            t = T.alloc_shared((64, 64), "float32")
            for i in T.Pipelined(8, num_stages=3):
                T.copy(A[i, :, :], s)
                for r, j in T.Parallel(64, 64):
                    C[r, j] += s[63 - r, j]
                if i == n:
                    break
            for r, j in T.Parallel(64, 64):
                t[r, j] = C[r, j] * 2
            for r, j in T.Parallel(64, 64):
                C[r, j] = t[r, 63 - j]
    """
    a = np.random.default_rng(0).integers(-8, 9, (8, 64, 64)).astype(np.float32)
    c = np.zeros((64, 64), np.float32)
    compiled(text)(a, c, turns)
    np.testing.assert_array_equal(c, 2 * a[: turns + 1, ::-1].sum(0)[:, ::-1])
