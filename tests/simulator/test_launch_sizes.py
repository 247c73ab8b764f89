"""The size of a launch may be any expression of the kernel's scalars."""

from __future__ import annotations

import numpy as np
import pytest

import tilelang_nb

SIZES = [
    "n + 1",
    "abs(n - 6)",
    "max(1, n - 2) * 2",
    "min(n, 5) // 2 + n % 2",
    "(n >> 1) + (n & 1) + (n | 4) - (n ^ 1)",
    "1 << (n % 3)",
    "n if n < 4 else 2",
    "int(n > 2) + 1",
    "4 if n > 2 and n < 9 or n == 0 else 1",
    "0 if not n else 3",
    "2 if n in (3, 4) else 5",
    "int(f * 2)",
    "int(f // 1) + round(f)",
    "int(abs(f - 4.0))",
    "y",
]


@pytest.mark.parametrize("n", [0, 3, 4, 9])
@pytest.mark.parametrize("size", SIZES)
def test_as_many_blocks_run_as_python_counts(size: str, n: int) -> None:
    text = (
        '@T.prim_func\ndef k(out: T.Tensor((16,), "int32"), n: T.int32, f: T.float32):\n'
        "    if n > 3:\n        y = n - 1\n    else:\n        y = 2\n"
        f"    with T.Kernel({size}, threads=1) as bx:\n        out[bx] = 1\n"
    )
    made = tilelang_nb.compile_cell(text, target="sim")
    assert made.ok, made.to_text()
    out = np.zeros(16, np.int32)
    made.kernels["k"](out, n, 2.5)
    wanted = eval(size, {"n": n, "f": 2.5, "y": n - 1 if n > 3 else 2})
    assert out.tolist() == [1] * wanted + [0] * (16 - wanted)
