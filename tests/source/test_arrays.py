"""What is said to people who know arrays of NumPy and PyTorch: every method and function leads to the operation that does
it in a kernel, and that operation exists.
"""

from __future__ import annotations

import re

import numpy as np
import pytest

import tilelang_nb
from tilelang_nb.frontend.static import check_text
from tilelang_nb.language import __all__ as OPERATIONS
from tilelang_nb.language.values import Buffer
from tilelang_nb.source.arrays import CALLS, CONVERSIONS, OF_ARRAYS, SPELT_OTHERWISE, for_array, for_scalar
from tilelang_nb.source.diagnostic import Refusal
from tilelang_nb.source.edits import apply, chosen

HEAD = """import math
import numpy as np
@T.prim_func
def k(A: T.Tensor((8, 4), "float32"), B: T.Tensor((8,), "float32"), n: T.int32):
    with T.Kernel(1, threads=8):
"""
NAMED = re.compile(r"`T\.(\w+)")


def cell(body: str) -> str:
    return HEAD + "".join(f"        {line}\n" for line in body.split("\n"))


def said(body: str) -> list[tuple[str, str, str]]:
    """(code, message, help) of each mistake of a body."""
    return [(d.code, d.message, d.help) for d in tilelang_nb.compile_cell(cell(body), target="sim").diagnostics]


@pytest.mark.parametrize("name", sorted({*OF_ARRAYS, *SPELT_OTHERWISE, *CONVERSIONS, "exp", "sqrt", "tanh"}))
def test_every_operation_that_is_named_exists(name: str) -> None:
    for text in (for_array(name, "A", 2, OPERATIONS), f"`{for_scalar(name, OPERATIONS)}`"):
        assert all(operation in OPERATIONS for operation in NAMED.findall(text)), text
        assert "{" not in text.replace("{x}", "")


METHODS = {
    "A.fill(0)": "T.fill(A, value)",
    "A.zero_()": "T.clear(A)",
    "A.copy_(B)": "T.copy(source, A)",
    "x = A.copy()": "T.copy(A, tile)",
    "x = A.sum()": "T.reduce_sum",
    "x = A.mean()": "divide by the count",
    "x = A.max()": "T.reduce_max",
    "x = A.amin(1)": "T.reduce_min",
    "x = A.cumsum(0)": "T.cumsum",
    "x = A.argmax()": "loop over its elements",
    "x = A.clip(0, 1)": "T.clamp(A[i, j], low, high)",
    "x = A.astype('float16')": "T.cast(A[i, j], dtype)",
    "x = A.half()": "T.cast(A[i, j], dtype)",
    "x = A.T": "A[j, i]",
    "x = A.transpose()": "A[j, i]",
    "x = A.reshape(4, 8)": "T.reshape(A, shape)",
    "x = A.view(32)": "T.view(A, shape)",
    "x = A.dot(B)": "T.gemm",
    "x = A.size": "A.shape",
    "x = A.numel()": "A.shape",
    "x = A.dim()": "len(A.shape)",
    "x = B.item()": "B[i]",
    "x = A.exp()": "T.exp(A[i, j])",
    "x = A.relu_of_nothing": "operations are functions of `T`",
    "x = A.shpae": "did you mean `shape`?",
}


@pytest.mark.parametrize("statement", METHODS)
def test_a_method_or_attribute_of_a_buffer_leads_to_the_operation(statement: str) -> None:
    ((code, message, help),) = said(statement)
    assert code == "TL003" and "has no attribute" in message and METHODS[statement] in help
    (known,) = check_text(cell(statement))
    assert (known.code, known.message, known.help) == (code, message, help)


SCALARS = {
    "(B[0] * 2.0).sqrt()": "write `T.sqrt(B[0] * 2.0)`",
    "B[0].exp()": "write `T.exp(B[0])`",
    "B[n].clamp(0.0, 1.0)": "write `T.clamp(B[n], low, high)`",
    "B[0].to('float16')": "write `T.cast(B[0], dtype)`",
    "B[0].half()": 'write `T.cast(B[0], "float16")`',
    "B[0].item()": "write `B[0]`",
}


@pytest.mark.parametrize("expression", SCALARS)
def test_a_method_of_a_scalar_leads_to_the_call_of_it(expression: str) -> None:
    ((code, message, help),) = said(f"x = {expression}")
    assert code == "TL003" and help == SCALARS[expression]
    if expression.startswith("B["):  # what else a scalar is, only the build knows
        (known,) = check_text(cell(f"x = {expression}"))
        assert (known.code, known.message, known.help) == (code, message, help)


FUNCTIONS = {
    "np.sum(A)": "T.reduce_sum",
    "np.mean(A[0:4, 0])": "divide by the count",
    "np.max(A)": "T.reduce_max",
    "np.maximum(A, 0)": "T.max(A[i, j], other)",
    "np.exp(B)": "T.exp(B[i])",
    "np.add.reduce(A)": "T.reduce_sum",
    "np.dot(A, B)": "T.gemm",
    "np.where(A, B, 0)": "T.if_then_else",
    "np.clip(B, 0, 1)": "T.clamp(B[i], low, high)",
    "np.copyto(B, 0)": "T.copy(source, B)",
    "np.zeros_like(A)": "T.clear(A)",
    "np.transpose(A)": "A[j, i]",
    "np.array(B)": "B[i]",
    "np.reshape(A, (4, 8))": "T.reshape(A, shape)",
    "np.linalg.norm(A)": "`A[i, j]`",
    "np.clip(B[0], 0, 1)": "use `T.clamp`",
    "np.where(B[0], 1.0, 0.0)": "use `T.if_then_else`",
    "np.exp(B[0])": "use `T.exp`",
    "np.arctan2(B[0], 1.0)": "use `T.atan2`",
}


@pytest.mark.parametrize("expression", FUNCTIONS)
def test_a_function_of_numpy_leads_to_the_operation(expression: str) -> None:
    ((code, message, help),) = said(f"x = {expression}")
    assert code == "TL128" and expression.split("(")[0] in message and FUNCTIONS[expression] in help


def test_a_function_of_pytorch_leads_to_the_operation() -> None:
    class Function:
        __name__ = "softmax"

    tile = Buffer("A", (8, 4), "float32", "global", None)
    for name, wanted in (("sum", "T.reduce_sum"), ("exp", "T.exp(A[i, j])"), ("softmax", "`A[i, j]`")):
        function = Function()
        function.__name__ = name
        with pytest.raises(Refusal) as refused:
            Buffer.__torch_function__(function, (Buffer,), ([tile, 1],), {"dim": 0})
        assert refused.value.code == "TL128" and f"torch.{name}" in str(refused.value)
        assert wanted in refused.value.message.fill(refused.value.message.advice)


@pytest.mark.parametrize(
    "expression", ["B * 2.0", "1 - B", "np.ones(8) * B", "math.sqrt(B)", "B[0:4] + 1", "[1, 2][B]"]
)
def test_a_buffer_in_arithmetic_is_no_number(expression: str) -> None:
    ((code, message, help),) = said(f"x = {expression}")
    assert code == "TL201" and "is used as a number" in message and "`B[i]`" in help


EDITS = {
    "B.fill(0.5)": ("T.fill(B, 0.5)", lambda a, b: b.fill(0.5)),
    "B.zero_()": ("T.clear(B)", lambda a, b: b.fill(0)),
    "B.copy_(A[:, 0])": ("T.copy(A[:, 0], B)", lambda a, b: b.__setitem__(slice(None), a[:, 0])),
    "B[0] = (A[1, 1] * 2.0).sqrt()": ("B[0] = T.sqrt(A[1, 1] * 2.0)", lambda a, b: b.put(0, np.sqrt(a[1, 1] * 2))),
    "B[1] = A[1, 2].clip(0.0, 3.0)": ("B[1] = T.clamp(A[1, 2], 0.0, 3.0)", lambda a, b: b.put(1, a[1, 2].clip(0, 3))),
    "B[2] = A[1, 2].item() + 1": ("B[2] = A[1, 2] + 1", lambda a, b: b.put(2, a[1, 2].item() + 1)),
    "B[3] = A[0, 3].half()": ('B[3] = T.cast(A[0, 3], "float16")', lambda a, b: b.put(3, np.float16(a[0, 3]))),
    "B[4] = A[0, 3].to('int32')": ("B[4] = T.cast(A[0, 3], 'int32')", lambda a, b: b.put(4, np.int32(a[0, 3]))),
}


@pytest.mark.parametrize("statement", EDITS)
def test_the_edit_of_a_method_gives_what_numpy_and_pytorch_give(statement: str) -> None:
    wanted, python = EDITS[statement]
    made = tilelang_nb.compile_cell(cell(statement), target="sim")
    after = apply(made.text, [fix for _, fix in chosen(made.diagnostics)])
    assert after == cell(wanted)
    a, b = np.linspace(0.3, 9, 32, dtype=np.float32).reshape(8, 4), np.ones(8, np.float32)
    expected = b.copy()
    python(a, expected)
    tilelang_nb.compile_cell(after, target="sim").kernels["k"](a, b, 1)
    np.testing.assert_allclose(b, expected, rtol=1e-6)


@pytest.mark.parametrize("statement", ["x = A.fill(0)", "B.fill()", "B.copy_(A, True)", "B[0] = A[0, 0].to(x)", "B[0] = A[0, 0].clamp(0.0)"])  # fmt: skip
def test_an_edit_that_would_change_the_meaning_is_not_offered(statement: str) -> None:
    made = tilelang_nb.compile_cell(cell(statement), target="sim")
    assert made.diagnostics and not any(fix for d in made.diagnostics if d.code == "TL003" for fix in d.fixes)


@pytest.mark.parametrize("name", ["float16", "float32", "float64", "int8", "int32", "uint16"])
def test_a_type_of_numpy_converts_a_device_value(name: str) -> None:
    made = tilelang_nb.compile_cell(cell(f"B[0] = np.{name}(A[1, 1])\nB[1] = np.{name}(3)"), target="sim")
    a, b = np.full((8, 4), 2.7001953, np.float32), np.zeros(8, np.float32)
    made.kernels["k"](a, b, 1)
    assert b[:2].tolist() == [float(np.dtype(name).type(a[1, 1])), 3.0]


def test_methods_with_an_edit_are_among_those_that_are_known() -> None:
    assert set(CALLS) <= set(OF_ARRAYS)


@pytest.mark.parametrize("test", ["B == 0", "B != n", "0 == B", "A == B", "B[0:4] == 1.0", "B == np.ones(8)"])
def test_a_buffer_is_not_compared_by_elements(test: str) -> None:
    """Python would compare the objects, NumPy the elements: neither is what the text seems to say."""
    ((code, message, _),) = said(f"if {test}:\n    B[0] = 1.0")
    assert code == "TL201" and "is used as a number" in message


def test_a_buffer_is_still_an_object_while_building() -> None:
    body = "if B in [A, B] and B is not A and B != None:\n    B[0] = 1.0\nnames = {A: 1, B: 2}\nB[1] = names[B]\n"
    body += "B[2] = [A, B].index(B)\nif (A, n) == (A, n) or A != 'x':\n    B[3] = 1.0"
    made = tilelang_nb.compile_cell(cell(body), target="sim")
    b = np.zeros(8, np.float32)
    made.kernels["k"](np.zeros((8, 4), np.float32), b, 1)
    assert b[:4].tolist() == [1, 2, 1, 1]
