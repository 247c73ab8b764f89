"""Sums that a loop carries on meet between lanes after the loop, and the results are those of the text."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from lowering.products import compiled, thread_text

TEXT = """
    @T.prim_func
    def k(A: T.Tensor((turns * 64, 64), dtype), S: T.Tensor((turns,), dtype), C: T.Tensor((64,), dtype), D: T.Tensor((64,), dtype), n: T.int32):
        with T.Kernel(1, threads=128) as bx:
            a = T.alloc_fragment((64, 64), dtype)
            row = T.alloc_fragment((64,), dtype)
            total = T.alloc_fragment((64,), dtype)
            scale = T.alloc_fragment((64,), dtype)
            T.fill(total, 3)
            T.clear(row)
            for i in T.serial(n):
                T.copy(A[i * 64, 0], a)
                for r, c in T.Parallel(64, 64):
                    a[r, c] = a[r, c] + 1
                for r in T.Parallel(64):
                    scale[r] = S[i]
                T.reduce_sum(a, row, dim=1)
                for r in T.Parallel(64):
                    total[r] = UPDATE
                MORE
            T.copy(total, C)
            T.copy(LAST, D)
"""


def run(
    update: str, turns: int, more: str = "pass", last: str = "total", dtype: str = "float32"
) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """(kernel, C, D, sums of the rows in each turn, scales)"""
    text = TEXT.replace("UPDATE", update).replace("MORE", more).replace("LAST", last)
    kernel = compiled(text, turns=max(turns, 1), dtype=dtype)
    rng = np.random.default_rng(turns)
    a = rng.integers(-4, 5, (max(turns, 1) * 64, 64)).astype(dtype)
    scales = rng.integers(1, 3, max(turns, 1)).astype(dtype)
    c, d = np.full(64, 99, dtype), np.full(64, 99, dtype)
    kernel(a, scales, c, d, turns)
    assert tuple(kernel.findings) == (), [str(finding) for finding in kernel.findings]
    return kernel, c, d, (a + 1).reshape(-1, 64, 64).sum(-1, dtype=dtype)[:turns], scales


def is_late(kernel: Any) -> bool:
    """The loop has no shuffle, and one comes after it."""
    text = thread_text(kernel)
    begin = text.index("for i in range(")
    depth = begin - text.rindex("\n", 0, begin) - 1
    lines = text[begin:].splitlines()
    end = next(at for at, line in enumerate(lines[1:], 1) if len(line) - len(line.lstrip()) <= depth)
    inside, after = "\n".join(lines[:end]), "\n".join(lines[end:])
    assert "shfl" in inside or "shfl" in after
    return "shfl" not in inside


@pytest.mark.parametrize("dtype", ["float32", "int32"])
@pytest.mark.parametrize("turns", [0, 1, 3])
@pytest.mark.parametrize(
    "update",
    [
        "total[r] * scale[r] + row[r]",
        "row[r] + scale[r] * total[r]",
        "total[r] + row[r]",
        "total[r] * (scale[r] + 1) + row[r]",
    ],
)
def test_what_is_carried_on(update, turns, dtype):
    kernel, got, again, sums, scales = run(update, turns, dtype=dtype)
    assert is_late(kernel)
    expected = np.full(64, 3, dtype)
    for row, scale in zip(sums, scales):
        factor = 1 if "scale" not in update else scale + 1 if "+ 1" in update else scale
        expected = expected * factor + row
    np.testing.assert_array_equal(got, expected)
    np.testing.assert_array_equal(again, expected)


@pytest.mark.parametrize(
    ("update", "step", "more", "last"),
    [
        ("total[r] + row[r]", np.add, "pass", "row"),  # the sum of the last turn is stored
        ("total[r] * row[r] + row[r]", lambda total, row: total * row + row, "pass", "total"),  # not linear
        ("total[r] + row[r]", np.add, "for r in T.Parallel(64):\n                    scale[r] = total[r]", "scale"),
        ("total[r] + row[r]", np.add, "if i == 2:\n                    break", "total"),
        ("T.max(total[r], row[r])", np.maximum, "pass", "total"),
    ],
)
def test_what_needs_the_sum_in_its_turn(update, step, more, last):
    kernel, got, other, sums, _ = run(update, 3, more, last)
    assert not is_late(kernel)
    expected = np.full(64, 3, np.float32)
    for row in sums:
        expected = step(expected, row)
    np.testing.assert_array_equal(got, expected)
    np.testing.assert_array_equal(other, sums[-1] if last == "row" else expected)


def test_rows_that_warps_share_meet_in_their_turn():
    """What goes through shared memory stays where it is."""
    text = TEXT.replace("UPDATE", "total[r] + row[r]").replace("MORE", "pass").replace("LAST", "total")
    text = text.replace("T.copy(A[i * 64, 0], a)", "T.copy(A[i * 64, 0], wide)\n                T.copy(wide, a)")
    text = text.replace(
        "a = T.alloc_fragment", "wide = T.alloc_shared((64, 64), dtype)\n            a = T.alloc_fragment"
    )
    kernel = compiled(text, turns=2, dtype="float32")
    a = np.arange(2 * 64 * 64, dtype=np.float32).reshape(128, 64) % 7
    c, d = np.zeros(64, np.float32), np.zeros(64, np.float32)
    kernel(a, np.ones(2, np.float32), c, d, 2)
    assert tuple(kernel.findings) == ()
    np.testing.assert_array_equal(c, 3 + (a + 1).reshape(2, 64, 64).sum((0, 2)))
