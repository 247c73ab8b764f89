"""Copies run ahead whatever the loop computes: choices and numbers without sign that TVM's analyzer is not asked about."""

from __future__ import annotations

import numpy as np
import pytest
import tvm
from lowering.products import compiled

from tilelang_nb.language.expression_size import walkable

HEAD = """
@T.prim_func
def k(A: T.Tensor((64, 256), "float16"), B: T.Tensor((64, 128), "uint8"), C: T.Tensor((64, 64), "float32")):
    with T.Kernel(1, threads=128) as bx:
        A_s = T.alloc_shared((64, 64), "float16")
        B_s = T.alloc_shared((64, 32), "uint8")
        B_d = T.alloc_shared((64, 64), "float16")
        c = T.alloc_fragment((64, 64), "float32")
        T.clear(c)
        for k in T.Pipelined(4, num_stages=2):
            T.copy(A[0, k * 64], A_s)
            T.copy(B[0, k * 32], B_s)
            for i, j in T.Parallel(64, 64):
                VALUE
            T.gemm(A_s, B_d, c, transpose_B=True)
        T.copy(c, C)
"""
STORE = "B_d[i, j] = "
BODIES = {
    "a choice by equality": STORE + "T.if_then_else(B_s[i, j // 2] == 0, T.float16(1), T.float16(2))",
    "a choice by order": STORE + "T.Select(B_s[i, j // 2] > T.uint8(3), T.float16(1), T.float16(2))",
    "choices in choices": STORE
    + "T.if_then_else(B_s[i, j // 2] < 8, T.if_then_else(B_s[i, j // 2] < 4, T.if_then_else(B_s[i, j // 2] < 2,"
    " T.float16(0), T.float16(1)), T.float16(2)), T.float16(3))",
    "a difference": STORE + "T.cast(B_s[i, j // 2] - T.uint8(1), 'float16')",
    "a statement under a condition": STORE
    + "T.float16(1)\n                if B_s[i, j // 2] >= 5:\n                    B_d[i, j] = T.float16(2)",
    "a condition with a name": "low = B_s[i, j // 2] < 5\n                "
    + STORE
    + "T.if_then_else(low, T.float16(1), T.float16(2))",
}
VALUES = {
    "a choice by equality": lambda b: np.where(b == 0, 1, 2),
    "a choice by order": lambda b: np.where(b > 3, 1, 2),
    "choices in choices": lambda b: np.where(b < 8, np.where(b < 4, np.where(b < 2, 0, 1), 2), 3),
    "a difference": lambda b: b - np.uint8(1),
    "a statement under a condition": lambda b: np.where(b >= 5, 2, 1),
    "a condition with a name": lambda b: np.where(b < 5, 1, 2),
}


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("name", BODIES)
def test_conditions_on_a_copied_tile_leave_its_loop_pipelined(name: str, arch: str) -> None:
    kernel = compiled(HEAD.replace("VALUE", BODIES[name]), arch)
    rng = np.random.default_rng(0)
    a, b = rng.integers(-2, 3, (64, 256)).astype(np.float16), rng.integers(0, 10, (64, 128)).astype(np.uint8)
    c = np.zeros((64, 64), np.float32)
    kernel(a, b, c)
    assert tuple(kernel.findings) == ()
    wide = VALUES[name](np.repeat(b, 2, axis=1)).astype(np.float32)
    np.testing.assert_array_equal(c, a.astype(np.float32) @ wide.T)
    (loop,) = kernel.pipelines
    assert loop.stages == 2 and not loop.staying


def test_a_place_of_too_many_steps_keeps_its_copy_in_its_turn() -> None:
    steps = "\n".join(f"            x{n + 1} = " + " + ".join([f"x{n}"] * 6) for n in range(8))
    text = HEAD.replace("VALUE", STORE + "T.float16(1)")
    text = text.replace("            T.copy(A[0", f"            x0 = k * 0\n{steps}\n            T.copy(A[x8")
    (loop,) = compiled(text, "sm_80").pipelines
    assert "too many steps" in loop.staying[0].reason
    assert loop.staying[1].reason == "nothing in the turn reads `B_s`"


def test_a_kernel_with_an_endless_expression_is_told_and_right(monkeypatch: pytest.MonkeyPatch) -> None:
    value = tvm.ir.Var("x", "int32") + 1
    assert walkable(value)
    for _ in range(60):
        value = value + value
    assert not walkable(value)
    monkeypatch.setattr("tilelang_nb.language.expression_size.WALKABLE", 4)
    text = HEAD.replace("VALUE", BODIES["choices in choices"]).replace("float32", "float16")
    kernel = compiled(text, "sm_80")
    assert [one.tile for one in kernel.pipelines[0].staying] == ["A_s", "B_s"]
    assert {one.reason for one in kernel.pipelines[0].staying} == {
        "an expression of the kernel is too long to look for its tile in"
    }
