"""Kernels in an ordinary module, without a cell."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import tilelang_nb

GOOD = """
import tilelang_nb.language as T
from tilelang_nb import jit

@T.macro
def twice(x):
    return x * 2

@T.prim_func
def double(A: T.Tensor((8,), "int32")):
    with T.Kernel(1, threads=8):
        for i in T.Parallel(8):
            A[i] = twice(A[i])

@jit(out_idx=1)
def ones(n):
    @T.prim_func
    def main(A: T.Tensor((n,), "int32"), B: T.Tensor((n,), "int32")):
        with T.Kernel(1, threads=n):
            for i in T.Parallel(n):
                B[i] = A[i] + 1
    return main
"""


def load(folder: Path, text: str) -> ModuleType:
    path = folder / "kernels_here.py"
    path.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("kernels_here", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_kernel_of_a_module_is_compiled_from_its_file(tmp_path: Path) -> None:
    module = load(tmp_path, GOOD)
    a = np.arange(8, dtype=np.int32)
    module.double(a)
    assert isinstance(module.double, tilelang_nb.Kernel) and np.array_equal(a, 2 * np.arange(8))
    assert np.array_equal(module.ones(8)(a), a + 1)


def test_a_refused_kernel_of_a_module_raises_the_rendered_report(tmp_path: Path) -> None:
    with pytest.raises(tilelang_nb.CompileError) as caught:
        load(tmp_path, GOOD.replace("A[i] = twice", "x = A[i] = twice"))
    assert [(d.code, d.span.line) for d in caught.value.diagnostics] == [("TL101", 13)]
    assert "kernels_here.py:13:" in str(caught.value)


def test_text_that_python_cannot_find_is_refused() -> None:
    with pytest.raises(tilelang_nb.CompileError) as caught:
        exec(compile(GOOD, "<nowhere>", "exec"), {})
    assert [d.code for d in caught.value.diagnostics] == ["TL001"]
