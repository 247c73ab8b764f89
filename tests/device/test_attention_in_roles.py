"""Machine code of attention in roles: products run on, and nothing is spilled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

TEXT = """
@T.prim_func
def k(
    Q: T.Tensor((1, 1024, 8, {dim}), "float16"), K: T.Tensor((1, 1024, {kv}, {dim}), "float16"),
    V: T.Tensor((1, 1024, {kv}, {dim}), "float16"), O: T.Tensor((1, 1024, 8, {dim}), "float16"),
):
    with T.Kernel(1024 // {bm}, 8, threads={threads}) as (bx, by):
        Q_s = T.alloc_shared(({bm}, {dim}), "float16")
        K_s = T.alloc_shared(({bn}, {dim}), "float16")
        V_s = T.alloc_shared(({bn}, {dim}), "float16")
        O_s = T.alloc_shared(({bm}, {dim}), "float16")
        s = T.alloc_fragment(({bm}, {bn}), "float32")
        p = T.alloc_fragment(({bm}, {bn}), "float16")
        o = T.alloc_fragment(({bm}, {dim}), "float32")
        top, top_before, shrink, total, part = (T.alloc_fragment(({bm},), "float32") for _ in range(5))
        T.copy(Q[0, bx * {bm} : (bx + 1) * {bm}, by, :], Q_s)
        T.fill(o, 0)
        T.fill(total, 0)
        T.fill(top, -T.infinity("float32"))
        blocks = T.ceildiv((bx + 1) * {bm}, {bn}) if {causal} else 1024 // {bn}
        for k in T.Pipelined(blocks, num_stages=2):
            T.copy(K[0, k * {bn} : (k + 1) * {bn}, by // (8 // {kv}), :], K_s)
            if {causal}:
                for i, j in T.Parallel({bm}, {bn}):
                    s[i, j] = T.if_then_else(bx * {bm} + i >= k * {bn} + j, 0, -T.infinity("float32"))
            else:
                T.clear(s)
            T.gemm(Q_s, K_s, s, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)
            T.copy(top, top_before)
            T.reduce_max(s, top, dim=1, clear=False)
            for i in T.Parallel({bm}):
                shrink[i] = T.exp2(top_before[i] - top[i])
            for i, j in T.Parallel({bm}, {bn}):
                s[i, j] = T.exp2(s[i, j] - top[i])
            T.reduce_sum(s, part, dim=1)
            for i in T.Parallel({bm}):
                total[i] = total[i] * shrink[i] + part[i]
            T.copy(s, p)
            for i, j in T.Parallel({bm}, {dim}):
                o[i, j] *= shrink[i]
            T.copy(V[0, k * {bn} : (k + 1) * {bn}, by // (8 // {kv}), :], V_s)
            T.gemm(p, V_s, o, policy=T.GemmWarpPolicy.FullRow)
        for i, j in T.Parallel({bm}, {dim}):
            o[i, j] /= total[i]
        T.copy(o, O_s)
        T.copy(O_s, O[0, bx * {bm} : (bx + 1) * {bm}, by, :])
"""
CASES: dict[str, dict[str, Any]] = {
    "heads of 128": {},
    "causal": {"causal": True},
    "heads of 64": {"dim": 64},
    "heads of 256": {"dim": 256, "bn": 64},
    "heads of 192": {"dim": 192},
    "one warp group": {"bm": 64, "bn": 64, "threads": 128},
    "one warp group of 128 rows": {"bn": 64, "threads": 128},
    "one warp group of 128 rows, causal": {"bn": 64, "threads": 128, "causal": True},
    "three warp groups": {"dim": 64, "bm": 192, "threads": 384},
    "several heads of queries for one of keys": {"kv": 2},
}


@pytest.mark.parametrize("name", CASES)
def test_products_run_on(name: str, program_of: Callable[..., Any]) -> None:
    case = {"dim": 128, "bm": 128, "bn": 128, "threads": 256, "causal": False, "kv": 8, **CASES[name]}
    text = TEXT.format(**case)
    if case["bm"] == 192:
        text = text.replace("1024 // 192", "T.ceildiv(1024, 192)")
    program = program_of(text, arch="sm_90a", options={"tl.enable_auto_warp_specialization": True})
    assert not [line for line in program.log.splitlines() if "(C75" in line]
    figures = program.resources[0]
    assert (figures.spill_stores.value, figures.spill_loads.value) == (0, 0)
    assert program.launches[0].threads == case["threads"] + 128
    assert "wgmma_wait_group_wait_group_sync_aligned_1" in program.kernel_source
