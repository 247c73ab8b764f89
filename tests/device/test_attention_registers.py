"""Attention by mma.sync keeps its accumulators in registers, and starts its copies without branches between products."""

from __future__ import annotations

import pytest

ATTENTION = """
BM, BN, dim, threads, causal = {BM}, {BN}, {dim}, {threads}, {causal}
shape, factor = (4, 4096, 32, dim), 1.4426950408889634 / dim ** 0.5

@T.prim_func
def k(Q: T.Tensor(shape, "float16"), K: T.Tensor(shape, "float16"),
      V: T.Tensor(shape, "float16"), O: T.Tensor(shape, "float16")):
    with T.Kernel(4096 // BM, 32, 4, threads=threads) as (bx, by, bz):
        Q_s = T.alloc_shared((BM, dim), "float16")
        K_s = T.alloc_shared((BN, dim), "float16")
        V_s = T.alloc_shared((BN, dim), "float16")
        O_s = T.alloc_shared((BM, dim), "float16")
        s = T.alloc_fragment((BM, BN), "float32")
        p = T.alloc_fragment((BM, BN), "float16")
        o = T.alloc_fragment((BM, dim), "float32")
        most = T.alloc_fragment((BM,), "float32")
        before = T.alloc_fragment((BM,), "float32")
        scale = T.alloc_fragment((BM,), "float32")
        row = T.alloc_fragment((BM,), "float32")
        total = T.alloc_fragment((BM,), "float32")
        T.copy(Q[bz, bx * BM:(bx + 1) * BM, by, :], Q_s)
        T.fill(o, 0)
        T.fill(total, 0)
        T.fill(most, -T.infinity("float32"))
        for j in T.Pipelined(T.min(4096 // BN, T.ceildiv((bx + 1) * BM, BN)) if causal else 4096 // BN, num_stages=2):
            T.copy(K[bz, j * BN:(j + 1) * BN, by, :], K_s)
            if causal:
                for r, c in T.Parallel(BM, BN):
                    s[r, c] = T.if_then_else(bx * BM + r >= j * BN + c, 0, -T.infinity("float32"))
            else:
                T.clear(s)
            T.gemm(Q_s, K_s, s, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)
            T.copy(most, before)
            T.fill(most, -T.infinity("float32"))
            T.reduce_max(s, most, dim=1, clear=False)
            for r in T.Parallel(BM):
                most[r] = T.max(most[r], before[r])
            for r in T.Parallel(BM):
                scale[r] = T.exp2(before[r] * factor - most[r] * factor)
            for r, c in T.Parallel(BM, BN):
                s[r, c] = T.exp2(s[r, c] * factor - most[r] * factor)
            T.reduce_sum(s, row, dim=1)
            for r in T.Parallel(BM):
                total[r] = total[r] * scale[r] + row[r]
            T.copy(s, p)
            for r, c in T.Parallel(BM, dim):
                o[r, c] *= scale[r]
            T.copy(V[bz, j * BN:(j + 1) * BN, by, :], V_s)
            T.gemm(p, V_s, o, policy=T.GemmWarpPolicy.FullRow)
        for r, c in T.Parallel(BM, dim):
            o[r, c] /= total[r]
        T.copy(o, O_s)
        T.copy(O_s, O[bz, bx * BM:(bx + 1) * BM, by, :])
"""


@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    ("BM", "BN", "dim", "threads"), [(128, 128, 128, 256), (128, 64, 128, 128), (64, 64, 128, 128), (128, 128, 64, 256)]
)
def test_nothing_is_spilled(program_of, BM, BN, dim, threads, causal, arch) -> None:
    program = program_of(ATTENTION.format(BM=BM, BN=BN, dim=dim, threads=threads, causal=causal), arch)
    found = program.resources
    assert (found.spill_stores.value, found.spill_loads.value) == (0, 0), program.log
    cut = (BN, threads) == (64, 128) and BM == 128  # 192 registers of accumulators
    assert ("tl_copy_16_if" in program.kernel_source) != cut
    assert ("stmatrix" in program.kernel_source) == (arch == "sm_90")
    # one shuffle for each row of the largest element and distance, and none of the sum in the loop
    loop = program.kernel_source[program.kernel_source.index("mma_sync") :]
    assert loop[: loop.rindex("mma_sync")].count("__shfl_xor_sync") == 2
