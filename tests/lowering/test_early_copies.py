"""A tile that a pipelined loop reads is copied with the loop's first tiles, where nothing else needs it before."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from lowering.products import compiled

TEXT = """
    @T.prim_func
    def k(Q: T.Tensor((64, 64), "float16"), K: T.Tensor((rows, 64), "float16"), C: T.Tensor((64, 64), "float32"), n: T.int32):
        with T.Kernel(1, threads=64) as bx:
            q = T.alloc_shared((64, 64), "float16")
            k = T.alloc_shared((64, 64), "float16")
            o = T.alloc_shared((64, 64), "float32")
            c = T.alloc_fragment((64, 64), "float32")
            T.copy(Q, q)
            BEFORE
            T.clear(c)
            for i in T.Pipelined(n if dynamic else turns, num_stages=2):
                T.copy(K[i * 64, 0], k)
                T.gemm(q, k, c, transpose_B=True)
            AFTER
            T.copy(c, o)
            T.copy(o, C)
"""


def ran(turns: int, dynamic: bool = False, before: str = "pass", after: str = "pass") -> tuple[Any, np.ndarray, Any]:
    rows = 64 * max(turns, 1)
    names = {"rows": rows, "turns": turns, "dynamic": dynamic}
    kernel = compiled(TEXT.replace("BEFORE", before).replace("AFTER", after), **names)
    rng = np.random.default_rng(turns)
    q, k = (rng.integers(-3, 4, shape).astype(np.float16) for shape in ((64, 64), (rows, 64)))
    c = np.full((64, 64), 7, np.float32)
    kernel(q.copy(), k, c, turns)
    assert tuple(kernel.findings) == (), [str(finding) for finding in kernel.findings]
    parts = [k[i * 64 : i * 64 + 64].astype(np.float32) for i in range(turns)]
    expected = sum((q.astype(np.float32) @ part.T for part in parts), np.zeros((64, 64), np.float32))
    return kernel, c - expected, q


def is_early(kernel: Any) -> bool:
    text = next(one.text for one in kernel.stages if one.name == "copy-early")
    return "T.async_copy(Q" in text


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("turns", [0, 1, 2, 5])
def test_any_number_of_turns(turns, dynamic):
    kernel, rest, _ = ran(turns, dynamic)
    assert not rest.any()
    assert is_early(kernel) or turns == 0


def test_not_where_it_is_read_before_the_loop():
    kernel, rest, _ = ran(2, before="T.print(q[0, 0])")
    assert not rest.any() and not is_early(kernel)


def test_not_where_it_is_read_after_the_loop():
    after = "for x, y in T.Parallel(64, 64):\n                c[x, y] += q[x, y]"
    kernel, rest, q = ran(2, after=after)
    np.testing.assert_array_equal(rest, q.astype(np.float32))
    assert not is_early(kernel)


def test_not_where_its_source_is_written_before_the_loop():
    before = "for x, y in T.Parallel(64, 64):\n                Q[x, y] = 0.0"
    kernel, rest, _ = ran(2, before=before)
    assert not rest.any() and not is_early(kernel)
