"""Conditions that hold for a whole tile are asked once; the values are those of the text."""

from __future__ import annotations

import numpy as np
import pytest
from lowering.products import compiled

TEXT = """
    @T.prim_func
    def k(A: T.Tensor((96, 96), "float32"), C: T.Tensor((96, 96), "float32")):
        with T.Kernel(3, threads=64) as bx:
            f = T.alloc_fragment((32, 16), "float32")
            for n in T.serial(6):
                for i, j in T.Parallel(32, 16):
                    f[i, j] = T.if_then_else(CONDITION, A[bx * 32 + i, n * 16 + j], -1.0)
                T.copy(f, C[bx * 32, n * 16])
"""
ROW, COLUMN = np.arange(96)[:, None], np.arange(96)[None, :]


def text_of(kernel, stage: str) -> str:
    return next(one.text for one in kernel.stages if one.name == stage)


NAMED = TEXT.replace(
    "                    f[i, j] = T.if_then_else(CONDITION,",
    "                    inside = CONDITION\n                    f[i, j] = T.if_then_else(inside,",
)


def check(condition: str, expected: np.ndarray, asked: bool, text: str = TEXT) -> None:
    kernel = compiled(text.replace("CONDITION", condition))
    a = np.random.default_rng(0).standard_normal((96, 96)).astype(np.float32)
    c = np.zeros_like(a)
    kernel(a, c)
    assert tuple(kernel.findings) == ()
    np.testing.assert_array_equal(c, np.where(expected, a, np.float32(-1)))
    assert ("else:" in text_of(kernel, "skip-masks")) == asked


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("bx * 32 + i >= n * 16 + j", ROW >= COLUMN),
        ("bx * 32 + i > n * 16 + j", ROW > COLUMN),
        ("n * 16 + j <= bx * 32 + i", ROW >= COLUMN),
        ("n * 16 + j < bx * 32 + i", ROW > COLUMN),
        ("bx * 32 + i <= n * 16 + j", ROW <= COLUMN),
        ("bx * 32 + i - (n * 16 + j) < 40", ROW - COLUMN < 40),
        ("(bx * 32 + i >= n * 16 + j) and (bx * 32 + i - n * 16 - j < 40)", (ROW >= COLUMN) & (ROW - COLUMN < 40)),
        ("bx * 32 + 31 - i >= n * 16 + 2 * j - 5", 32 * (ROW // 32) + 31 - ROW % 32 >= COLUMN + COLUMN % 16 - 5),
    ],
)
def test_comparisons_of_places(condition, expected):
    check(condition, expected, asked=True)


def test_a_mask_with_a_name():
    check("bx * 32 + i >= n * 16 + j", ROW >= COLUMN, asked=True, text=NAMED)


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("bx * 32 + i == n * 16 + j", ROW == COLUMN),  # no direction
        ("A[bx * 32 + i, n * 16 + j] > 0.0", None),  # memory
        ("(bx * 32 + i) * j >= n * 16", ROW * (COLUMN % 16) >= COLUMN // 16 * 16),  # no one direction
        ("i >= j", ROW % 32 >= COLUMN % 16),  # nothing to ask
    ],
)
def test_what_is_asked_for_every_element(condition, expected):
    if expected is None:
        expected = np.random.default_rng(0).standard_normal((96, 96)).astype(np.float32) > 0
    check(condition, expected, asked=False)


def test_a_name_of_the_loop_is_looked_through():
    text = TEXT.replace("f[i, j] =", "row = bx * 32 + i\n                    f[i, j] =").replace(
        "CONDITION", "row >= n * 16 + j"
    )
    kernel = compiled(text)
    a, c = np.ones((96, 96), np.float32), np.zeros((96, 96), np.float32)
    kernel(a, c)
    assert tuple(kernel.findings) == () and "else:" in text_of(kernel, "skip-masks")
    np.testing.assert_array_equal(c, np.where(ROW >= COLUMN, 1, -1))
