"""Accesses are as wide as both sides allow, and scalar where their alignment is not certain."""

from __future__ import annotations

import re

import pytest


def copy(dtype: str, index: str = "bx * 1024 + i", value: str = "A[{}]", extent: int = 4096, out: str = "") -> str:
    return f"""
@T.prim_func
def k(A: T.Tensor(({extent},), "{dtype}"), B: T.Tensor(({extent},), "{out or dtype}")):
    with T.Kernel(4, threads=64) as bx:
        for i in T.Parallel(1024):
            B[bx * 1024 + i] = {value.format(index)}
"""


def accesses(program, kind: str) -> set[str]:
    return set(re.findall(rf"{kind}[.\w]*", program.sass))


@pytest.mark.parametrize(
    "dtype", ["float32", "float16", "bfloat16", "float64", "int8", "int32", "int64", "uint8", "float8_e4m3fn"]
)
def test_copies_move_16_bytes_at_once(program_of, dtype: str) -> None:
    program = program_of(copy(dtype))
    assert accesses(program, "LDG") == {"LDG.E.128"} and accesses(program, "STG") == {"STG.E.128"}
    assert program.resources.local_bytes.value == 0


@pytest.mark.parametrize(
    "value",
    ["T.exp(A[{}])", "A[{}] * 2 + 1", "T.max(A[{}], 0)", "T.if_then_else(A[{}] > 1, 1, A[{}])", "T.sigmoid(A[{}])"],
)
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_computing_in_between_does_not_make_them_narrower(program_of, dtype: str, value: str) -> None:
    value = value.replace("{}", "bx * 1024 + i")
    program = program_of(copy(dtype, value=value))
    assert accesses(program, "LDG") == {"LDG.E.128"} and accesses(program, "STG") == {"STG.E.128"}
    assert program.resources.local_bytes.value == 0


@pytest.mark.parametrize(
    ("dtype", "out", "load", "store"),
    [
        ("float16", "float32", "LDG.E.64", "STG.E.128"),
        ("float32", "float16", "LDG.E.128", "STG.E.64"),
        ("float32", "int8", "LDG.E.128", "STG.E"),
        ("int8", "float32", "LDG.E", "STG.E.128"),
    ],
)
def test_conversions_are_as_wide_as_the_wider_type_allows(
    program_of, dtype: str, out: str, load: str, store: str
) -> None:
    program = program_of(copy(dtype, out=out, value=f'T.cast(A[{{}}], "{out}")'))
    assert accesses(program, "LDG") == {load} and accesses(program, "STG") == {store}


def test_half_precision_fills_float_registers_16_bytes_at_a_time(program_of) -> None:
    program = program_of("""
@T.prim_func
def k(A: T.Tensor((4, 2048), "float16"), B: T.Tensor((4, 2048), "float16")):
    with T.Kernel(4, threads=128) as bx:
        x, s = T.alloc_fragment((1, 2048), "float32"), T.alloc_fragment((1,), "float32")
        T.copy(A[bx, 0], x)
        T.reduce_sum(x, s, dim=1)
        for i, j in T.Parallel(1, 2048):
            x[i, j] = x[i, j] / s[i]
        T.copy(x, B[bx, 0])
""")
    assert accesses(program, "LDG") == {"LDG.E.128"} and accesses(program, "STG") == {"STG.E.128"}
    assert program.resources.local_bytes.value == 0


@pytest.mark.parametrize("index", ["bx * 1024 + i + 1", "(bx * 1024 + i) * 2", "4095 - bx * 1024 - i", "bx * 1023 + i"])
def test_what_is_not_aligned_or_not_contiguous_is_read_by_elements(program_of, index: str) -> None:
    program = program_of(copy("float32", index))
    assert accesses(program, "LDG") == {"LDG.E"}


def test_rows_of_an_unknown_length_are_read_by_elements(program_of) -> None:
    program = program_of("""
n = T.dynamic("n")

@T.prim_func
def k(A: T.Tensor((8, n), "float32"), B: T.Tensor((8, n), "float32")):
    with T.Kernel(8, threads=64) as by:
        for j in T.Parallel(256):
            B[by, j] = A[by, j]
""")
    assert accesses(program, "LDG") == {"LDG.E"} and accesses(program, "STG") == {"STG.E"}


def test_a_guard_holds_for_a_whole_vector_where_the_edge_is_aligned(program_of) -> None:
    source = program_of(copy("float32", extent=4000)).kernel_source
    assert "*(float4*)" in source and source.count("if (") <= 2


def test_constants_fill_shared_memory_and_registers_of_every_type(program_of) -> None:
    for dtype in ("int8", "float16", "bfloat16", "float32", "float64", "int64", "bool"):
        assert program_of(f"""
@T.prim_func
def k(B: T.Tensor((256,), "{dtype}")):
    with T.Kernel(1, threads=32):
        s, f = T.alloc_shared((256,), "{dtype}"), T.alloc_fragment((256,), "{dtype}")
        T.fill(s, 1)
        T.fill(f, 1)
        for i in T.Parallel(256):
            s[i] = f[i]
        T.copy(s, B)
""").cubin
