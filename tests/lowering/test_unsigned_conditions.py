"""Conditions on unsigned numbers that wrap: nothing that is proven of integers without bounds holds of them."""

from __future__ import annotations

import numpy as np
import pytest
from lowering.products import compiled

TEXT = """
import tilelang.language as T
@T.prim_func
def k(out: T.Tensor((8,), "int32"), n: T.int32):
    with T.Kernel(1, threads=1):
        {around}
            for i in range(1, n):
                h = {h}
                if not h > {other}:
                    out[i] = 1
                else:
                    out[i] = 2
"""
CASES = {
    # h, what it is compared with: the comparison in Python on numbers that wrap at 32 bits
    "a constant below 0 and itself": ("-T.uint32(1)", "h", lambda i: False),
    "a constant below 0 and one more": ("T.uint32(0) - 1", "h + 1", lambda i: True),
    "constants in both": ("T.uint32(2) - 5", "T.uint32(0) - T.uint32(9)", lambda i: True),
    "the loop's variable and one less": ("T.cast(i - 1, 'uint32')", "h - 1", lambda i: i > 1),
    "a loop variable of one turn": ("T.cast(first, 'uint32') - T.cast(first + 1, 'uint32')", "h * 2", lambda i: True),
}


@pytest.mark.parametrize("title", CASES)
def test_a_comparison_of_unsigned_numbers_is_done_as_it_stands(title: str) -> None:
    h, other, wanted = CASES[title]
    out = np.zeros(8, np.int32)
    around = "for first in range(1):" if "first" in h else "if n > 0:"
    kernel = compiled(TEXT.format(around=around, h=h, other=other))
    kernel(out, 4)
    assert not kernel.findings
    assert out.tolist() == [0, *(2 if wanted(i) else 1 for i in (1, 2, 3)), 0, 0, 0, 0]
