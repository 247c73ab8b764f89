"""What a launcher reads: parameters in the order of the CUDA kernel, grid, block, shared memory."""

from __future__ import annotations

import re

import pytest

from tilelang_nb.device.launch import DeviceLaunch, evaluator

CELL = """
@T.prim_func
def scaled(Y: T.Tensor((m, n), "float32"), factor: T.float32, X: T.Tensor((m, n), "float32"), a: T.int32):
    with T.Kernel(T.ceildiv(n, 128), m, threads=(32, 4)) as (bx, by):
        s = T.alloc_shared((128,), "float32")
        for i in T.Parallel(128):
            s[i] = X[by, bx * 128 + i]
        for i in T.Parallel(128):
            Y[by, bx * 128 + i] = s[127 - i] * factor + a
"""
CELL = 'm, n = T.dynamic("m"), T.dynamic("n")\n' + CELL


def test_parameters_are_in_the_order_of_the_cuda_kernel(program_of) -> None:
    program = program_of(CELL)
    (launch,) = program.launches
    signature = re.search(rf"{launch.name}\((.*?)\)", program.cuda_source)
    assert signature is not None
    in_text = [part.split()[-1].removesuffix("_ptr") for part in signature[1].split(",")]
    assert [parameter.name for parameter in launch.parameters] == in_text
    assert {(p.name, p.kind, p.dtype) for p in launch.parameters} == {
        ("X", "pointer", "float32"),
        ("Y", "pointer", "float32"),
        ("a", "scalar", "int32"),
        ("factor", "scalar", "float32"),
        ("m", "scalar", "int32"),
        ("n", "scalar", "int32"),
    }


def test_grid_and_shared_memory_follow_from_the_sizes(program_of) -> None:
    (launch,) = program_of(CELL).launches
    assert launch.configuration({"m": 5, "n": 300}) == ((3, 5, 1), (32, 4, 1), 512)
    assert launch.configuration({"m": 0, "n": 0}) == ((0, 0, 1), (32, 4, 1), 512)
    assert launch.threads == 128


def test_a_size_that_is_missing_is_named(program_of) -> None:
    (launch,) = program_of(CELL).launches
    with pytest.raises(KeyError, match="m"):
        launch.configuration({"n": 300})


def test_several_launches_are_in_order_and_have_names_of_their_own(program_of) -> None:
    program = program_of("""
@T.prim_func
def twice(A: T.Tensor((256,), "float32"), B: T.Tensor((256,), "float32")):
    with T.Kernel(1, threads=64):
        for i in T.Parallel(256):
            B[i] = A[i] + 1
    with T.Kernel(2, threads=128) as b:
        for i in T.Parallel(128):
            A[b * 128 + i] = B[b * 128 + i] * 2
""")
    assert [launch.configuration({})[:2] for launch in program.launches] == [
        ((1, 1, 1), (64, 1, 1)),
        ((2, 1, 1), (128, 1, 1)),
    ]
    assert len({launch.name for launch in program.launches}) == 2
    for launch in program.launches:
        assert f" {launch.name}(" in program.cuda_source


def test_a_kernel_may_have_a_parameter_and_a_size_of_one_name(program_of) -> None:
    (launch,) = program_of("""
@T.prim_func
def first(A: T.Tensor((64,), "int32"), n: T.int32):
    with T.Kernel(1, threads=64):
        for i in T.Parallel(64):
            A[i] = n
""").launches
    assert [parameter.name for parameter in launch.parameters] == ["A", "n"]


def test_extents_are_computed_as_tir_means_them() -> None:
    from tvm import tirx as tir

    n = tir.Var("n", "int32")
    cases = {
        tir.floordiv(n + 127, 128): lambda v: (v + 127) // 128,
        tir.truncdiv(n, 4): lambda v: int(v / 4),
        tir.truncmod(n, 4): lambda v: v - int(v / 4) * 4,
        tir.max(n, 3) - tir.min(n, 5): lambda v: max(v, 3) - min(v, 5),
        tir.Select(n > 3, n * 2, n % 7): lambda v: v * 2 if v > 3 else v % 7,
        tir.if_then_else(tir.And(n > 3, n < 9), n << 1, n >> 1): lambda v: v << 1 if 3 < v < 9 else v >> 1,
    }
    for expression, python in cases.items():
        compute = evaluator(expression)
        assert [compute({"n": v}) for v in range(-9, 20)] == [python(v) for v in range(-9, 20)], str(expression)


SIZES = [
    *("n + 1", "abs(n - 6)", "max(1, n - 2) * 2", "min(n, 5) // 2 + n % 2", "1 << (n % 3)", "n if n < 4 else 2"),
    *("(n >> 1) + (n & 1) + (n | 4) - (n ^ 1)", "4 if n > 2 and n < 9 or n == 0 else 1", "0 if not n else 3"),
    *("int(f * 2)", "int(f // 1) + round(f)", "int(abs(f - 4.0))", "int(f > 2) + 1"),
]


@pytest.mark.parametrize("size", SIZES)
def test_the_size_of_a_launch_may_be_any_expression_of_the_scalars(program_of, size: str) -> None:
    (launch,) = program_of(f"""
@T.prim_func
def k(out: T.Tensor((16,), "int32"), n: T.int32, f: T.float32):
    with T.Kernel({size}, threads=1) as bx:
        out[bx] = 1
""").launches
    for n in (0, 3, 4, 9):
        wanted = eval(size, {"n": n, "f": 2.5})
        assert launch.configuration({"n": n, "f": 2.5})[0] == (wanted, 1, 1), n


def test_a_launch_is_equal_to_one_with_the_same_facts() -> None:
    one = DeviceLaunch("k", (), (1, 1, 1), (32, 1, 1), 0)
    one.configuration({})
    assert one == DeviceLaunch("k", (), (1, 1, 1), (32, 1, 1), 0)
