"""Arithmetic is that of the device type: against NumPy and ml_dtypes, or against exact integers of Python."""

from __future__ import annotations

import itertools
import math

import ml_dtypes
import numpy as np
import pytest
from simulator.nodes import *
from simulator.running import computed

FLOATS = ("float16", "float32", "float64", "bfloat16", "float8_e4m3fn", "float8_e5m2")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


def numpy_type(name: str) -> np.dtype:
    return np.dtype(getattr(ml_dtypes, name, None) or name)


def bits(array: np.ndarray) -> np.ndarray:
    """Bit patterns with one NaN."""
    raw = array.view(f"u{array.itemsize}").copy()
    if array.dtype.kind not in "iub":
        raw[np.isnan(array)] = 0xFF
    return raw


def elementwise(function, result: str, *arrays: np.ndarray, names=("a", "b", "c")) -> np.ndarray:
    """function(loads) for every element, one thread each."""
    size = len(arrays[0])
    inputs = [buffer(name, (size,), str(array.dtype)) for name, array in zip(names, arrays)]
    out = buffer("out", (size,), result)
    func = launch([*inputs, out], lambda t, b: [store(out, function(*[load(x, t) for x in inputs]), t)], threads=size)
    arguments = dict(zip(names, arrays))
    return computed(func, arguments | {"out": np.zeros(size, numpy_type(result))})["out"]


def uniform(expression, result: str, **numbers):
    """An expression over scalar parameters, stored by one thread."""
    variables = {name: var(name, dtype) for name, (dtype, _) in numbers.items()}
    out = buffer("out", (1,), result)
    func = launch([*variables.values(), out], lambda t, b: [store(out, expression(**variables), 0)], threads=1)
    arguments = {name: value for name, (_, value) in numbers.items()}
    return computed(func, arguments | {"out": np.zeros(1, numpy_type(result))})["out"][0]


def uniformly(function, result: str, *arrays: np.ndarray) -> np.ndarray:
    """As `elementwise` by one thread with constant indices: all values are uniform, Python ints inside."""
    size = len(arrays[0])
    inputs = [buffer(name, (size,), str(array.dtype)) for name, array in zip("abc", arrays)]
    out = buffer("out", (size,), result)

    def body(t, b):
        return [store(out, function(*[load(x, i32(k)) for x in inputs]), i32(k)) for k in range(size)]

    arguments = dict(zip("abc", arrays))
    return computed(launch([*inputs, out], body, threads=1), arguments | {"out": np.zeros(size, numpy_type(result))})[
        "out"
    ]


def samples(dtype: str) -> np.ndarray:
    kind = numpy_type(dtype)
    if dtype in INTEGERS:
        limits = np.iinfo(kind)
        values = [0, 1, 2, 3, 5, 77, 100, limits.max, limits.max - 1, limits.min, limits.min + 1, limits.max // 2]
        return np.array([v for v in values if limits.min <= v <= limits.max], kind)
    numbers = [0.0, -0.0, 0.5, -0.5, 1.0, 1.5, 2.5, -2.5, 3.7, -3.7, 100.0, 447.0, 1e3, -1e3, 6e4, 7e4, 1e10, -1e10]
    numbers += [127.5, 128.0, 255.5, 256.0, 2147483520.0, 2147483648.0, 4e9, 1e19, 1e-3, math.inf, -math.inf, math.nan]
    with np.errstate(all="ignore"):
        return np.array(numbers, np.float64).astype(kind)


@pytest.mark.parametrize("source", [*FLOATS, *INTEGERS, "bool"])
@pytest.mark.parametrize("target", FLOATS)
def test_conversion_to_a_float_type_is_that_of_ml_dtypes(source, target):
    values = np.array([True, False]) if source == "bool" else samples(source)
    with np.errstate(all="ignore"):
        wanted = values.astype(numpy_type(target))
    got = elementwise(lambda a: tir.Cast(target, a), target, values)
    assert (bits(got) == bits(wanted)).all()


@pytest.mark.parametrize("source", [*INTEGERS, "bool"])
@pytest.mark.parametrize("target", INTEGERS)
def test_conversion_between_integers_wraps(source, target):
    values = np.array([True, False]) if source == "bool" else samples(source)
    got = elementwise(lambda a: tir.Cast(target, a), target, values)
    width = 8 * numpy_type(target).itemsize
    wanted = [int(v) % (1 << width) for v in values]
    assert [int(v) % (1 << width) for v in got] == wanted


@pytest.mark.parametrize("source", FLOATS)
@pytest.mark.parametrize("target", INTEGERS)
def test_conversion_of_a_float_to_an_integer_truncates_and_saturates(source, target):
    values = samples(source)
    limits = np.iinfo(target)
    wanted = []
    for value in values.astype(np.float64).tolist():
        if math.isnan(value):
            wide = limits.bits == 64 or source == "float64"
            wanted.append(
                0
                if not wide
                else 1 << 63
                if target == "uint64"
                else limits.min
                if limits.min
                else 1 << (limits.bits - 1)
            )
        elif math.isinf(value):
            wanted.append(limits.max if value > 0 else limits.min)
        else:
            wanted.append(min(max(math.trunc(value), limits.min), limits.max))
    got = elementwise(lambda a: tir.Cast(target, a), target, values)
    assert got.tolist() == wanted
    assert uniformly(lambda a: tir.Cast(target, a), target, values).tolist() == wanted


@pytest.mark.parametrize("source", [*FLOATS, *INTEGERS])
def test_conversion_to_bool_asks_whether_it_is_not_zero(source):
    values = samples(source)
    got = elementwise(lambda a: tir.Cast("bool", a), "bool", values)
    assert (got == (values != numpy_type(source).type(0))).all()


def test_conversion_to_float8_keeps_infinity_where_the_type_has_one():
    values = np.array([np.inf, -np.inf, np.nan], np.float32)
    e5m2 = elementwise(lambda a: tir.Cast("float8_e5m2", a), "float8_e5m2", values).astype(np.float32)
    assert np.isposinf(e5m2[0]) and np.isneginf(e5m2[1]) and np.isnan(e5m2[2])
    e4m3 = elementwise(lambda a: tir.Cast("float8_e4m3fn", a), "float8_e4m3fn", values).astype(np.float32)
    assert np.isnan(e4m3).all()


OPERATIONS = {
    "add": (lambda a, b: a + b, lambda a, b: a + b),
    "sub": (lambda a, b: a - b, lambda a, b: a - b),
    "mul": (lambda a, b: a * b, lambda a, b: a * b),
    "floordiv": (tir.floordiv, lambda a, b: a // b if b else 0),
    "floormod": (tir.floormod, lambda a, b: a % b if b else 0),
    "truncdiv": (tir.truncdiv, lambda a, b: (abs(a) // abs(b)) * (1 if (a < 0) == (b < 0) else -1) if b else 0),
    "truncmod": (tir.truncmod, lambda a, b: abs(a) % abs(b) * (-1 if a < 0 else 1) if b else 0),
    "and": (tir.bitwise_and, lambda a, b: a & b),
    "or": (tir.bitwise_or, lambda a, b: a | b),
    "xor": (tir.bitwise_xor, lambda a, b: a ^ b),
    "max": (tir.max, max),
    "min": (tir.min, min),
}


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("name", OPERATIONS)
def test_integer_operations_are_exact_and_wrap_at_the_width_of_the_type(dtype, name):
    build, exact = OPERATIONS[name]
    pairs = list(itertools.product(samples(dtype).tolist(), repeat=2))
    a, b = (np.array(column, numpy_type(dtype)) for column in zip(*pairs))
    limits = np.iinfo(dtype)
    wanted = [(exact(x, y) - limits.min) % (1 << limits.bits) + limits.min for x, y in pairs]
    assert elementwise(build, dtype, a, b).tolist() == wanted
    assert uniformly(build, dtype, a, b).tolist() == wanted


@pytest.mark.parametrize("dtype", ["int32", "uint32", "int8", "int64"])
def test_shifts_by_any_amount(dtype):
    width = np.iinfo(dtype).bits
    values, amounts = zip(*itertools.product(samples(dtype).tolist(), (0, 1, 5, width - 1, width, width + 7)))
    a, b = np.array(values, dtype), np.array(amounts, dtype)
    limits = np.iinfo(dtype)

    def left(x, n):
        return ((x << n if n < width else 0) - limits.min) % (1 << width) + limits.min

    right = [x >> min(n, 64) for x, n in zip(values, amounts)]
    assert elementwise(tir.shift_left, dtype, a, b).tolist() == [left(x, n) for x, n in zip(values, amounts)]
    assert elementwise(tir.shift_right, dtype, a, b).tolist() == right
    assert uniformly(tir.shift_left, dtype, a, b).tolist() == [left(x, n) for x, n in zip(values, amounts)]
    assert uniformly(tir.shift_right, dtype, a, b).tolist() == right


def test_a_sum_of_three_wraps_only_as_a_whole():
    big = 2**31 - 1
    assert uniform(lambda a, b: a + b - a, "int32", a=("int32", big), b=("int32", 5)) == 5
    assert uniform(lambda a, b: (a + b) * 3 - 1, "int32", a=("int32", big), b=("int32", 1)) == np.int32(2**31 - 1)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ["add", "sub", "mul", "div"])
def test_float_operations_round_once_in_their_type(dtype, name):
    rng = np.random.default_rng(5)
    a, b = (rng.standard_normal(200).astype(numpy_type(dtype)) for _ in range(2))
    build = {"add": lambda x, y: x + y, "sub": lambda x, y: x - y, "mul": lambda x, y: x * y, "div": tir.div}[name]
    exact = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide}[name]
    with np.errstate(all="ignore"):
        wanted = exact(a, b)
    assert wanted.dtype == a.dtype
    assert (bits(elementwise(build, dtype, a, b)) == bits(wanted)).all()
    assert (bits(uniformly(build, dtype, a[:20], b[:20])) == bits(wanted[:20])).all()


def test_uniform_float32_arithmetic_rounds_like_an_array():
    a, b, c = np.float32(1.1), np.float32(3.3), np.float32(1e-7)
    got = uniform(lambda a, b, c: a * b + c, "float32", a=("float32", a), b=("float32", b), c=("float32", c))
    assert got == np.float32(np.float32(a * b) + c)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "bfloat16"])
def test_max_and_min_return_the_operand_that_is_a_number(dtype):
    a = np.array([1.0, np.nan, 3.0, np.nan], numpy_type(dtype))
    b = np.array([2.0, 2.0, np.nan, np.nan], numpy_type(dtype))
    assert elementwise(tir.max, dtype, a, b).astype(float)[:3].tolist() == [2.0, 2.0, 3.0]
    assert elementwise(tir.min, dtype, a, b).astype(float)[:3].tolist() == [1.0, 2.0, 3.0]
    assert np.isnan(elementwise(tir.max, dtype, a, b).astype(float)[3])


def test_float_floor_division_and_modulo_round_down():
    a, b = np.array([5.5, -5.5, 4.0, -0.5], np.float32), np.full(4, 2, np.float32)
    assert elementwise(lambda x, y: tir.floor(x / y), "float32", a, b).tolist() == (a // b).tolist()
    assert elementwise(lambda x, y: x - tir.floor(x / y) * y, "float32", a, b).tolist() == (a % b).tolist()


UNARY = {
    "exp": np.exp, "exp2": np.exp2, "log": np.log, "log2": np.log2, "log10": np.log10, "log1p": np.log1p,
    "sqrt": np.sqrt, "sin": np.sin, "cos": np.cos, "tan": np.tan, "tanh": np.tanh, "sinh": np.sinh, "cosh": np.cosh,
    "asin": np.arcsin,
    "acos": np.arccos, "atan": np.arctan, "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "nearbyint": np.rint,
    "abs": np.abs, "rsqrt": lambda x: 1 / np.sqrt(x), "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "erf": lambda x: np.array([math.erf(v) for v in x]), "exp10": lambda x: 10.0**x,
    "round": lambda x: np.array([math.copysign(math.floor(abs(v) + 0.5), v) for v in x]),
}  # fmt: skip


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "bfloat16"])
def test_functions_agree_with_numpy(name, dtype):
    values = np.array([0.1, 0.25, 0.5, 0.75, 0.9, 1.0], np.float64)
    if name in ("floor", "ceil", "trunc", "nearbyint", "round", "abs", "erf", "exp", "sin"):
        values = np.concatenate([values, [-0.5, 1.5, 2.5, -2.5, -1.1]])
    values = values.astype(numpy_type(dtype))
    got = elementwise(getattr(tir, name), dtype, values).astype(np.float64)
    tolerance = {"float16": 2e-3, "float32": 1e-6, "float64": 1e-14, "bfloat16": 1e-2}[dtype]
    np.testing.assert_allclose(got, UNARY[name](values.astype(np.float64)), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", ["__expf", "__logf", "__frcp_rn", "__fsqrt_rn", "__frsqrt_rn", "__tanf"])
def test_fast_functions(name):
    values = np.array([0.1, 0.5, 1.0, 1.3], np.float32)
    exact = {"__expf": np.exp, "__logf": np.log, "__frcp_rn": lambda x: 1 / x, "__fsqrt_rn": np.sqrt,
             "__frsqrt_rn": lambda x: 1 / np.sqrt(x), "__tanf": np.tan}[name]  # fmt: skip
    got = elementwise(lambda a: extern("float32", name, a), "float32", values)
    np.testing.assert_allclose(got, exact(values.astype(np.float64)), rtol=1e-6)


def test_fused_multiply_add_rounds_once():
    a = np.array([1 + 2**-12, 3.0], np.float32)
    c = np.array([-(1 + 2**-11), 1.0], np.float32)
    got = elementwise(lambda x, y: extern("float32", "__fmaf_rn", x, x, y), "float32", a, c)
    wanted = (a.astype(np.float64) ** 2 + c).astype(np.float32)
    assert got.tolist() == wanted.tolist() and got[0] != np.float32(a[0] * a[0]) + c[0]


def test_classification_of_floats():
    values = np.array([1.0, np.nan, np.inf, -np.inf], np.float32)
    assert elementwise(tir.isnan, "bool", values).tolist() == [False, True, False, False]
    assert elementwise(tir.isinf, "bool", values).tolist() == [False, False, True, True]
    assert elementwise(tir.isfinite, "bool", values).tolist() == [True, False, False, False]


@pytest.mark.parametrize("dtype", ["int32", "uint32", "int64", "uint64"])
def test_counting_bits(dtype):
    values = np.array([0, 1, 2, 3, 12, 1 << 20, np.iinfo(dtype).max, -1 if dtype[0] == "i" else 7], dtype)
    width = np.iinfo(dtype).bits
    unsigned = [int(v) % (1 << width) for v in values]
    suffix = "ll" if width == 64 else ""
    assert elementwise(lambda a: extern("int32", "__popc" + suffix, a), "int32", values).tolist() == [
        u.bit_count() for u in unsigned
    ]
    assert elementwise(lambda a: extern("int32", "__clz" + suffix, a), "int32", values).tolist() == [
        width - u.bit_length() for u in unsigned
    ]
    wanted = [(u & -u).bit_length() for u in unsigned]
    assert elementwise(lambda a: extern("int32", "__ffs" + suffix, a), "int32", values).tolist() == wanted
    assert elementwise(lambda a: tir.popcount(a), dtype, values).tolist() == [u.bit_count() for u in unsigned]
    assert int(uniform(lambda a: tir.popcount(a), dtype, a=(dtype, values[-1]))) == unsigned[-1].bit_count()


def test_reinterpret_keeps_the_bits():
    values = np.array([1.0, -2.5, np.inf], np.float32)
    assert (elementwise(lambda a: tir.reinterpret("int32", a), "int32", values) == values.view(np.int32)).all()
    assert (elementwise(lambda a: tir.reinterpret("float32", a), "float32", values.view(np.uint32)) == values).all()
    assert (
        int(uniform(lambda a: tir.reinterpret("int32", a), "int32", a=("float32", values[1])))
        == values.view(np.int32)[1]
    )


def test_atan2_pow_fmod_copysign():
    a, b = np.array([1.0, -2.0, 5.5], np.float32), np.array([2.0, 3.0, 2.0], np.float32)
    for name, exact in (("atan2", np.arctan2), ("pow", np.power), ("fmod", np.fmod), ("copysign", np.copysign)):
        np.testing.assert_allclose(elementwise(getattr(tir, name), "float32", a, b), exact(a, b), rtol=1e-6)


def test_select_evaluates_the_side_that_is_taken():
    a = np.array([1.0, -2.0, 3.0], np.float32)
    got = elementwise(lambda x: tir.Select(x > f32(0), tir.sqrt(x), f32(0)), "float32", a)
    assert got.tolist() == [1.0, 0.0, np.sqrt(np.float32(3))]


def test_infinite_and_huge_constants():
    out = buffer("out", (3,), "float32")
    numbers = [float("inf"), float("-inf"), 3.4028234663852886e38]
    func = launch(
        [out], lambda t, b: [store(out, tir.const(v, "float32"), i) for i, v in enumerate(numbers)], threads=1
    )
    assert computed(func, {"out": np.zeros(3, np.float32)})["out"].tolist() == numbers
