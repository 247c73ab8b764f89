"""`T.use_swizzle` deals every block out once, in panels."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tilelang_nb
from tilelang_nb.device.block_order import in_panels
from tilelang_nb.simulator import Program

CELL = """
{before}@T.prim_func
def k(A: T.Tensor(({y}, {x}), "int32")):
    with T.Kernel({x}, {y}, threads=32) as (bx, by):
        {hint}
        for i in T.Parallel(1):
            A[by, bx + i] = A[by, bx + i] + by * 1000 + bx + 1
"""


def launch_of(cell: str):
    compilation = tilelang_nb.compile_cell(cell, target="sim", arch="sm_80")
    assert compilation.ok, compilation.to_text()
    return compilation.kernels["k"].build().lowered


@pytest.mark.parametrize("order", ["row", "column"])
@pytest.mark.parametrize("panel", [1, 3, 4, 10, 100])
@pytest.mark.parametrize(("x", "y"), [(1, 1), (7, 1), (1, 7), (8, 8), (5, 13), (13, 5)])
def test_every_block_is_dealt_out_once(x: int, y: int, panel: int, order: str) -> None:
    (launch,) = launch_of(CELL.format(x=x, y=y, before="", hint="pass")).launches
    swizzled = in_panels(launch, panel, order)
    a = np.zeros((y, x), np.int32)
    report = Program(swizzled).run({"A": a})
    assert report.findings == () and np.array_equal(a, np.arange(y)[:, None] * 1000 + np.arange(x) + 1)


def order_of(x: int, y: int, panel: int, order: str) -> list[tuple[int, int]]:
    """The blocks as a device starts them."""
    cell = f"""
@T.prim_func
def k(A: T.Tensor(({y}, {x}), "int32"), n: T.Tensor((1,), "int32")):
    with T.Kernel({x}, {y}, threads=32) as (bx, by):
        for i in T.Parallel(1):
            A[by, bx + i] = T.atomic_add(n[0], 1, return_prev=True)
"""
    (launch,) = launch_of(cell).launches
    a = np.zeros((y, x), np.int32)
    Program(in_panels(launch, panel, order), checks=False).run({"A": a, "n": np.zeros(1, np.int32)})
    return [(int(p % x), int(p // x)) for p in np.argsort(a.ravel())]


def test_a_panel_is_walked_by_columns_and_the_next_one_back() -> None:
    assert order_of(3, 4, 2, "row") == [
        (0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1), (2, 2), (2, 3), (1, 2), (1, 3), (0, 2), (0, 3)
    ]  # fmt: skip
    assert order_of(4, 3, 2, "column")[:4] == [(0, 0), (1, 0), (0, 1), (1, 1)]


def test_the_hint_reaches_the_device_code(program_of) -> None:
    with_hint = program_of(
        CELL.format(x="m", y="n", before='m, n = T.dynamic("m"), T.dynamic("n")\n', hint="T.use_swizzle(4)")
    )
    without = program_of(CELL.format(x="m", y="n", before='m, n = T.dynamic("m"), T.dynamic("n")\n', hint="pass"))
    assert re.search(r"\bpanel\b", with_hint.kernel_source) and with_hint.cubin
    assert not re.search(r"\bpanel\b", without.kernel_source)
    assert with_hint.launches[0].configuration({"m": 9, "n": 5}) == without.launches[0].configuration({"m": 9, "n": 5})


def test_a_kernel_that_prints_keeps_the_order_in_which_blocks_are_named(program_of) -> None:
    program = program_of(CELL.format(x=3, y=4, before="", hint="T.use_swizzle(2)\n        T.print(bx)"))
    assert not re.search(r"\bpanel\b", program.kernel_source)
