"""Math: compile-time numbers as NumPy has them, device values by dtype, and the nodes that stand for them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tvm import tirx as tir

import tilelang_nb.language as T
from tilelang_nb.language.values import Value
from tilelang_nb.source.diagnostic import Refusal

UNARY = {
    "exp": np.exp,
    "exp2": np.exp2,
    "exp10": lambda x: 10.0**x,
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "log1p": np.log1p,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "erf": math.erf,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
}
ROUNDING = {"floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "nearbyint": np.rint}


@pytest.mark.parametrize("name", sorted(UNARY))
def test_on_compile_time_numbers_a_function_is_numpys(name):
    for x in (0.5, 0.25, 1):
        found = getattr(T, name)(x)
        assert isinstance(found, float)
        assert found == pytest.approx(float(UNARY[name](x)), rel=1e-14)


def test_compile_time_numbers_outside_the_domain_give_inf_and_nan_without_an_exception():
    assert T.log(0) == -math.inf
    assert math.isnan(T.sqrt(-1.0))
    assert T.exp(1e9) == math.inf
    assert T.rsqrt(0.0) == math.inf
    assert math.isnan(T.acos(2))


@pytest.mark.parametrize("name", sorted(UNARY))
@pytest.mark.parametrize(
    ("dtype", "result"),
    [
        ("float16", "float16"),
        ("bfloat16", "bfloat16"),
        ("float32", "float32"),
        ("float64", "float64"),
        ("int32", "float32"),
        ("bool", "float32"),
        ("float8_e4m3fn", "float32"),
    ],
)
def test_the_result_has_the_operands_float_dtype(device, name, dtype, result):
    found = getattr(T, name)(device("x", dtype))
    assert found.dtype == result
    assert str(found.use().ty) == result


@pytest.mark.parametrize("name", sorted(ROUNDING))
def test_rounding(device, name):
    function = getattr(T, name)
    for x in (-2.5, -1.5, -0.4, 0.5, 1.5, 2.5, 3.2):
        assert function(x) == ROUNDING[name](x)
    assert function(7) == 7
    x = device("x", "int32")
    assert function(x) is x
    assert function(device("y", "float16")).dtype == "float16"
    assert f"T.{name}" in str(function(device("y")))


def test_round_takes_halves_away_from_zero_and_can_take_them_to_even(device, refused):
    assert [T.round(x) for x in (0.5, 1.5, 2.5, -0.5, -2.5, 1.4)] == [1, 2, 3, -1, -3, 1]
    assert [T.round(x, "ties-to-even") for x in (0.5, 1.5, 2.5)] == [0, 2, 2]
    assert str(T.round(device("x"))) == "T.round(x)"
    assert str(T.round(device("x"), rounding_mode="ties-to-even")) == "T.nearbyint(x)"
    with refused("TL004", "ties-to-even"):
        T.round(device("x"), "up")


def test_absolute_values(device):
    assert (T.abs(-3), T.fabs(-3), T.abs(-2.5)) == (3, 3.0, 2.5)
    assert T.abs(device("x", "int8")).dtype == "int8"
    assert T.fabs(device("x", "int8")).dtype == "float32"


def test_powers(device, refused):
    x, n = device("x"), device("n", "int32")
    assert (T.pow(2, 10), T.pow(2.0, 0.5), T.pow(2, -1)) == (1024, math.sqrt(2), 0.5)
    assert "pow" in str(T.pow(x, 0.5))
    assert str(T.pow(x, 2)) == "x * x"
    assert T.pow(x, n).dtype == "float32"
    with refused("TL205", "integer power"):
        T.pow(n, n)


def test_binary_functions(device):
    x, h = device("x"), device("h", "float16")
    assert T.atan2(1.0, -1.0) == pytest.approx(math.atan2(1.0, -1.0))
    assert T.fmod(-5.5, 2) == math.fmod(-5.5, 2)
    assert (T.atan2(x, h).dtype, T.fmod(h, 2).dtype, T.fmod(device("n", "int32"), 2).dtype) == (
        "float32",
        "float16",
        "float32",
    )


def test_classification(device):
    assert (T.isnan(math.nan), T.isinf(-math.inf), T.isfinite(1.0), T.isfinite(math.inf)) == (True, True, True, False)
    assert T.isnan(device("x", "float16")).dtype == "bool"
    assert str(T.isnan(device("n", "int32"))) == "T.bool(False)"
    assert str(T.isfinite(device("n", "int32"))) == "T.bool(True)"


@pytest.mark.parametrize("name", ["exp", "floor", "isnan", "abs", "max", "ceildiv", "__exp"])
def test_what_is_no_number_is_refused(kernel, refused, name):
    arguments = ("x", 2) if name == "ceildiv" else ("x",)
    for wrong in ("x", None, kernel.buffer("a", (8,)), [1, object()]):
        with refused("TL004"):
            getattr(T, name)(wrong, *arguments[1:])


def test_minimum_and_maximum(device):
    x, n = device("x"), device("n", "int32")
    assert (T.min(3, 2), T.max(3, 2.5), T.max([1, 4, 2])) == (2, 3, 4)
    assert str(T.max(x, 0)) == "T.max(x, T.float32(0.0))"
    assert T.max(x, n).dtype == "float32"
    assert str(T.min(n, 3, 5)) == "T.min(T.min(n, 3), 5)"
    assert T.clamp(7, 0, 5) == 5
    assert str(T.clamp(x, 0, 1)) == "T.min(T.max(x, T.float32(0.0)), T.float32(1.0))"


def test_choices(device):
    x, n = device("x"), device("n", "int32")
    assert T.if_then_else(True, 1, 2) == 1
    assert T.if_then_else(0, 1, 2) == 2
    assert str(T.if_then_else(x > 0, x, 0)) == "T.if_then_else(x > T.float32(0.0), x, T.float32(0.0))"
    assert (
        str(T.if_then_else(n, 0, -T.infinity("float32"))) == 'T.if_then_else(n != 0, T.float32(0.0), T.float32("-inf"))'
    )
    assert T.if_then_else(True, n, x).dtype == "float32"
    assert isinstance(T.Select(n > 0, n, 1).use(), tir.Select)


def test_integer_divisions(device, refused):
    pairs = [(7, 2), (-7, 2), (7, -2), (-7, -2), (6, 3)]
    assert [T.floordiv(a, b) for a, b in pairs] == [a // b for a, b in pairs]
    assert [T.floormod(a, b) for a, b in pairs] == [a % b for a, b in pairs]
    assert [T.truncdiv(a, b) for a, b in pairs] == [int(a / b) for a, b in pairs]
    assert [T.truncmod(a, b) for a, b in pairs] == [int(math.fmod(a, b)) for a, b in pairs]
    assert [T.ceildiv(a, b) for a, b in ((10, 3), (9, 3), (1, 4))] == [4, 3, 1]
    n = device("n", "int32")
    assert "//" in str(T.floordiv(n, 4))
    assert isinstance(T.truncdiv(n, 4).use(), tir.Div)
    with refused("TL205", "float32"):
        T.ceildiv(device("x"), 2)
    with refused("TL004", "by 0"):
        T.ceildiv(3, 0)
    with refused("TL004", "by 0"):
        T.floormod(n, 0)


def test_bit_operations(device, refused):
    n = device("n", "uint32")
    assert (T.shift_left(1, 4), T.shift_right(-8, 1), T.bitwise_and(6, 3), T.bitwise_or(6, 3), T.bitwise_xor(6, 3)) == (
        16,
        -4,
        2,
        7,
        5,
    )
    assert T.bitwise_not(0) == -1
    assert T.bitwise_and(n, 7).dtype == "uint32"
    assert (T.popcount(7), T.clz(1), T.popcount(-1)) == (3, 31, 32)
    assert T.popcount(device("w", "int64")).dtype == "int32"
    with refused("TL205"):
        T.bitwise_and(device("x"), 1)


def test_alignment_and_coordinates(device):
    assert (T.align_up(10, 8), T.align_up(16, 8)) == (16, 16)
    assert T.index_to_coordinates(17, (2, 3, 4)) == [1, 1, 1]
    assert [str(i) for i in T.index_to_coordinates(device("i", "int32"), (2, 3))] == ["i // 3 % 2", "i % 3"]


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64", "uint64"])
def test_limits_of_integers_are_numpys(dtype):
    info = np.iinfo(dtype)
    assert (T.min_value(dtype), T.max_value(dtype)) == (info.min, info.max)


def test_limits_of_floats(refused):
    assert T.max_value("float16") == 65504.0
    assert T.min_value("float32") == float(np.finfo(np.float32).min)
    assert T.max_value("float8_e4m3fn") == 448.0
    assert (T.min_value("bool"), T.max_value("bool")) == (False, True)
    assert T.infinity("float16") == math.inf
    with refused("TL205", "T.max_value"):
        T.infinity("float8_e4m3fn")
    with refused("TL205", "int32"):
        T.infinity("int32")


def test_fast_functions_are_float32_instructions(device, refused):
    assert str(T.__dict__["__exp"](device("x"))) == 'T.call_extern("float32", "__expf", x)'
    half = T.__dict__["__log2"](device("h", "float16"))
    assert half.dtype == "float16"
    assert '"__log2f"' in str(half)
    assert '"__sinf"' not in str(T.__dict__["__sin"](device("d", "float64")))
    assert T.__dict__["__exp"](1.0) == pytest.approx(math.e)
    with refused("TL205", "int32"):
        T.__dict__["__cos"](device("n", "int32"))


def test_correctly_rounded_arithmetic(device, refused):
    x, h = device("x"), device("h", "float16")
    assert str(T.ieee_add(x, 1)) == 'T.call_extern("float32", "__fadd_rn", x, T.float32(1.0))'
    assert T.ieee_mul(h, h).dtype == "float16"
    assert "__fmaf_rn" in str(T.ieee_fmaf(x, x, x))
    assert str(T.ieee_fdiv(device("d", "float64"), 3.0)) == "d / T.float64(3.0)"
    assert T.ieee_frcp(4.0) == 0.25
    assert '"__frcp_rn"' in str(T.fast_rcp(x))
    with refused("TL302", '"rz"'):
        T.ieee_add(x, x, "rz")
    with refused("TL004", "up"):
        T.ieee_sub(x, x, rounding_mode="up")
    with refused("TL205", "int32"):
        T.ieee_fsqrt(device("n", "int32"))


def answer(function, operands):
    """What a function gives, or the code of its refusal."""
    try:
        return function(*operands)
    except Refusal as refusal:
        return refusal.code


@pytest.mark.parametrize(
    "dtype", ["float16", "bfloat16", "float8_e4m3fn", "float64", "int8", "uint32", "int64", "bool"]
)
def test_every_function_gives_a_value_or_a_refusal_for_every_dtype(device, dtype):
    x, y = device("x", dtype), device("y", dtype)
    unary = [*UNARY, *ROUNDING, "round", "isnan", "isinf", "isfinite", "abs", "fabs", "popcount", "clz", "bitwise_not"]
    unary += ["__ffs", "__exp", "__log10", "ieee_frcp", "ieee_fsqrt", "ieee_frsqrt", "fast_rcp"]
    binary = ["atan2", "fmod", "pow", "min", "max", "floordiv", "floormod", "truncdiv", "truncmod", "bitwise_and"]
    binary += ["shift_left", "ceildiv", "align_up", "ieee_add", "ieee_fdiv"]
    calls = [(name, (x,)) for name in unary]
    calls += [(name, operands) for name in binary for operands in ((x, y), (x, 2), (2, y), (x, 2.5))]
    for name, operands in calls:
        found = answer(getattr(T, name), operands)
        assert isinstance(found, Value) or found in ("TL205", "TL302"), name


@pytest.mark.parametrize(
    "target", ["float16", "bfloat16", "float8_e5m2", "int8", "bool", "uint64", "tfloat32", "float64"]
)
def test_every_cast_gives_a_value_of_its_dtype(device, target):
    for source in ("float16", "bfloat16", "float8_e4m3fn", "float64", "int8", "uint32", "bool"):
        assert T.cast(device("x", source), target).dtype == target
