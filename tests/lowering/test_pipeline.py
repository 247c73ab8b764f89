"""The driver: stages in order, goldens of every stage, and what happens when one of them has a fault."""

from __future__ import annotations

import dataclasses

import pytest
from lowering.cells import build

from tilelang_nb.lowering import pipeline

TAIL = """
n = T.dynamic("n")
@T.prim_func
def k(A: T.Tensor((n, 64), "float32"), B: T.Tensor((n, 64), "float32")):
    with T.Kernel(T.ceildiv(n, 4), threads=64) as bx:
        for i, j in T.Parallel(4, 64):
            B[bx * 4 + i, j] = A[bx * 4 + i, j] + 1.0
"""
ROWS = """
@T.prim_func
def k(A: T.Tensor((30, 64), "float16"), B: T.Tensor((30, 64), "float16")):
    with T.Kernel(2, threads=64) as bx:
        tile = T.alloc_shared((16, 64), "float16")
        f = T.alloc_fragment((16, 64), "float32")
        row = T.alloc_fragment((16,), "float32")
        T.copy(A[bx * 16, 0], tile)
        T.copy(tile, f)
        for i in T.Parallel(16):
            row[i] = T.cast(i, "float32")
        for i, j in T.Parallel(16, 64):
            f[i, j] = f[i, j] * row[i]
        T.copy(f, B[bx * 16, 0])
"""
BACKWARDS = """
@T.prim_func
def k(A: T.Tensor((100,), "int32"), B: T.Tensor((100,), "int32")):
    with T.Kernel(1, threads=32) as bx:
        f = T.alloc_fragment((100,), "int32")
        T.copy(A, f)
        for i in T.Parallel(100):
            if A[i] < 0:
                continue
            B[i] = f[99 - i]
"""


@pytest.mark.parametrize(("name", "text"), [("tail", TAIL), ("rows", ROWS), ("backwards", BACKWARDS)])
def test_what_every_stage_makes_of_a_kernel(name, text, golden):
    kernel = build(text)
    assert not kernel.errors
    parts = []
    for snapshot in kernel.lowered.snapshots:
        parts.append(f"==== {snapshot.name}{'' if snapshot.changed else ' (unchanged)'}")
        if snapshot.changed:
            parts.append(str(snapshot.module["k"].script()).split("@T.prim_func")[1].strip())
    parts += [f"layout {fragment}: {layout}" for fragment, layout in sorted(kernel.lowered.layouts.items())]
    golden("\n".join(parts) + "\n", f"lowering/{name}.txt")


def test_every_stage_has_a_reason_and_is_timed():
    kernel = build(TAIL)
    names = [snapshot.name for snapshot in kernel.lowered.snapshots]
    assert names == ["tile", "split-launches", *(stage.name for stage in pipeline.STAGES), "thread"]
    assert all(snapshot.reason and snapshot.milliseconds >= 0 for snapshot in kernel.lowered.snapshots)


@pytest.mark.parametrize("stage", [stage.name for stage in pipeline.STAGES])
def test_a_fault_of_a_stage_is_one_diagnostic(stage, monkeypatch):
    def broken(function, launch):
        raise KeyError("what is this")

    stages = [dataclasses.replace(one, run=broken) if one.name == stage else one for one in pipeline.STAGES]
    monkeypatch.setattr(pipeline, "STAGES", tuple(stages))
    kernel = build(TAIL)
    assert [code for code, _ in kernel.errors] == ["TL900"]
    assert kernel.lowered.launches == () and stage in kernel.found[-1].message
    assert "what is this" in kernel.found[-1].help and "\n" not in kernel.found[-1].message


def test_mistakes_of_different_stages_are_told_at_once():
    kernel = build(
        """
@T.prim_func
def k(A: T.Tensor((64,), "float32"), B: T.Tensor((8, 8), "float32")):
    with T.Kernel(1, threads=64) as bx:
        m = T.alloc_fragment((8,), "float32")
        for i, j in T.Parallel(8, 8):
            m[i] = B[i, j]
        if T.get_thread_binding(0) < 3:
            for i in T.Parallel(8):
                A[i] = 1.0
        for i in T.Parallel(T.get_thread_binding(0)):
            A[i] = 2.0
"""
    )
    assert kernel.errors == [("TL210", 6), ("TL210", 8), ("TL210", 10)]
