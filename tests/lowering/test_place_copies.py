"""Copies that start between the products of a turn, masks that are added behind a product: the results are those of the
text, and the registers are enough.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from lowering.products import compiled, thread_text

TEXT = """
    @T.prim_func
    def k(Q: T.Tensor((heads, length, dim), dtype), K: T.Tensor((heads, length, dim), dtype),
          V: T.Tensor((heads, length, dim), dtype), O: T.Tensor((heads, length, dim), dtype)):
        with T.Kernel(T.ceildiv(length, BM), heads, threads=threads) as (bx, by):
            Q_s = T.alloc_shared((BM, dim), dtype)
            K_s = T.alloc_shared((BN, dim), dtype)
            V_s = T.alloc_shared((BN, dim), dtype)
            s = T.alloc_fragment((BM, BN), "float32")
            p = T.alloc_fragment((BM, BN), dtype)
            o = T.alloc_fragment((BM, dim), "float32")
            most = T.alloc_fragment((BM,), "float32")
            before = T.alloc_fragment((BM,), "float32")
            scale = T.alloc_fragment((BM,), "float32")
            row = T.alloc_fragment((BM,), "float32")
            total = T.alloc_fragment((BM,), "float32")
            T.copy(Q[by, bx * BM, 0], Q_s)
            T.clear(o)
            T.clear(total)
            T.fill(most, -T.infinity("float32"))
            turns = T.min(T.ceildiv(length, BN), T.ceildiv((bx + 1) * BM, BN)) if causal else T.ceildiv(length, BN)
            for j in T.Pipelined(turns, num_stages=stages):
                T.copy(K[by, j * BN, 0], K_s)
                if causal:
                    for r, c in T.Parallel(BM, BN):
                        s[r, c] = T.if_then_else(bx * BM + r >= j * BN + c, 0, HIDDEN)
                else:
                    T.clear(s)
                T.gemm(Q_s, K_s, s, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)
                T.copy(most, before)
                T.reduce_max(s, most, dim=1, clear=False)
                for r in T.Parallel(BM):
                    scale[r] = T.exp2((before[r] - most[r]) * factor)
                for r, c in T.Parallel(BM, BN):
                    s[r, c] = T.exp2((s[r, c] - most[r]) * factor)
                T.reduce_sum(s, row, dim=1)
                for r in T.Parallel(BM):
                    total[r] = total[r] * scale[r] + row[r]
                T.copy(s, p)
                for r, d in T.Parallel(BM, dim):
                    o[r, d] *= scale[r]
                T.copy(V[by, j * BN, 0], V_s)
                T.gemm(p, V_s, o, policy=T.GemmWarpPolicy.FullRow)
            for r, d in T.Parallel(BM, dim):
                o[r, d] /= total[r]
            T.copy(o, O[by, bx * BM, 0])
"""
SMALL = {"BM": 64, "BN": 64, "threads": 128, "dim": 64}  # registers are enough
LARGE = {"BM": 64, "BN": 64, "threads": 64, "dim": 128}  # they are not


def attention(length: int = 256, causal: bool = False, stages: int = 2, **sizes: Any) -> Any:
    """The kernel after its run on the simulated device, compared with NumPy."""
    dim, heads = sizes["dim"], 2
    text = TEXT.replace("HIDDEN", '-T.infinity("float32")')
    kernel = compiled(
        text, "sm_80", heads=heads, length=length, causal=causal, stages=stages, dtype="float16",
        factor=1.4426950408889634 / dim**0.5, **sizes,
    )  # fmt: skip
    rng = np.random.default_rng(length)
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


def turn(kernel: Any) -> list[str]:
    """What a turn of the loop does, in order: "copy K", "copy V", "first", "second", "mask", "commit"."""
    text = thread_text(kernel)
    lines = text[text.index("for j in range(") :].splitlines()
    depth = len(lines[1]) - len(lines[1].lstrip())
    found: list[str] = []
    for line in lines[1:]:
        if len(line) - len(line.lstrip()) < depth:
            break
        for pattern, name in (
            (r"cp\.async_\.cg.*\(K_s", "copy K"), (r"cp\.async_\.cg.*\(V_s", "copy V"), (r"mma.*\(s\[", "first"),
            (r"mma.*\(o\[", "second"), (r"s\[.*\] = s\[.*-inf", "mask"), (r"commit_group", "commit"),
        ):  # fmt: skip
            if re.search(pattern, line):
                found.append(name)
    return found


@pytest.mark.parametrize(
    ("length", "stages", "causal"),
    [(256, 2, False), (256, 3, False), (64, 2, False), (256, 2, True), (320, 3, True), (200, 2, True), (64, 2, True)],
)
def test_steps_of_a_product_start_copies(length, stages, causal):
    kernel = attention(length, causal, stages, **SMALL)
    if length > 64:
        assert turn(kernel) == ["copy K", "copy V", "first", "commit", "second"]
        text = thread_text(kernel)
        inside = text[text.index("for j in range(") :]
        steps = inside[inside.index("for k in") : inside.index("mma")]
        assert "copy" not in steps and "cp.async_.cg" in steps, steps


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("length", "stages"), [(256, 2), (192, 2), (64, 2)])
def test_where_registers_are_short_a_turn_is_cut(length, stages, causal):
    kernel = attention(length, causal, stages, **LARGE)
    if length > 64:
        masked = ["mask"] if causal else []
        assert turn(kernel) == ["copy K", "first", *masked, "copy V", "commit", "second"]


@pytest.mark.parametrize(("hidden", "dtype"), [("-1e30", "float16"), ('-T.infinity("float32")', "bfloat16")])
def test_a_mask_whose_sum_may_differ_comes_first(hidden, dtype):
    """Finite values would be rounded with the products; sums of bfloat16 may overflow."""
    sizes = {**LARGE, "dtype": dtype}
    kernel = compiled(
        TEXT.replace("HIDDEN", hidden), "sm_80", heads=1, length=128, causal=True, stages=2, factor=0.125, **sizes
    )
    assert "mask" not in turn(kernel) and "copy V" in turn(kernel)


@pytest.mark.parametrize("stages", [2, 3])
def test_no_barrier_stands_between_the_steps(stages):
    """The versions of a tile that a turn reads and fills are different ones."""
    text = thread_text(attention(stages=stages, **SMALL))
    lines = text[text.index("for j in range(") :].splitlines()
    depth = len(lines[1]) - len(lines[1].lstrip())
    end = next(at for at, line in enumerate(lines[1:], 1) if len(line) - len(line.lstrip()) < depth)
    barriers = [line for line in lines[1:end] if "sync" in line and "async" not in line and "shfl" not in line]
    assert len([line for line in barriers if "mma" not in line and "ldmatrix" not in line]) == 1, barriers
