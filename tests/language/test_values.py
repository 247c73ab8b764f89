"""What Python and NumPy do with device values, buffers and regions as wholes."""

from __future__ import annotations

import operator

import numpy as np
import pytest

import tilelang_nb

CELL = """
import math
import numpy as np

@T.prim_func
def k(A: T.Tensor((8, 4), "float32"), B: T.Tensor((8,), "float32")):
    with T.Kernel(1, threads=8):
        for i in T.Parallel(8):
            B[i] = {}
"""


def said(expression):
    (diagnostic,) = tilelang_nb.compile_cell(CELL.format(expression)).diagnostics
    return diagnostic


@pytest.mark.parametrize("expression", ["A + 1", "2.0 * A", "B[i] - A", "-A", "B[i] < A", "A / B", "abs(A)"])
def test_a_buffer_in_arithmetic_lacks_its_indices(expression):
    found = said(expression)
    assert found.code == "TL201" and "as a number" in found.message and "`A[i, j]`" in found.help


def test_a_region_in_arithmetic_lacks_the_indices_that_were_sliced():
    assert said("A[:, 0] + 1").message == "a region of `A` of shape (8,) is used as a number"


@pytest.mark.parametrize(("function", "ours"), [("exp", "T.exp"), ("maximum", "T.max"), ("arctan", "T.atan")])
def test_a_numpy_function_of_a_device_value_names_the_one_of_the_language(function, ours):
    arguments = "B[i], 0" if function == "maximum" else "B[i]"
    found = said(f"np.{function}({arguments})")
    assert found.code == "TL128" and found.help == f"use `{ours}`"


def test_a_function_of_pythons_math_names_the_one_of_the_language():
    found = said("math.sqrt(B[i] + 1)")
    assert found.code == "TL128" and found.help == "use `T.sqrt`"


@pytest.mark.parametrize("expression", ["np.ones(3) * B[i]", "np.sum(B[i])", "np.sign(B[i])"])
def test_numpy_without_a_device_form_is_refused(expression):
    assert said(expression).code == "TL128"


@pytest.mark.parametrize("op", ["add", "sub", "mul", "truediv", "floordiv", "mod"])
@pytest.mark.parametrize("scalar", ["np.float32(3)", "np.array(3.0, 'float32')", "np.float64(3)", "np.int64(3)"])
def test_numpy_scalars_are_numbers_on_either_side(op, scalar):
    sign = {"add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%"}[op]
    a = np.arange(1, 33, dtype=np.float32).reshape(8, 4)
    for expression, order in ((f"{scalar} {sign} A[i, 1]", 1), (f"A[i, 1] {sign} {scalar}", -1)):
        kernel = tilelang_nb.compile_cell(CELL.format(expression)).kernels["k"]
        b = np.zeros(8, np.float32)
        kernel(a, b)
        pair = (np.float32(3), a[:, 1])[::order]
        np.testing.assert_allclose(b, getattr(operator, op)(*pair), rtol=1e-6)
