"""Launches from the arrays of a caller to the results in them: every kind of argument through the whole chain."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilelang_nb
from tilelang_nb.runtime.kernel import SimulatorFindings

CELL = """
n = T.dynamic("n")
m = T.dynamic("m")
step = T.dynamic("step")

@T.prim_func
def strided(A: T.StridedTensor((n, m), (step, 1), "float32"), B: T.Tensor((n, m), "float32")):
    with T.Kernel(n, threads=32) as b:
        for i in T.Parallel(32):
            if i < m:
                A[b, i] = A[b, i] + B[b, i]

@T.prim_func
def sums(A: T.Tensor((n * 4 + 2,), "float32"), out: T.Tensor((1,), "int32")):
    with T.Kernel(1, threads=1):
        out[0] = n

@T.prim_func
def through_workspace(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
    W = T.alloc_global((64,), "float32")
    with T.Kernel(2, threads=32) as b:
        for i in T.Parallel(32):
            W[b * 32 + i] = A[b * 32 + i] * 2
    with T.Kernel(2, threads=32) as b:
        for i in T.Parallel(32):
            B[b * 32 + i] = W[63 - (b * 32 + i)]

@T.prim_func
def mixed(A: T.Tensor((64,), "bfloat16"), B: T.Tensor((64,), "float8_e4m3fn"), f: T.float32, q: T.bool, z: T.int8):
    with T.Kernel(1, threads=64):
        for i in T.Parallel(64):
            if q:
                B[i] = A[i] * f + z

@T.prim_func
def reversed_copy(A: T.Tensor((64,), "int32"), B: T.Tensor((64,), "int32")):
    with T.Kernel(1, threads=64):
        for i in T.Parallel(64):
            B[i] = A[63 - i]

@T.prim_func
def increment(A: T.Tensor((n, m), "int32")):
    with T.Kernel(n, m, threads=1) as (i, j):
        A[i, j] = A[i, j] + 1

@T.prim_func
def nothing():
    with T.Kernel(1, threads=1):
        pass
"""


@pytest.fixture(scope="module")
def kernels() -> dict[str, Any]:
    c = tilelang_nb.compile_cell(CELL)
    assert c.ok, c.to_text()
    return c.kernels


def test_a_strided_tensor_is_worked_on_in_place(kernels: dict[str, Any]) -> None:
    whole = np.zeros((4, 10), np.float32)
    kernels["strided"](whole[:, 2:8], np.ones((4, 6), np.float32))
    wanted = np.zeros((4, 10), np.float32)
    wanted[:, 2:8] = 1
    assert np.array_equal(whole, wanted) and kernels["strided"].findings == ()


def test_a_size_that_stands_only_in_a_sum_is_solved(kernels: dict[str, Any]) -> None:
    out = np.zeros(1, np.int32)
    kernels["sums"](np.zeros(14, np.float32), out)
    assert out[0] == 3


def test_a_workspace_connects_two_launches(kernels: dict[str, Any]) -> None:
    a, b = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    kernels["through_workspace"](a, b)
    assert np.array_equal(b, 2 * a[::-1]) and len(kernels["through_workspace"].counters) == 2


def test_small_floats_and_scalars_of_every_kind(kernels: dict[str, Any]) -> None:
    a, b = np.arange(64).astype(ml_dtypes.bfloat16), np.zeros(64, ml_dtypes.float8_e4m3fn)
    kernels["mixed"](a, b, 0.5, False, -3)
    assert not b.astype(np.float32).any()
    kernels["mixed"](a, b, f=np.float32(0.5), q=True, z=np.int64(-3))
    assert np.array_equal(b, (a.astype(np.float32) * 0.5 - 3).astype(ml_dtypes.float8_e4m3fn))


def test_one_array_for_two_parameters_is_one_memory_and_its_race_is_found(kernels: dict[str, Any]) -> None:
    x = np.arange(64, dtype=np.int32)
    with pytest.warns(SimulatorFindings):
        kernels["reversed_copy"](x, x)
    assert {d.code for d in kernels["reversed_copy"].findings} == {"TL401"}


@pytest.mark.parametrize(
    "view",
    [
        lambda a: a,
        lambda a: a.T,
        lambda a: a[::-1],
        lambda a: a[:, ::2],
        lambda a: a[1:3, 1:3],
        lambda a: a[:0],
        lambda a: a[:, :0],
        lambda a: a[2:3],
        lambda a: a[::-2, ::-3],
    ],
)
def test_a_kernel_writes_through_any_view_and_nowhere_else(kernels: dict[str, Any], view: Any) -> None:
    memory = np.arange(24, dtype=np.int32).reshape(4, 6)
    wanted = memory.copy()
    view(wanted)[...] += 1
    kernels["increment"](view(memory))
    assert np.array_equal(memory, wanted)


def test_a_big_endian_array_is_written_as_it_is(kernels: dict[str, Any]) -> None:
    a = np.arange(6, dtype=">i4").reshape(2, 3)
    kernels["increment"](a)
    assert a.dtype == np.dtype(">i4") and a.tolist() == [[1, 2, 3], [4, 5, 6]]


def test_a_kernel_without_parameters_is_launched(kernels: dict[str, Any]) -> None:
    assert kernels["nothing"]() is None and kernels["nothing"](stream=0) is None


def test_a_refused_launch_changes_nothing(kernels: dict[str, Any]) -> None:
    a = np.zeros((2, 6), np.float32)[:, :3]
    with pytest.raises(tilelang_nb.LaunchError, match=r"shape \(n, m\) with n = 2 \(shape of A\), m = 3"):
        kernels["strided"](a, np.ones((2, 4), np.float32))
    assert not a.any()


DEFAULTS = """
@T.prim_func
def k(n: T.int32, out: T.Tensor((4,), "float32"), *, m: T.int32 = 2 + 1, x: T.float32 = 0.5, yes: T.bool = True):
    with T.Kernel(1, threads=1):
        if yes:
            out[0] = n
            out[1] = m
            out[2] = x
"""


def test_defaults_of_scalars_hold_at_the_launch_as_in_python() -> None:
    kernel = tilelang_nb.compile_cell(DEFAULTS).kernels["k"]
    for given, wanted in (({}, (7, 3, 0.5)), ({"m": 5, "x": 2}, (7, 5, 2)), ({"yes": False}, (0, 0, 0))):
        out = np.zeros(4, np.float32)
        kernel(7, out, **given)
        assert tuple(out[:3]) == wanted


@pytest.mark.parametrize(
    ("parameter", "said"),
    [
        ('A: T.Tensor((4,), "int32") = None', "the tensor parameter `A` has a default"),
        ("n: T.int32 = None", "the default of parameter `n` is "),
        ("n: T.int32 = 'x'", "the default of parameter `n` is "),
    ],
)
def test_a_default_that_no_launch_could_take_is_refused_at_the_parameter(parameter: str, said: str) -> None:
    text = f"@T.prim_func\ndef k({parameter}):\n    with T.Kernel(1, threads=1):\n        pass\n"
    (found,) = tilelang_nb.compile_cell(text).diagnostics
    assert found.code == "TL004" and found.message.startswith(said)
    assert found.span.line == 2


def test_a_narrow_signed_and_a_wide_unsigned_integer_keep_python_s_value() -> None:
    text = """
@T.prim_func
def k(a: T.Tensor((4,), "int8"), b: T.Tensor((4,), "uint32"), out: T.Tensor((4,), "int64")):
    with T.Kernel(1, threads=4):
        for i in T.Parallel(4):
            out[i] = a[i] + b[i]
"""
    a, b = np.array([-5, -128, 127, 0], np.int8), np.array([2, 0, 2**32 - 1, 7], np.uint32)
    out = np.zeros(4, np.int64)
    tilelang_nb.compile_cell(text).kernels["k"](a, b, out)
    assert out.tolist() == [int(x) + int(y) for x, y in zip(a, b)]


ONE = """
@T.prim_func
def fill(n: T.int32, B: T.Tensor((16, 2), "float32")):
    with T.Kernel(1, threads=32):
        B[0, 0] = n
"""


def test_a_launch_configuration_in_brackets_is_refused_with_the_call() -> None:
    kernel = tilelang_nb.compile_cell(ONE, {}).namespace["fill"]
    with pytest.raises(tilelang_nb.LaunchError) as raised:
        kernel[4, 256](1, 2)
    found = raised.value.diagnostic
    assert (found.code, found.help) == ("TL301", "blocks and threads stand in `T.Kernel`: call `fill(n, B)`")


def test_a_tensor_to_write_that_is_missing_is_shown_how_to_make() -> None:
    kernel = tilelang_nb.compile_cell(ONE, {}).namespace["fill"]
    with pytest.raises(tilelang_nb.LaunchError) as raised:
        kernel(1)
    assert '`B = np.empty((16, 2), "float32")`' in raised.value.diagnostic.help
