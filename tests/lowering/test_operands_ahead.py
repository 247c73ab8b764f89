"""Operands of pipelined products are loaded one step ahead, without a change of what the loop computes."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from lowering.products import compiled, numpy_type, thread_text

TEXT = """
    @T.prim_func
    def k(A: T.Tensor(shape_a, dtype), B: T.Tensor(shape_b, dtype), C: T.Tensor((rows, columns), total), n: T.int32):
        with T.Kernel(1, threads=threads) as bx:
            A_s = T.alloc_shared(tile_a, dtype)
            B_s = T.alloc_shared(tile_b, dtype)
            c = T.alloc_fragment((rows, columns), total)
            T.clear(c)
            for i in T.Pipelined(n if dynamic else turns, num_stages=stages):
                if ta:
                    T.copy(A[i * depth, 0], A_s)
                else:
                    T.copy(A[0, i * depth], A_s)
                if tb:
                    T.copy(B[0, i * depth], B_s)
                else:
                    T.copy(B[i * depth, 0], B_s)
                T.gemm(A_s, B_s, c, transpose_A=ta, transpose_B=tb)
            T.copy(c, C)
"""


def loop_of(kernel: Any) -> str:
    """The text of the pipelined loop."""
    lines = thread_text(kernel).splitlines()
    first = next(number for number, line in enumerate(lines) if "for i in range(" in line)
    indent = len(lines[first]) - len(lines[first].lstrip())
    inside = itertools.takewhile(lambda line: line.startswith(" " * (indent + 1)), lines[first + 1 :])
    return "\n".join(inside)


def is_ahead(kernel: Any) -> bool:
    """The last instruction of a turn that loads operands comes after its barrier."""
    loop = loop_of(kernel)
    return loop.rindex("ldmatrix") > loop.rindex("sync_threads") > loop.index("ldmatrix")


def run(
    turns: int, stages: int, *, depth: int = 32, rows: int = 32, columns: int = 32, dtype: str = "float16",
    total: str = "float32", threads: int = 64, ta: bool = False, tb: bool = False, dynamic: bool = False,
) -> Any:  # fmt: skip
    """The kernel after a run without findings whose result is exact."""
    length = depth * max(turns, 1)
    shape_a, tile_a = ((length, rows), (depth, rows)) if ta else ((rows, length), (rows, depth))
    shape_b, tile_b = ((columns, length), (columns, depth)) if tb else ((length, columns), (depth, columns))
    names = {name: value for name, value in locals().items() if name != "length"}
    kernel = compiled(TEXT, **names)
    rng = np.random.default_rng(turns)
    a, b = (rng.integers(-4, 5, shape).astype(numpy_type(dtype)) for shape in (shape_a, shape_b))
    c = np.full((rows, columns), 99, numpy_type(total))
    kernel(a, b, c, turns)
    assert tuple(kernel.findings) == (), [str(finding) for finding in kernel.findings]
    left, right = (a.T if ta else a).astype(np.float64), (b.T if tb else b).astype(np.float64)
    expected = left @ right if turns else np.zeros((rows, columns))
    np.testing.assert_array_equal(c.astype(np.float64), expected)
    return kernel


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("turns", [0, 1, 2, 3, 4, 7])
@pytest.mark.parametrize("stages", [2, 3, 4])
def test_any_number_of_turns(stages, turns, dynamic):
    kernel = run(turns, stages, dynamic=dynamic)
    if dynamic or turns >= stages:
        assert is_ahead(kernel)


@pytest.mark.parametrize("depth", [16, 32, 48, 64, 128])
def test_any_number_of_steps(depth):
    kernel = run(4, 3, depth=depth)
    assert is_ahead(kernel) == (depth // 16 % 2 == 0)


@pytest.mark.parametrize(("ta", "tb"), [(False, True), (True, False), (True, True)])
@pytest.mark.parametrize(("dtype", "total"), [("float16", "float16"), ("bfloat16", "float32"), ("int8", "int32")])
def test_types_and_transposes(dtype, total, ta, tb):
    kernel = run(3, 2, depth=64, dtype=dtype, total=total, ta=ta, tb=tb)
    if "ldmatrix" in thread_text(kernel):
        assert is_ahead(kernel)


def test_one_barrier_for_a_turn():
    for stages in (2, 3, 4):
        assert loop_of(run(8, stages)).count("sync_threads") == 1


def test_not_where_registers_are_too_few():
    assert not is_ahead(run(3, 3, rows=128, columns=128, threads=64))


def test_not_where_a_turn_does_more():
    text = """
    @T.prim_func
    def k(A: T.Tensor((32, 128), "float16"), B: T.Tensor((128, 32), "float16"), C: T.Tensor((32, 32), "float32")):
        with T.Kernel(1, threads=64) as bx:
            A_s = T.alloc_shared((32, 32), "float16")
            B_s = T.alloc_shared((32, 32), "float16")
            c = T.alloc_fragment((32, 32), "float32")
            T.clear(c)
            for i in T.Pipelined(4, num_stages=3):
                T.copy(A[0, i * 32], A_s)
                T.copy(B[i * 32, 0], B_s)
                T.gemm(A_s, B_s, c)
                for x, y in T.Parallel(32, 32):
                    c[x, y] += A_s[x, y]
            T.copy(c, C)
    """
    kernel = compiled(text)
    a = np.random.default_rng(0).integers(-4, 5, (32, 128)).astype(np.float16)
    b, c = a.T.copy(), np.zeros((32, 32), np.float32)
    kernel(a, b, c)
    assert tuple(kernel.findings) == () and not is_ahead(kernel)
    wide = a.astype(np.float32)
    np.testing.assert_array_equal(c, wide @ wide.T + sum(wide[:, i * 32 : i * 32 + 32] for i in range(4)))
