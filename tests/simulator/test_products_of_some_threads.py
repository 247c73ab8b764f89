"""Products of warp groups belong to the warp group that starts them: so do their groups and waits, in branches too."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pytest

import tilelang_nb

TEXT = """
@T.prim_func
def k(A: T.Tensor((128, 64), "float16"), B: T.Tensor((64, 64), "float16"), C: T.Tensor((128, 64), "float32")):
    with T.Kernel(1, threads=256):
        t = T.get_thread_binding()
        a = T.alloc_shared((128, 64), "float16")
        b = T.alloc_shared((64, 64), "float16")
        c = T.alloc_fragment((128, 64), "float32")
        T.copy(A, a)
        T.copy(B, b)
        T.clear(c)
        T.wgmma_gemm(a, b, c)
{wait}
        T.copy(c, C)  # READ
"""
WAIT = "T.wait_wgmma(0)"
BRANCHES = "if t < 128:\n    {}\n    T.sync_threads(1, 128)\nelse:\n    {}\n    T.sync_threads(2, 128)"
CASES = {
    "all wait": (WAIT, True),
    "nobody waits": ("pass", False),
    "both warp groups wait, one after the other": (f"if t < 128: {WAIT}\nif t >= 128: {WAIT}", True),
    "one warp group waits": (f"if t < 128: {WAIT}", False),
    "both branches wait": (BRANCHES.format(WAIT, WAIT), True),
    "one branch waits": (BRANCHES.format("pass", WAIT), False),
    "one branch waits, and the other warp group behind it": (f"{BRANCHES.format(WAIT, 'pass')}\nif t >= 128: {WAIT}", True),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_product_is_finished_for_the_warp_groups_that_have_waited(name: str) -> None:
    wait, right = CASES[name]
    text = TEXT.format(wait="\n".join("        " + line for line in wait.splitlines()))
    cell = tilelang_nb.compile_cell(text, {}, target="sim", arch="sm_90a")
    assert cell.ok, cell.to_text()
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-3, 4, shape).astype(np.float16) for shape in ((128, 64), (64, 64)))
    c = np.zeros((128, 64), np.float32)
    with nullcontext() if right else pytest.warns():
        cell.namespace["k"](a, b, c)
    if right:
        assert not cell.namespace["k"].findings
        np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32))
        return
    (finding,) = cell.namespace["k"].findings
    assert finding.code == "TL401" and "matrix product" in finding.message
    assert finding.span.line == 1 + next(i for i, line in enumerate(text.splitlines()) if "# READ" in line)
