"""What is said of several arguments that do not fit, and of one that the kernel writes."""

from __future__ import annotations

import numpy as np
import pytest

import tilelang_nb
from tilelang_nb import LaunchError

CELL = """
@T.prim_func
def copy(A: T.Tensor((100,), "float32"), B: T.Tensor((100,), "float32")):
    with T.Kernel(1, threads=100):
        for i in T.Parallel(100):
            B[i] = A[i]
"""


def refused(*arguments: np.ndarray):
    kernel = tilelang_nb.compile_cell(CELL, target="sim").kernels["copy"]
    with pytest.raises(LaunchError) as caught:
        kernel(*arguments)
    return caught.value.diagnostic


def test_all_arguments_of_another_dtype_are_said_at_once() -> None:
    said = refused(np.arange(100), np.zeros(100))
    assert said.code == "TL301" and "`A`" in said.message and "`A.astype" in said.help.replace("pass ", "")
    (note,) = said.notes
    assert "argument `B`: expected dtype float32, given dtype float64" in note.message


def test_an_array_that_the_kernel_writes_is_not_to_be_converted_on_the_way() -> None:
    said = refused(np.zeros(100, np.float32), np.zeros(100))
    assert "astype" not in said.help and 'np.zeros((100,), "float32")' in said.help and not said.notes
