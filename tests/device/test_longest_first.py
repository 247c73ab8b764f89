"""Blocks with the most turns start first, and every block starts once."""

from __future__ import annotations

import itertools
import textwrap
from typing import Any

import pytest
from device.expressions import evaluate
from tvm import tirx as tir

import tilelang_nb
from tilelang_nb.device.longest_first import longest_first

TEXT = """
@T.prim_func
def k(A: T.Tensor((12, 64, 64), "float16"), C: T.Tensor((8, 64, 64), "float32")):
    with T.Kernel({grid}, threads=64) as {names}:
        a = T.alloc_shared((64, 64), "float16")
        c = T.alloc_fragment((64, 64), "float32")
        T.clear(c)
        {more}
        for i in T.Pipelined({extent}, num_stages=2):
            T.copy(A[i, 0, 0], a)
            T.gemm(a, a, c)
        T.copy(c, C[bx, 0, 0])
"""


def order(
    grid: tuple[int, ...], extent: str, more: str = "pass", text: str = TEXT, arch: str = "sm_80"
) -> list[tuple[int, ...]] | None:
    """The blocks in the order in which they start; None for that of the text."""
    names = ("bx", "by", "bz")[: len(grid)]
    text = text.format(
        grid=", ".join(map(str, grid)),
        names="(" + ", ".join(names) + ")" if len(names) > 1 else names[0],
        extent=extent,
        more=more,
    )
    cell = tilelang_nb.compile_cell(textwrap.dedent(text), {}, target="cuda", arch=arch)
    assert cell.ok, cell.to_text()
    before = cell.namespace["k"].build().lowered.launches[0]
    after = longest_first(before)
    if after.same_as(before):
        return None
    binds: list[Any] = []
    body = after.body
    while isinstance(body, tir.AttrStmt):
        body = body.body
    for one in body.seq:
        if not isinstance(one, tir.Bind) or len(binds) and binds[-1].var.name == names[-1]:
            break
        binds.append(one)
    started = []
    for place in itertools.product(*(range(size) for size in reversed(grid))):
        known = {f"{name}_started": at for name, at in zip(names, reversed(place))}
        for one in binds:
            known[one.var.name] = evaluate(one.value, known)
        started.append(tuple(known[name] for name in names))
    return started


@pytest.mark.parametrize("grid", [(8, 3), (8, 16), (8, 11), (8, 4, 2), (8, 5, 7)])
def test_every_block_once_and_the_longest_first(grid):
    started = order(grid, "bx + 1")
    assert sorted(started) == sorted(itertools.product(*(range(size) for size in grid)))
    together = min(8, len(started) // 8)
    assert [block[0] for block in started[: 8 * together]] == [7 - at // together for at in range(8 * together)]


ROLES = """
@T.prim_func
def k(A: T.Tensor((1024, 64), "float16"), C: T.Tensor((512, 64), "float16"), D: T.Tensor((512, 64), "float32")):
    with T.Kernel({grid}, threads=128) as {names}:
        a = T.alloc_shared((64, 64), "float16")
        b = T.alloc_shared((64, 64), "float16")
        d = T.alloc_fragment((64, 64), "float32")
        T.clear(d)
        {more}
        for i in T.Pipelined({extent}, num_stages=2):
            T.copy(A[i * 64, 0], a)
            T.copy(C[i * 64, 0], b)
            T.gemm(a, b, d)
        T.copy(d, D[bx * 64, 0])
"""


def test_blocks_that_are_divided_into_roles_too():
    started = order((8, 4), "bx + 1", text=ROLES, arch="sm_90a")
    assert sorted(started) == sorted(itertools.product(range(8), range(4)))
    assert [block[0] for block in started] == [7 - at // 4 for at in range(32)]
    assert order((8, 4), "5", text=ROLES, arch="sm_90a") is None


def test_names_are_looked_through_and_falling_counts_keep_their_direction():
    assert [block[0] for block in order((8, 4), "n", "n = T.min(12, (bx + 1) * 2)")][:4] == [7] * 4
    assert [block[0] for block in order((8, 4), "8 - bx")][:4] == [0] * 4


@pytest.mark.parametrize(
    ("grid", "extent", "more"),
    [
        ((8, 4), "5", "pass"),  # all the same
        ((8, 4), "by + 1", "pass"),  # rows differ
        ((8, 4), "(bx * 3) % 4 + 1", "pass"),  # in no one direction
        ((8,), "bx + 1", "pass"),  # one row
        ((8, 4), "bx + 1", "T.atomic_add(C[0, 0, 0], 1.0)"),
    ],
)
def test_other_kernels_keep_their_order(grid, extent, more):
    assert order(grid, extent, more) is None
