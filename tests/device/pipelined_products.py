"""Products in pipelined loops, after each pass from the program of a thread to its CUDA C."""

from __future__ import annotations

from typing import Any

import tilelang_nb

TEXT = """
@T.prim_func
def k(A: T.Tensor(shape_a, dtype), B: T.Tensor(shape_b, dtype), C: T.Tensor((rows, columns), total)):
    with T.Kernel(1, threads=threads) as bx:
        A_s = T.alloc_shared(tile_a, dtype)
        B_s = T.alloc_shared(tile_b, dtype)
        c = T.alloc_fragment((rows, columns), total)
        T.clear(c)
        for i in T.Pipelined(4, num_stages=3):
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


def passes(
    rows: int, columns: int, depth: int, *, arch: str, dtype: str = "float16", total: str = "float32",
    threads: int = 128, ta: bool = False, tb: bool = False,
) -> dict[str, Any]:  # fmt: skip
    """The module after each pass, by the pass's name."""
    length = depth * 4
    shape_a, tile_a = ((length, rows), (depth, rows)) if ta else ((rows, length), (rows, depth))
    shape_b, tile_b = ((columns, length), (columns, depth)) if tb else ((length, columns), (depth, columns))
    cell = tilelang_nb.compile_cell(TEXT, dict(locals()), target="cuda", arch=arch)
    assert cell.ok, cell.to_text()
    device = cell.namespace["k"].build().device
    assert not device.diagnostics
    return {one.name: one.module for one in device.passes}
