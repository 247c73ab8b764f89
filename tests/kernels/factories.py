"""Kernels as TileLang text: each factory takes the T namespace and returns a T.prim_func.

The text is one cell; upstream TileLang compiles it unchanged.
"""


def vector_add(T, N, block=1024, threads=256, dtype="float32"):
    @T.prim_func
    def main(A: T.Tensor((N,), dtype), B: T.Tensor((N,), dtype), C: T.Tensor((N,), dtype)):
        with T.Kernel(T.ceildiv(N, block), threads=threads) as bx:
            for i in T.Parallel(block):
                C[bx * block + i] = A[bx * block + i] + B[bx * block + i]

    return main


def softmax(T, M, N, threads=256, dtype="float16"):
    @T.prim_func
    def main(X: T.Tensor((M, N), dtype), Y: T.Tensor((M, N), dtype)):
        with T.Kernel(M, threads=threads) as bx:
            x = T.alloc_fragment((1, N), "float32")
            mx = T.alloc_fragment((1,), "float32")
            sm = T.alloc_fragment((1,), "float32")
            T.copy(X[bx, 0], x)
            T.reduce_max(x, mx, dim=1)
            for i, j in T.Parallel(1, N):
                x[i, j] = T.exp(x[i, j] - mx[i])
            T.reduce_sum(x, sm, dim=1)
            for i, j in T.Parallel(1, N):
                x[i, j] = x[i, j] / sm[i]
            T.copy(x, Y[bx, 0])

    return main


def rms_norm(T, M, N, threads=256, dtype="float16"):
    @T.prim_func
    def main(X: T.Tensor((M, N), dtype), Y: T.Tensor((M, N), dtype)):
        with T.Kernel(M, threads=threads) as bx:
            x = T.alloc_fragment((1, N), "float32")
            x2 = T.alloc_fragment((1, N), "float32")
            sm = T.alloc_fragment((1,), "float32")
            T.copy(X[bx, 0], x)
            for i, j in T.Parallel(1, N):
                x2[i, j] = x[i, j] * x[i, j]
            T.reduce_sum(x2, sm, dim=1)
            for i, j in T.Parallel(1, N):
                x[i, j] = x[i, j] * T.rsqrt(sm[i] / N + 1e-6)
            T.copy(x, Y[bx, 0])

    return main


def matmul(T, M, N, K, BM=128, BN=128, BK=32, stages=3, threads=128, dtype="float16", accum="float32"):
    @T.prim_func
    def main(A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), C: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(N, BN), T.ceildiv(M, BM), threads=threads) as (bx, by):
            A_s = T.alloc_shared((BM, BK), dtype)
            B_s = T.alloc_shared((BK, BN), dtype)
            C_l = T.alloc_fragment((BM, BN), accum)
            T.use_swizzle(panel_size=10)
            T.clear(C_l)
            for ko in T.Pipelined(T.ceildiv(K, BK), num_stages=stages):
                T.copy(A[by * BM, ko * BK], A_s)
                T.copy(B[ko * BK, bx * BN], B_s)
                T.gemm(A_s, B_s, C_l)
            T.copy(C_l, C[by * BM, bx * BN])

    return main


def flash_attention(T, batch, heads, seq, dim, causal=False, BM=128, BN=128, stages=2, threads=256, dtype="float16"):
    scale = (1.0 / dim) ** 0.5 * 1.44269504
    shape = (batch, seq, heads, dim)
    accum = "float32"

    @T.prim_func
    def main(
        Q: T.Tensor(shape, dtype), K: T.Tensor(shape, dtype), V: T.Tensor(shape, dtype), O: T.Tensor(shape, dtype)
    ):
        with T.Kernel(T.ceildiv(seq, BM), heads, batch, threads=threads) as (bx, by, bz):
            Q_s = T.alloc_shared((BM, dim), dtype)
            K_s = T.alloc_shared((BN, dim), dtype)
            V_s = T.alloc_shared((BN, dim), dtype)
            O_s = T.alloc_shared((BM, dim), dtype)
            s = T.alloc_fragment((BM, BN), accum)
            p = T.alloc_fragment((BM, BN), dtype)
            o = T.alloc_fragment((BM, dim), accum)
            mx = T.alloc_fragment((BM,), accum)
            mx_prev = T.alloc_fragment((BM,), accum)
            sc = T.alloc_fragment((BM,), accum)
            sm = T.alloc_fragment((BM,), accum)
            lse = T.alloc_fragment((BM,), accum)
            T.copy(Q[bz, bx * BM : (bx + 1) * BM, by, :], Q_s)
            T.fill(o, 0)
            T.fill(lse, 0)
            T.fill(mx, -T.infinity(accum))
            n_blocks = T.min(T.ceildiv(seq, BN), T.ceildiv((bx + 1) * BM, BN)) if causal else T.ceildiv(seq, BN)
            for k in T.Pipelined(n_blocks, num_stages=stages):
                T.copy(K[bz, k * BN : (k + 1) * BN, by, :], K_s)
                if causal:
                    for i, j in T.Parallel(BM, BN):
                        s[i, j] = T.if_then_else(bx * BM + i >= k * BN + j, 0, -T.infinity(accum))
                else:
                    T.clear(s)
                T.gemm(Q_s, K_s, s, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)
                T.copy(mx, mx_prev)
                T.fill(mx, -T.infinity(accum))
                T.reduce_max(s, mx, dim=1, clear=False)
                for i in T.Parallel(BM):
                    mx[i] = T.max(mx[i], mx_prev[i])
                for i in T.Parallel(BM):
                    sc[i] = T.exp2(mx_prev[i] * scale - mx[i] * scale)
                for i, j in T.Parallel(BM, BN):
                    s[i, j] = T.exp2(s[i, j] * scale - mx[i] * scale)
                T.reduce_sum(s, sm, dim=1)
                for i in T.Parallel(BM):
                    lse[i] = lse[i] * sc[i] + sm[i]
                T.copy(s, p)
                for i, j in T.Parallel(BM, dim):
                    o[i, j] *= sc[i]
                T.copy(V[bz, k * BN : (k + 1) * BN, by, :], V_s)
                T.gemm(p, V_s, o, policy=T.GemmWarpPolicy.FullRow)
            for i, j in T.Parallel(BM, dim):
                o[i, j] /= lse[i]
            T.copy(o, O_s)
            T.copy(O_s, O[bz, bx * BM : (bx + 1) * BM, by, :])

    return main


def gemv(T, N, K, BN=4, BK=512, threads=128, dtype="float16", accum="float32"):
    """y[n] = sum_k A[k] * B[n, k]; one warp-row per output."""

    @T.prim_func
    def main(A: T.Tensor((K,), dtype), B: T.Tensor((N, K), dtype), C: T.Tensor((N,), dtype)):
        with T.Kernel(T.ceildiv(N, BN), threads=threads) as bn:
            a = T.alloc_fragment((BK,), dtype)
            b = T.alloc_fragment((BN, BK), dtype)
            acc = T.alloc_fragment((BN, BK), accum)
            out = T.alloc_fragment((BN,), accum)
            T.clear(acc)
            for ko in T.serial(T.ceildiv(K, BK)):
                T.copy(A[ko * BK], a)
                T.copy(B[bn * BN, ko * BK], b)
                for i, j in T.Parallel(BN, BK):
                    acc[i, j] += T.cast(b[i, j], accum) * T.cast(a[j], accum)
            T.reduce_sum(acc, out, dim=1)
            T.copy(out, C[bn * BN])

    return main
