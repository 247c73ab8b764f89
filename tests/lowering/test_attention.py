"""Flash attention: the scores of the first product feed the second one from registers; and what happens where not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from lowering.products import compiled, thread_text

ATTENTION = """
@T.prim_func
def k(Q: T.Tensor((heads, length, dim), dtype), K: T.Tensor((heads, length, dim), dtype),
      V: T.Tensor((heads, length, dim), dtype), O: T.Tensor((heads, length, dim), dtype)):
    with T.Kernel(T.ceildiv(length, 64), heads, threads=128) as (bx, by):
        Q_s = T.alloc_shared((64, dim), dtype)
        K_s = T.alloc_shared((64, dim), dtype)
        V_s = T.alloc_shared((64, dim), dtype)
        s = T.alloc_fragment((64, 64), "float32")
        p = T.alloc_fragment((64, 64), dtype)
        o = T.alloc_fragment((64, dim), "float32")
        m = T.alloc_fragment((64,), "float32")
        m_before = T.alloc_fragment((64,), "float32")
        rescale = T.alloc_fragment((64,), "float32")
        row = T.alloc_fragment((64,), "float32")
        total = T.alloc_fragment((64,), "float32")
        T.copy(Q[by, bx * 64, 0], Q_s)
        T.clear(o)
        T.clear(total)
        T.fill(m, -T.infinity("float32"))
        for j in T.Pipelined(T.min(bx + 1, T.ceildiv(length, 64)) if causal else T.ceildiv(length, 64), num_stages=stages):
            T.copy(K[by, j * 64, 0], K_s)
            for r, c in T.Parallel(64, 64):
                hidden = (j * 64 + c > bx * 64 + r) if causal else (j * 64 + c >= length)
                s[r, c] = T.if_then_else(hidden, -T.infinity("float32"), 0.0)
            T.gemm(Q_s, K_s, s, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)
            T.copy(V[by, j * 64, 0], V_s)
            T.copy(m, m_before)
            T.reduce_max(s, m, dim=1, clear=False)
            for r in T.Parallel(64):
                rescale[r] = T.exp2((m_before[r] - m[r]) * scale)
            for r, c in T.Parallel(64, 64):
                s[r, c] = T.exp2((s[r, c] - m[r]) * scale)
            T.reduce_sum(s, row, dim=1)
            for r in T.Parallel(64):
                total[r] = total[r] * rescale[r] + row[r]
            T.copy(s, p)
            for r, d in T.Parallel(64, dim):
                o[r, d] *= rescale[r]
            T.gemm(p, V_s, o, policy=T.GemmWarpPolicy.{policy})
        for r, d in T.Parallel(64, dim):
            o[r, d] /= total[r]
        T.copy(o, O[by, bx * 64, 0])
"""


def attention(dim: int = 64, length: int = 128, causal: bool = False, stages: int = 2, policy: str = "FullRow") -> Any:
    """The kernel after its run on the simulated device, compared with NumPy."""
    heads = 2
    kernel = compiled(
        ATTENTION.replace("{policy}", policy), "sm_80", heads=heads, length=length, dim=dim, dtype="float16",
        causal=causal, stages=stages, scale=1.4426950408889634 / dim**0.5,
    )  # fmt: skip
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal((heads, length, dim)).astype(np.float16) for _ in range(3))
    o = np.zeros_like(q)
    kernel(q, k, v, o)
    assert tuple(kernel.findings) == (), [str(finding) for finding in kernel.findings]
    scores = q.astype(np.float64) @ k.astype(np.float64).swapaxes(1, 2) / dim**0.5
    if causal:
        scores = np.where(np.tri(length, dtype=bool), scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    expected = weights / weights.sum(-1, keepdims=True) @ v.astype(np.float64)
    np.testing.assert_allclose(o.astype(np.float64), expected, atol=4e-3)
    return kernel


@pytest.mark.parametrize(
    ("dim", "length", "causal", "stages"),
    [(64, 128, False, 1), (64, 192, True, 2), (128, 128, True, 3), (64, 100, False, 2)],
)
def test_scores_stay_in_registers(dim, length, causal, stages):
    kernel = attention(dim, length, causal, stages)
    layouts = kernel.layouts
    for name in ("s", "p", "o", "m", "rescale", "row", "total"):
        assert layouts[name].memory == "fragment", name
    np.testing.assert_array_equal(layouts["p"].thread_table, layouts["s"].thread_table)
    shared = {one.name for one in layouts.maps if one.memory == "shared"}
    assert not shared & {"s", "p", "o"}
    (counters,) = kernel.counters
    touched = {row.buffer for row in counters.shared_banks if row.access in ("read", "write")}
    assert {"Q_s", "K_s", "V_s"} <= touched and not any(name.startswith(("s", "p", "m")) for name in touched)


def test_rows_of_a_product_are_reduced_by_shuffles_alone():
    text = thread_text(attention())
    body = text[text.index("for j in") :]
    assert "shfl" in body
    reads = [line for line in body.splitlines() if "_s[" in line or "arena" in line]
    assert all("ldmatrix" in line or "cp.async" in line or "cp_async" in line for line in reads), reads


def test_warps_that_divide_the_columns_hand_the_scores_over_in_shared_memory():
    """Each warp of the second product needs whole rows of its operand, and the first one has parts of them."""
    kernel = attention(policy="FullCol")
    p = kernel.layouts["p"]
    assert p.memory == "shared" and "no layout in registers" in p.note
    assert kernel.layouts["s"].memory == "fragment" and kernel.layouts["o"].memory == "fragment"


CONVERTED = """
@T.prim_func
def k(A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float16"), C: T.Tensor((64, 64), "float32")):
    with T.Kernel(1, threads=128) as bx:
        A_s = T.alloc_shared((64, 64), "float16")
        B_s = T.alloc_shared((64, 64), "float16")
        first = T.alloc_fragment((64, 64), "float32")
        second = T.alloc_fragment((64, 64), "float32")
        T.copy(A, A_s)
        T.copy(B, B_s)
        T.clear(first)
        T.gemm(A_s, B_s, first, policy=T.GemmWarpPolicy.FullRow)
        T.clear(second)
        T.gemm(B_s, A_s, second, policy=T.GemmWarpPolicy.{policy})
        for i, j in T.Parallel(64, 64):
            second[i, j] += first[i, j]
        T.copy(second, C)
"""


@pytest.mark.parametrize(("policy", "converted"), [("FullRow", False), ("FullCol", True)])
def test_two_accumulators_that_lie_apart_meet_in_shared_memory(policy, converted):
    kernel = compiled(CONVERTED.format(policy=policy), "sm_80")
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-8, 9, (64, 64)).astype(np.float16) for _ in range(2))
    c = np.zeros((64, 64), np.float32)
    kernel(a, b, c)
    assert tuple(kernel.findings) == ()
    left, right = a.astype(np.float32), b.astype(np.float32)
    np.testing.assert_array_equal(c, left @ right + right @ left)
    memory = {name: kernel.layouts[name].memory for name in ("first", "second")}
    assert set(memory.values()) == {"fragment"}, "the products keep their sums in registers"
    values = {one.value for one in kernel.decisions if one.subject == "layout"}
    assert values == ({"first is read in a shared tile from here on"} if converted else set())


def test_tiles_of_a_causal_loop_need_no_guards():
    """The number of turns is a smallest of two: no turn begins behind the last tile."""
    text = thread_text(attention(causal=True))
    copies = [line for line in text.splitlines() if "cp.async_.cg" in line]
    assert len(copies) == 5 and all(line.endswith(", 16)") for line in copies), copies
