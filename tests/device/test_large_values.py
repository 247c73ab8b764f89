"""Values that stand for expressions without bounds pass TVM's passes in time in proportion to their number."""

from __future__ import annotations

import pytest

import tilelang_nb
from tilelang_nb.device.large_values import LARGEST

KERNEL = """
@T.prim_func
def k(o: T.Tensor((16,), "{dtype}"), n: T.{dtype}):
    with T.Kernel(1, threads=1):
        x = n
{lines}
        o[0] = x
"""
STEPS = ["x = x * x + x", "x = T.min(x, x * 2)", "x = x + 1 if x > 3 else x", "x = x ^ (x << 13)"]


def source(line: str, times: int, dtype: str = "int32") -> str:
    text = KERNEL.format(dtype=dtype, lines="\n".join(["        " + line] * times))
    made = tilelang_nb.compile_cell(text, {})
    assert made.ok, made.to_text()
    return made.kernels["k"].cuda_source


@pytest.mark.parametrize("line", STEPS)
def test_a_value_that_is_used_twice_in_the_next_one_ends(line: str) -> None:
    few, many = (source(line, times) for times in (40, 80))
    assert len(many) < 2.5 * len(few)  # without registers between, the text or the time doubles with every line


def test_values_of_usual_size_stay_variables() -> None:
    assert "[1];" not in source(STEPS[0], 3)
    assert "[1];" in source(STEPS[0], LARGEST)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int64", "uint8"])
def test_kept_values_have_the_type_of_the_value(dtype: str) -> None:
    name = {"float32": "float", "float16": "half", "bfloat16": "nv_bfloat16", "int64": "int64_t", "uint8": "uchar"}[
        dtype
    ]
    assert f"{name} x_ptr[1];" in source("x = x * x + x", 30, dtype)


@pytest.mark.parametrize(
    ("expression", "printed"),
    [
        ("any(o[i] > i for i in range(16))", "||"),
        ("all(o[i] > i for i in range(16))", "||"),  # not any of their opposites
        (" or ".join(f"(o[{i}] > 1 and n > {i})" for i in range(16)), "&&"),
    ],
)
def test_chains_of_conditions_are_printed_as_conditions(expression: str, printed: str) -> None:
    text = source(f"x = 1 if {expression} else 2", 1)
    assert text.count(printed) >= 15 and text.count("else") <= 1


def test_long_chains_of_choices_end() -> None:
    choice = "n"
    for number in range(40):
        choice = f"(o[{number % 16}] if o[{number * 7 % 16}] > {number} else {choice})"
    assert source(f"x = {choice}", 1).count("if (") >= 40


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64"])
def test_nested_absolute_values_end(dtype: str) -> None:
    text = source(f"x = {'abs(' * 60}n - 3{')' * 60}", 1, dtype)
    assert text.count("max(") >= 60
