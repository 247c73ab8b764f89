"""What is advised for a race of a read with the store of the same statement."""

from __future__ import annotations

import warnings

import numpy as np

import tilelang_nb

CELL = """
@T.prim_func
def shift(A: T.Tensor((1025,), "float32")):
    with T.Kernel(1, threads=256) as bx:
        for i in T.Parallel(1024):
            A[i] = A[i + 1]
"""


def test_a_shift_in_place_is_advised_another_buffer() -> None:
    kernel = tilelang_nb.compile_cell(CELL, target="sim").kernels["shift"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kernel(np.arange(1025, dtype=np.float32))
    (found,) = kernel.findings
    assert found.code == "TL401" and "another buffer" in found.help
