"""Python that means something else on a device is answered with what to write for it, by one message."""

from __future__ import annotations

import numpy as np
import pytest

import tilelang_nb

KERNEL = """
@T.prim_func
def k(A: T.Tensor((16,), "int32"), B: T.Tensor((16,), "int32"), M: T.Tensor((4, 4), "int32"), n: T.int32):
    with T.Kernel(1, threads=1):
        {}
"""
ADVICE = {
    'x: T.float16 = "a"': ("TL004", "cast a number"),
    "x: T.float16 = None": ("TL004", "cast a number"),
    "x: T.float16 = A": ("TL004", "cast an element of it"),
    "breakpoint()": ("TL127", "`T.print(x)`"),
    "sorted([A[0], A[1]])": ("TL128", "`T.min(a, b)` and `T.max(a, b)`"),
    'x = min(n, "a")': ("TL004", "give numbers"),
    "for i, v in enumerate(A): pass": ("TL111", "`for i in range(A.shape[0])`, and read `A[i]`"),
    "for a, b in zip(B, A): pass": ("TL111", "`for i in range(B.shape[0])`"),
    "x = list(M)": ("TL111", "`for i in range(M.shape[0])`, and read `M[i, ...]`"),
    "x = tuple(A[2:6])": ("TL111", "`for i in range(4)`"),
    "x = [v for v in A]": ("TL111", "and read `A[i]`"),
    "a, b = 1": ("TL111", "give 2 values, separated by commas"),
    "x = A.shape[1]": ("TL144", "the last item is `[-1]`"),
    "x = 0.5 in range(n)": ("TL004", "`start <= x < stop`"),
    "x = 3 in range(0, 9, n)": ("TL004", "`start <= x < stop`"),
    "B[0] = 3 if n > 2": ("TL005", "`x if condition else y`"),
}


@pytest.mark.parametrize("line", ADVICE)
def test_what_a_device_cannot_do_is_answered_with_what_it_can(line: str) -> None:
    code, said = ADVICE[line]
    (found,) = tilelang_nb.compile_cell(KERNEL.format(line), target="sim").diagnostics
    assert found.code == code and said in found.help and found.span is not None and found.span.line == 5, found


@pytest.mark.parametrize("line", ["x: T.int32 = T.alloc_var('int32', init=3)", "x: int = None", "x = sorted([A[0]])"])
def test_what_python_allows_beside_it_is_taken(line: str) -> None:
    assert tilelang_nb.compile_cell(KERNEL.format(line), target="sim").ok


@pytest.mark.parametrize("bounds", ["n", "n, 11", "11, n, -1", "n, 11, 2", "12, n, -3", "n, n"])
def test_in_of_a_range_with_runtime_bounds_is_pythons(bounds: str) -> None:
    lines = [f"B[{at}] = A[{at}] in range({bounds})" for at in range(8)]
    lines += [f"B[{at}] = A[{at}] not in range({bounds})" for at in range(8, 16)]
    compiled = tilelang_nb.compile_cell(KERNEL.format("\n        ".join(lines)), target="sim")
    assert compiled.ok, compiled.to_text()
    a, b = np.arange(-1, 15, dtype="int32"), np.zeros(16, "int32")
    for n in (-2, 0, 4, 13):
        compiled.kernels["k"](a, b, np.zeros((4, 4), "int32"), n)
        inside = eval(f"range({bounds})", {"n": n})
        assert b.tolist() == [(int(v) in inside) == (at < 8) for at, v in enumerate(a)]
