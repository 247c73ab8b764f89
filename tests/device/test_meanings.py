"""Operations of every type become CUDA C that compiles, with the functions that keep their meaning."""

from __future__ import annotations

import re

import pytest

DTYPES = [
    *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "bfloat16", "float32", "float64", "float8_e4m3fn", "float8_e5m2", "bool"),
]
FLOATS = ["float16", "bfloat16", "float32", "float64"]
INTEGERS = [dtype for dtype in DTYPES if "int" in dtype]
FUNCTIONS = [
    *("exp", "exp2", "exp10", "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "sin", "cos", "tan", "sinh", "cosh"),
    *("tanh", "asin", "acos", "atan", "erf", "sigmoid", "floor", "ceil", "trunc", "nearbyint", "round", "abs"),
]


def cell(body: str, *parameters: str, head: str = "") -> str:
    lines = "".join(f"            {line}\n" for line in body.split("\n"))
    return (
        f"{head}@T.prim_func\ndef k({', '.join(parameters)}):\n"
        f"    with T.Kernel(1, threads=32):\n        for i in T.Parallel(64):\n{lines}"
    )


def tensor(name: str, dtype: str) -> str:
    return f'{name}: T.Tensor((64,), "{dtype}")'


@pytest.mark.parametrize("arch", ["sm_75", "sm_80"])
@pytest.mark.parametrize("source", DTYPES)
def test_every_conversion_compiles(program_of, source: str, arch: str) -> None:
    outputs = [tensor(f"o_{target}", target) for target in DTYPES]
    body = "\n".join(f'o_{target}[i] = T.cast(a[i], "{target}")' for target in DTYPES)
    assert program_of(cell(body, tensor("a", source), *outputs), arch).cubin


@pytest.mark.parametrize("dtype", FLOATS)
def test_every_elementary_function_compiles(program_of, dtype: str) -> None:
    body = "\n".join(f"o[i] += T.{name}(a[i])" for name in FUNCTIONS)
    body += "\no[i] += T.pow(a[i], b[i]) + T.fmod(a[i], b[i]) + T.atan2(a[i], b[i]) + a[i] // b[i] + a[i] % b[i]"
    body += (
        "\nif T.isnan(a[i]) or T.isinf(a[i]) or not T.isfinite(b[i]):\n    o[i] = T.max(a[i], b[i]) - T.min(a[i], b[i])"
    )
    program = program_of(cell(body, tensor("a", dtype), tensor("b", dtype), tensor("o", dtype)))
    assert program.cubin
    if dtype in ("float16", "bfloat16"):
        assert not re.search(r"\bh(exp|log|sin|cos|sqrt)", program.kernel_source)


@pytest.mark.parametrize("dtype", DTYPES)
def test_arithmetic_and_comparisons_of_every_type_compile(program_of, dtype: str) -> None:
    body = "o[i] = a[i] + b[i] * a[i] - b[i]\nif a[i] < b[i] or a[i] == b[i]:\n    o[i] = T.max(a[i], b[i])"
    if "float" in dtype:
        body += "\no[i] = a[i] / b[i]"
    elif dtype != "bool":
        body += "\no[i] = (a[i] // b[i]) + (a[i] % b[i]) + ((a[i] << b[i]) ^ (a[i] >> b[i])) + (~a[i] & b[i])"
    if dtype == "bool":
        body = "o[i] = a[i] & b[i] | (a[i] ^ b[i])"
    assert program_of(cell(body, tensor("a", dtype), tensor("b", dtype), tensor("o", dtype))).cubin


@pytest.mark.parametrize("arch", ["sm_75", "sm_90a"])
@pytest.mark.parametrize("dtype", [d for d in DTYPES if d not in ("bool", "float8_e4m3fn", "float8_e5m2")])
def test_atomics_of_every_type_compile(program_of, dtype: str, arch: str) -> None:
    body = "\n".join(f"o[i] = T.atomic_{name}(a[i], b[i], return_prev=True)" for name in ("add", "max", "min"))
    body += "\nT.atomic_store(a[i], b[i])\no[i] = T.atomic_load(a[i])"
    program = program_of(cell(body, tensor("a", dtype), tensor("b", dtype), tensor("o", dtype)), arch)
    assert program.cubin and "tl_atomic_add" in program.kernel_source


def test_float_algebra_stays_as_it_is_written(program_of) -> None:
    """x * 0 is NaN for an infinite x, x - x too, and x + 0 is no -0."""
    body = "o[i] = a[i] * 0.0\np[i] = a[i] - a[i]\nq[i] = a[i] + 0.0"
    source = program_of(
        cell(body, tensor("a", "float32"), tensor("o", "float32"), tensor("p", "float32"), tensor("q", "float32"))
    ).kernel_source
    for operation in (r"\* 0\.0f", r"\] - a", r"\+ 0\.0f"):
        assert re.search(operation, source), source


def test_floats_become_integers_by_saturating(program_of) -> None:
    source = program_of(cell("o[i] = T.cast(a[i], 'int8')", tensor("a", "float32"), tensor("o", "int8"))).cuda_source
    assert "tl_to_int8(" in source and "min(max(__float2int_rz(x), -128), 127)" in source


def test_reductions_of_nan_are_one_instruction(program_of) -> None:
    program = program_of("""
@T.prim_func
def k(a: T.Tensor((4, 128), "float32"), o: T.Tensor((4,), "float32")):
    with T.Kernel(1, threads=128):
        f, m = T.alloc_fragment((4, 128), "float32"), T.alloc_fragment((4,), "float32")
        T.copy(a, f)
        T.reduce_max(f, m, dim=1)
        T.copy(m, o)
""")
    assert "tl_nan_max(" in program.kernel_source and "FMNMX.NAN" in program.sass


def test_a_divisor_that_many_numbers_share_has_one_reciprocal(program_of) -> None:
    shared = """
@T.prim_func
def k(a: T.Tensor((4, 1024), "float32"), o: T.Tensor((4, 1024), "float32")):
    with T.Kernel(4, threads=128) as b:
        f, s = T.alloc_fragment((1, 1024), "float32"), T.alloc_fragment((1,), "float32")
        T.copy(a[b, 0], f)
        T.reduce_sum(f, s, dim=1)
        for i, j in T.Parallel(1, 1024):
            f[i, j] = f[i, j] / {divisor}
        T.copy(f, o[b, 0])
"""
    program = program_of(shared.format(divisor="s[i]"))
    assert "tl_divide(" in program.kernel_source and program.sass.count("CALL") <= 1
    for divisor in ("f[i, j]", "3.0", "T.cast(j, 'float32')"):
        assert "tl_divide(" not in program_of(shared.format(divisor=divisor)).kernel_source


@pytest.mark.parametrize("value", [-(2**31), 2**31 - 1])
def test_the_smallest_integer_stays_an_int(program_of, value: int) -> None:
    source = program_of(cell(f"o[i] = a[i] ^ ({value})", tensor("a", "int32"), tensor("o", "int32"))).kernel_source
    assert str(value) in source or "(-2147483647 - 1)" in source
    assert "-2147483648" not in source


@pytest.mark.parametrize(("number", "text"), [(0.1, "0.1f"), (1e-6, "1e-06f"), (2.5, "2.5f"), (3e38, "3e+38f")])
def test_constants_are_decimal_and_exact(program_of, number: float, text: str) -> None:
    assert text in program_of(cell(f"o[i] = {number}", tensor("o", "float32"))).kernel_source


@pytest.mark.parametrize("number", [1e300, -2.5e-300, 0.1, 5e-324, -0.0])
def test_doubles_are_exact(program_of, number: float) -> None:
    source = program_of(cell(f"o[i] = a[i] + {number}", tensor("a", "float64"), tensor("o", "float64"))).kernel_source
    assert f"({number!r})" in source or f"+ {number!r})" in source, source


def test_infinity_and_nan_are_constants(program_of) -> None:
    body = "o[i] = T.if_then_else(a[i] > 0, T.infinity('float32'), -T.infinity('float32'))\np[i] = float('nan')"
    assert program_of(cell(body, tensor("a", "float32"), tensor("o", "float32"), tensor("p", "float16"))).cubin


def test_barriers_wait_on_sm_80_and_are_refused_before(program_of) -> None:
    import tilelang_nb
    from tilelang_nb import device

    text = """
@T.prim_func
def k(o: T.Tensor((32,), "int32")):
    with T.Kernel(1, threads=32):
        bar = T.alloc_barrier(32)
        T.barrier_arrive(bar)
        T.barrier_wait(bar, 0)
        for i in T.Parallel(32):
            o[i] = i
"""
    assert "tl_mbarrier_wait(" in program_of(text, "sm_80").kernel_source
    assert "try_wait" in program_of(text, "sm_90a").ptx
    assert "test_wait" in program_of(text, "sm_80").ptx
    kernel = tilelang_nb.compile_cell(text, target="sim", arch="sm_75").kernels["k"]
    (refused,) = device.generate(kernel.build().lowered, arch="sm_75").diagnostics
    assert (refused.code, refused.span.line) == ("TL302", 5) and "sm_80" in refused.message
