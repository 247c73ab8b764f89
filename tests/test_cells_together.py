"""Kernels, factories and macros of one cell used by another: messages stand in the cell at hand and name the other."""

from __future__ import annotations

from typing import Any

import numpy as np

import tilelang_nb

FIRST = """
@T.macro
def twice(x):
    return x * 2

@T.prim_func
def double(A: T.Tensor((4,), "int32")):
    with T.Kernel(1, threads=4):
        for i in T.Parallel(4):
            A[i] = twice(A[i])

def make(bad):
    @T.prim_func
    def made(A: T.Tensor((4,), "int32")):
        with T.Kernel(1, threads=4):
            for i in T.Parallel(4):
                A[i] = len(A) if bad else twice(A[i])
    return made
"""


def after_the_first(second: str) -> tilelang_nb.Compilation:
    names: dict[str, Any] = {"np": np}
    assert tilelang_nb.compile_cell(FIRST, names, filename="In[1]", first_line=2).ok
    return tilelang_nb.compile_cell(second, names, filename="In[2]", first_line=2)


def test_a_kernel_and_a_factory_are_used() -> None:
    c = after_the_first("a = np.arange(4, dtype=np.int32)\ndouble(a)\nmake(False)(a)\na.tolist()")
    assert c.ok and c.result == [0, 4, 8, 12] and list(c.kernels) == ["made"]


def test_a_refused_launch_stands_at_the_call() -> None:
    c = after_the_first("a = 1\ndouble(np.zeros(3, np.int32))\n")
    assert [(d.code, d.span.line) for d in c.diagnostics] == [("TL301", 3)]
    assert "in In[1], line 8" in c.to_text() and "In[2]:3:" in c.to_text()


def test_a_refused_kernel_of_a_factory_stands_at_the_call() -> None:
    c = after_the_first("make(True)")
    assert [(d.code, d.span.line) for d in c.diagnostics] == [("TL107", 2)]
    assert "at `A[i] = len(A) if bad else twice(A[i])` in In[1], line 18" in c.to_text()


def test_a_macro_of_an_earlier_cell_is_expanded() -> None:
    text = '@T.prim_func\ndef k(A: T.Tensor((4,), "int32")):\n    with T.Kernel(1, threads=1):\n'
    c = after_the_first(text + "        A[1] = twice(A[0])\n")
    a = np.array([3, 0, 0, 0], np.int32)
    c.kernels["k"](a)
    assert a.tolist() == [3, 6, 0, 0]
    (node,) = c.kernels["k"].unroll.iterations[0].children
    assert (node.kind, node.line) == ("macro", 5)
