"""Loops that end when a reduced value says so: all threads hold it, so they leave together."""

from __future__ import annotations

import textwrap

import numpy as np
import pytest
from lowering.products import compiled

import tilelang_nb


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).integers(-50, 50, shape).astype(np.float32)


@pytest.mark.parametrize("threads", [32, 64, 96, 128])
@pytest.mark.parametrize("limit", [-100.0, 44.0, 48.0, 200.0])
@pytest.mark.parametrize("loop", ["range(6)", "T.Pipelined(6, num_stages=3)"])
def test_a_loop_is_left_on_a_reduced_value(loop, limit, threads):
    text = f"""
    @T.prim_func
    def k(X: T.Tensor((6, 64), "float32"), limit: T.float32, O: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads={threads}):
            s = T.alloc_shared((64,), "float32")
            f = T.alloc_fragment((64,), "float32")
            m = T.alloc_fragment((1,), "float32")
            T.fill(f, -1000.0)
            for t in {loop}:
                T.copy(X[t, :], s)
                for i in T.Parallel(64):
                    f[i] = T.max(f[i], s[63 - i])
                T.reduce_max(f, m, dim=0)
                if m[0] > limit:
                    break
            T.copy(f, O)
    """
    x, o = numbers(6, 64), np.zeros(64, np.float32)
    kernel = compiled(text)
    kernel(x, limit, o)
    assert tuple(kernel.findings) == ()
    f = np.full(64, -1000, np.float32)
    for row in x:
        f = np.maximum(f, row[::-1])
        if f.max() > limit:
            break
    np.testing.assert_array_equal(o, f)


def test_a_while_goes_on_until_a_residual_is_small():
    text = """
    @T.prim_func
    def k(X: T.Tensor((32, 64), "float32"), O: T.Tensor((32, 64), "float32"), turns: T.Tensor((1,), "int32")):
        with T.Kernel(1, threads=128):
            f = T.alloc_fragment((32, 64), "float32")
            rows = T.alloc_fragment((32,), "float32")
            columns = T.alloc_fragment((64,), "float32")
            m = T.alloc_fragment((1,), "float32")
            error = 10.0
            n = 0
            T.copy(X, f)
            while error > 1e-3 and n < 50:
                T.reduce_sum(f, rows, dim=1)
                for i, j in T.Parallel(32, 64):
                    f[i, j] = f[i, j] / rows[i]
                T.reduce_sum(f, columns, dim=0)
                for i, j in T.Parallel(32, 64):
                    f[i, j] = f[i, j] / columns[j] * 0.5
                T.reduce_sum(f, rows, dim=1)
                for i in T.Parallel(32):
                    rows[i] = T.abs(rows[i] - 1.0)
                T.reduce_max(rows, m, dim=0)
                error = m[0]
                n += 1
            T.copy(f, O)
            turns[0] = n
    """
    x = np.random.default_rng(1).random((32, 64)).astype(np.float32)
    o, turns = np.zeros_like(x), np.zeros(1, np.int32)
    kernel = compiled(text)
    kernel(x, o, turns)
    assert tuple(kernel.findings) == ()
    f, expected, error = x.astype(np.float64), 0, 10.0
    while error > 1e-3 and expected < 50:
        f = f / f.sum(1, keepdims=True)
        f = f / f.sum(0, keepdims=True) * 0.5
        error, expected = float(np.abs(f.sum(1) - 1).max()), expected + 1
    assert turns[0] == expected < 50
    np.testing.assert_allclose(o, f, rtol=1e-4)


@pytest.mark.parametrize(
    "value",
    ["T.get_thread_binding()", "v[0]", "T.shfl_down(1.0 * T.get_thread_binding(), 1)"],
)
def test_a_value_of_each_thread_in_a_fragment_is_not_one_of_the_block(value):
    """Threads might leave in different turns: the loop, which needs barriers, is refused."""
    text = f"""
    @T.prim_func
    def k(X: T.Tensor((6, 64), "float32"), O: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            s = T.alloc_shared((64,), "float32")
            m = T.alloc_fragment((1,), "float32")
            v = T.alloc_local((1,), "float32")
            v[0] = T.get_thread_binding()
            for i in T.Parallel(1):
                m[i] = {value}
            for t in range(6):
                T.copy(X[t, :], s)
                for i in T.Parallel(64):
                    O[i] = s[63 - i]
                if m[0] > 30.0 + t:
                    break
    """
    cell = tilelang_nb.compile_cell(textwrap.dedent(text), {}, target="sim")
    assert "TL210" in [found.code for found in cell.diagnostics]
