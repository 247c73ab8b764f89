"""Kernels and what they give are their own copies; pickling them is refused, and the process goes on."""

from __future__ import annotations

import copy
import pickle
from types import SimpleNamespace
from typing import Any

import pytest

import tilelang_nb

TEXT = """
@T.prim_func
def k(A: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=64):
        for i in T.Parallel(64):
            A[i] = 1.0

@jit
def scaled(X):
    N = T.const("N")
    X: T.Tensor[[N], T.float32]
    Y = T.empty((N,), T.float32)
    with T.Kernel(1, threads=64):
        for i in T.Parallel(64):
            Y[i] = X[i]
    return Y
"""


def objects() -> dict[str, Any]:
    cell = tilelang_nb.compile_cell(TEXT, {}, target="sim")
    k = cell.namespace["k"]
    return {
        "kernel": k,
        "stages": k.stages,
        "stage": k.stages[1],
        "unroll": k.unroll,
        "cell": cell,
        "eager": cell.namespace["scaled"],
        "holder": SimpleNamespace(kernel=k),
    }


@pytest.mark.parametrize("name", objects())
def test_a_copy_is_the_object_itself(name: str) -> None:
    one = objects()[name]
    twin = copy.deepcopy(one)
    if name == "holder":
        assert twin is not one and twin.kernel is one.kernel
    elif name == "stages":
        assert all(a is b for a, b in zip(twin, one, strict=True))
    else:
        assert twin is one and copy.copy(one) is one


@pytest.mark.parametrize("name", objects())
def test_pickling_is_refused(name: str) -> None:
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(objects()[name])
