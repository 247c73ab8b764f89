"""Attention for heads of many sizes: right on both generations, and what keeps a size from warp groups is told."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from lowering.hopper import ATTENTION, DIRECTLY, ROLES

import tilelang_nb
from tilelang_nb.lowering import lower
from tilelang_nb.simulator import Program

SEQUENCE, KEYS = 136, 64


def attention(dim: int, arch: str) -> tuple[Any, dict[str, np.ndarray], np.ndarray]:
    """(what lowering gives, arguments, what `C` must hold)."""
    shape, scale = (1, SEQUENCE, 1, dim), 1.44269504 / dim**0.5
    text = ATTENTION.format(
        shape=shape, batch=1, seq=SEQUENCE, heads=1, dim=dim, bn=KEYS, stages=2, causal=False, out="float16",
        scale=scale, between="pass", result=DIRECTLY,
    )  # fmt: skip
    cell = tilelang_nb.compile_cell(text, {}, target="sim", arch=arch)
    assert cell.ok, cell.to_text()
    found = lower(cell.namespace["k"].program, arch=arch, options=ROLES if arch == "sm_90a" else {})
    rng = np.random.default_rng(dim)
    q, k, v = (rng.standard_normal(shape).astype(np.float16) for _ in range(3))
    wide = [array[0, :, 0].astype(np.float64) for array in (q, k, v)]
    scores = wide[0] @ wide[1].T / dim**0.5
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    expected = weights / weights.sum(-1, keepdims=True) @ wide[2]
    return found, {"Q": q, "K": k, "V": v, "C": np.full(shape, np.nan, np.float16)}, expected


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("dim", [64, 72, 80, 104, 136, 160, 248, 256])
def test_heads_of_any_multiple_of_8(dim: int, arch: str) -> None:
    found, arguments, expected = attention(dim, arch)
    assert found.diagnostics == ()
    (launch,) = found.launches
    report = Program(launch, checks=True).run(arguments)
    assert report.findings == (), [str(finding) for finding in report.findings]
    np.testing.assert_allclose(arguments["C"][0, :, 0].astype(np.float64), expected, atol=2e-3)
    products = [one for one in found.decisions if one.subject == "product"]
    grouped = arch == "sm_90a" and dim % 16 == 0
    assert [one.value.startswith("wgmma") for one in products] == [grouped, grouped]
    if arch == "sm_80" or grouped:
        return
    fitting = f"{dim} of float16, have {dim * 2}; {dim + 8} columns would do"
    (roles,) = [one for one in found.decisions if one.subject == "roles"]
    for tile, one in zip(("K_s", "Q_s", "V_s"), (roles, *products)):
        assert f"rows of multiples of 32 bytes: those of `{tile}`, {fitting}" in one.reason


ROWS = """
@T.prim_func
def k(A: T.Tensor(({rows}, 64), "float16"), B: T.Tensor((64, 64), "float16"), C: T.Tensor(({rows}, 64), "float32")):
    with T.Kernel(1, threads=256):
        a = T.alloc_shared(({rows}, 64), "float16")
        b = T.alloc_shared((64, 64), "float16")
        c = T.alloc_fragment(({rows}, 64), "float32")
        {before}
        T.copy(B, b)
        T.clear(c)
        for _ in T.Pipelined(2, num_stages=2):
            T.copy(A, a)
            T.gemm(a, b, c)
        T.copy(c, C)
"""


@pytest.mark.parametrize(
    ("rows", "before", "reason"),
    [
        (512, "pass", "bulk copies take tiles of up to 256 rows: `a` has 512"),
        (512, "T.copy(A, a)", "`a` is also used outside of the loop"),
        (100, "pass", "bulk copies and wgmma take rows in whole eights: `a` has 100"),
    ],
)
def test_tiles_that_bulk_copies_do_not_move_say_so(rows: int, before: str, reason: str) -> None:
    """Warp groups multiply a high one that threads fill all the same."""
    text = ROWS.format(rows=rows, before=before)
    cell = tilelang_nb.compile_cell(text, {}, target="sim", arch="sm_90a")
    assert cell.ok, cell.to_text()
    found = lower(cell.namespace["k"].program, arch="sm_90a", options=ROLES)
    assert reason in " ".join(one.reason for one in found.decisions)
    (product,) = [one.value for one in found.decisions if one.subject == "product"]
    assert product.startswith("wgmma") == (rows == 512)
    rng = np.random.default_rng(rows)
    a, b = rng.integers(-4, 5, (rows, 64)).astype(np.float16), rng.integers(-4, 5, (64, 64)).astype(np.float16)
    c = np.full((rows, 64), np.nan, np.float32)
    report = Program(found.launches[0], checks=True).run({"A": a, "B": b, "C": c})
    assert report.findings == (), [str(finding) for finding in report.findings]
    np.testing.assert_array_equal(c, 2 * (a.astype(np.float32) @ b.astype(np.float32)))
