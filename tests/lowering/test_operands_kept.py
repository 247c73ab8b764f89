"""Operands that a pipelined loop does not change are loaded once, and the results are those of the text."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from lowering.products import compiled, thread_text

TEXT = """
    @T.prim_func
    def k(Q: T.Tensor((64, 64), "float16"), K: T.Tensor((rows, 64), "float16"), C: T.Tensor((64, 64), "float32"), n: T.int32):
        with T.Kernel(1, threads=threads) as bx:
            q = T.alloc_shared((64, 64), "float16")
            k = T.alloc_shared((32, 64), "float16")
            s = T.alloc_fragment((64, 32), "float32")
            p = T.alloc_fragment((64, 32), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            T.copy(Q, q)
            T.clear(c)
            for i in T.Pipelined(n if dynamic else turns, num_stages=2):
                T.copy(K[i * 32, 0], k)
                T.clear(s)
                T.gemm(q, k, s, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)
                T.copy(s, p)
                T.gemm(p, k, c, policy=T.GemmWarpPolicy.FullRow)
                MORE
            T.copy(c, C)
"""


def run(turns: int, dynamic: bool = False, threads: int = 128, more: str = "pass") -> tuple[Any, np.ndarray, Any, Any]:
    """(kernel, result, q, the tiles of k)"""
    rows = 32 * max(turns, 1)
    names = {"rows": rows, "turns": turns, "dynamic": dynamic, "threads": threads}
    kernel = compiled(TEXT.replace("MORE", more), **names)
    rng = np.random.default_rng(turns)
    q, k = (rng.integers(-2, 3, shape).astype(np.float16) for shape in ((64, 64), (rows, 64)))
    c = np.full((64, 64), 7, np.float32)
    kernel(q, k, c, turns)
    assert tuple(kernel.findings) == (), [str(finding) for finding in kernel.findings]
    return kernel, c, q.astype(np.float32), k.astype(np.float32).reshape(-1, 32, 64)[:turns]


def is_kept(kernel: Any) -> bool:
    """Matrices of q are loaded in front of the loop alone."""
    text = thread_text(kernel)
    before, loop = text[: text.index("for i in range(")], text[text.index("for i in range(") :]
    return "ldmatrix" in before and not any("ldmatrix" in line and " q[" in line for line in loop.splitlines())


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("turns", [0, 1, 2, 5])
def test_any_number_of_turns(turns, dynamic):
    kernel, got, q, tiles = run(turns, dynamic)
    np.testing.assert_array_equal(got, sum((q @ k.T @ k for k in tiles), np.zeros((64, 64), np.float32)))
    if dynamic or turns > 1:
        assert is_kept(kernel)


def test_not_where_a_turn_changes_the_tile():
    more = "for x, y in T.Parallel(64, 64):\n                    q[x, y] = q[x, y] + T.float16(1)"
    kernel, got, q, tiles = run(3, more=more)
    np.testing.assert_array_equal(got, sum((q + i) @ k.T @ k for i, k in enumerate(tiles)))
    assert not is_kept(kernel)


def test_not_where_registers_are_too_few():
    kernel, got, q, tiles = run(2, threads=32)
    np.testing.assert_array_equal(got, sum(q @ k.T @ k for k in tiles))
    assert not is_kept(kernel)
