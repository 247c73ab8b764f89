"""What is advised for a parameter of an eager kernel without annotation: the rank and dtype of the array passed."""

from __future__ import annotations

import numpy as np
import pytest

import tilelang_nb

CELL = """
import tilelang

@tilelang.jit
def total(X):
    Y = T.empty((4,), "float32")
    with T.Kernel(1, threads=32) as bx:
        Y[0] = X[0]
    return Y

total(array)
"""


@pytest.mark.parametrize(
    ("array", "advice"),
    [
        (np.zeros(8, np.float32), 'write `N = T.const("N")` and `X: T.Tensor[[N], T.float32]`'),
        (np.zeros((2, 3), np.int8), 'write `M, N = T.const("M, N")` and `X: T.Tensor[[M, N], T.int8]`'),
    ],
)
def test_the_annotation_is_that_of_the_argument(array: np.ndarray, advice: str) -> None:
    names = {"T": tilelang_nb.language, "array": array}
    (said,) = tilelang_nb.compile_cell(CELL, names, target="sim").diagnostics
    assert (said.code, said.help) == ("TL207", advice)
