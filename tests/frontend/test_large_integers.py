"""Integers that no memory holds are refused at their place, in kernels and in the Python around them."""

from __future__ import annotations

import pytest

import tilelang_nb

KERNEL = """
@T.prim_func
def k(A: {annotation}):
    with T.Kernel(1, threads=32):
        {statement}
        A[0] = 1
"""
TENSOR = "T.Tensor((16,), 'int32')"


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("x = 2**31**70", 1, 4),
        ("x = 1 << 10**12", 1, 4),
        ("x = 3\nx **= 10**11", 2, 6),
        ("x = [3]\nx[0] <<= 10**12", 2, 9),
        ("x = pow(3, 10**11)", 1, 4),
        ("def power(a, b):\n    return a ** b\npower(7, 10**10)", 2, 11),
        ("f = lambda b: [7 ** i for i in (2, b)]\nf(10**12)", 1, 15),
        (KERNEL.format(annotation="T.Tensor((2**31**70,), 'int8')", statement="pass"), 3, 19),
        ("from __future__ import annotations\n" + KERNEL.format(annotation="T.Tensor((2**31**70,), 'int8')", statement=""), 4, 19),
        (KERNEL.format(annotation=TENSOR, statement="x = 5 ** 10**10"), 5, 12),
        (KERNEL.format(annotation=TENSOR, statement="x = pow(5, 10**10)"), 5, 12),
        (KERNEL.format(annotation=TENSOR, statement="x = 5; x **= 10**10"), 5, 15),
        (KERNEL.format(annotation=TENSOR, statement="x = [5]; x[0] <<= 10**12"), 5, 17),
    ],
)  # fmt: skip
def test_an_integer_of_too_many_digits_is_refused_where_it_is_made(text: str, line: int, column: int) -> None:
    made = tilelang_nb.compile_cell(text, {})
    (found,) = made.diagnostics
    assert (found.code, found.span.line, found.span.column) == ("TL144", line, column)
    assert "bits" in found.message


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2**64 + (1 << 70)", 2**64 + 2**70),
        ("pow(3, 10**11, 7)", pow(3, 10**11, 7)),
        ("pow(exp=3, base=2)", 8),
        ("2 ** -1", 0.5),
        ("1 ** 10**30", 1),
        ("0 << 10**30", 0),
        ("(2**3_000_000).bit_length()", 3_000_001),
        ("x = 7\nx **= 2\nx <<= 3\nx", 392),
        ("class C:\n    n = 3\nc = C()\nc.n **= 2\nc.n", 9),
        ("import numpy as np\nx = np.arange(3)\ny = x\nx **= 2\n(y is x, y.tolist())", (True, [0, 1, 4])),
        ("calls = []\ndef f():\n    calls.append(1)\n    return 0\nx = [3]\nx[f()] **= 2\n(x, calls)", ([9], [1])),
    ],
)
def test_powers_and_shifts_of_host_code_are_pythons(text: str, value: object) -> None:
    made = tilelang_nb.compile_cell(text, {})
    assert made.ok, made.to_text()
    assert made.result == value


def test_what_a_power_raises_is_the_users() -> None:
    (found,) = tilelang_nb.compile_cell("x = 1\n'a' ** x", {}).diagnostics
    assert (found.code, found.span.line) == ("TL144", 2)
    assert found.message.startswith("TypeError: unsupported operand")
