"""The cells that the benchmarks time, as a user would write them."""

ELEMENTWISE = """
@T.prim_func
def add(A: T.Tensor((1048576,), "float32"), B: T.Tensor((1048576,), "float32"), C: T.Tensor((1048576,), "float32")):
    with T.Kernel(T.ceildiv(1048576, 1024), threads=256) as bx:
        for i in T.Parallel(1024):
            C[bx * 1024 + i] = A[bx * 1024 + i] + B[bx * 1024 + i]
"""

MATMUL = """
M = N = K = 256
BM, BN, BK = 128, 128, 32

@T.prim_func
def matmul(A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((M, N), "float16")):
    with T.Kernel(T.ceildiv(N, BN), T.ceildiv(M, BM), threads=128) as (bx, by):
        A_shared = T.alloc_shared((BM, BK), "float16")
        B_shared = T.alloc_shared((BK, BN), "float16")
        C_local = T.alloc_fragment((BM, BN), "float32")
        T.use_swizzle(panel_size=10)
        T.clear(C_local)
        for ko in T.Pipelined(T.ceildiv(K, BK), num_stages=3):
            T.copy(A[by * BM, ko * BK], A_shared)
            T.copy(B[ko * BK, bx * BN], B_shared)
            T.gemm(A_shared, B_shared, C_local)
        T.copy(C_local, C[by * BM, bx * BN])
"""

# What an H100 or H200 is given: large tiles, deep pipelines, two warp groups of computing threads.
HOPPER_MATMUL = """
M = N = K = {size}
BM, BN, BK = 128, 256, 64

@T.prim_func
def matmul(A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((M, N), "float16")):
    with T.Kernel(T.ceildiv(N, BN), T.ceildiv(M, BM), threads=256) as (bx, by):
        A_shared = T.alloc_shared((BM, BK), "float16")
        B_shared = T.alloc_shared((BK, BN), "float16")
        C_local = T.alloc_fragment((BM, BN), "float32")
        T.clear(C_local)
        for ko in T.Pipelined(T.ceildiv(K, BK), num_stages=3):
            T.copy(A[by * BM, ko * BK], A_shared)
            T.copy(B[ko * BK, bx * BN], B_shared)
            T.gemm(A_shared, B_shared, C_local)
        T.copy(C_local, C[by * BM, bx * BN])
"""

ATTENTION = """
batch, heads, seq, dim = 1, 2, 256, 64
BM, BN = 64, 64
scale = (1.0 / dim) ** 0.5 * 1.44269504
shape = (batch, seq, heads, dim)

@T.prim_func
def attention(Q: T.Tensor(shape, "float16"), K: T.Tensor(shape, "float16"), V: T.Tensor(shape, "float16"),
              Out: T.Tensor(shape, "float16")):
    with T.Kernel(T.ceildiv(seq, BM), heads, batch, threads=128) as (bx, by, bz):
        Q_shared = T.alloc_shared((BM, dim), "float16")
        K_shared = T.alloc_shared((BN, dim), "float16")
        V_shared = T.alloc_shared((BN, dim), "float16")
        scores = T.alloc_fragment((BM, BN), "float32")
        weights = T.alloc_fragment((BM, BN), "float16")
        out = T.alloc_fragment((BM, dim), "float32")
        largest = T.alloc_fragment((BM,), "float32")
        previous = T.alloc_fragment((BM,), "float32")
        factor = T.alloc_fragment((BM,), "float32")
        row_sum = T.alloc_fragment((BM,), "float32")
        total = T.alloc_fragment((BM,), "float32")
        T.copy(Q[bz, bx * BM : (bx + 1) * BM, by, :], Q_shared)
        T.fill(out, 0)
        T.fill(total, 0)
        T.fill(largest, -T.infinity("float32"))
        for k in T.Pipelined(T.ceildiv(seq, BN), num_stages=2):
            T.copy(K[bz, k * BN : (k + 1) * BN, by, :], K_shared)
            T.clear(scores)
            T.gemm(Q_shared, K_shared, scores, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)
            T.copy(largest, previous)
            T.reduce_max(scores, largest, dim=1, clear=False)
            for i in T.Parallel(BM):
                factor[i] = T.exp2(previous[i] * scale - largest[i] * scale)
            for i, j in T.Parallel(BM, BN):
                scores[i, j] = T.exp2(scores[i, j] * scale - largest[i] * scale)
            T.reduce_sum(scores, row_sum, dim=1)
            for i in T.Parallel(BM):
                total[i] = total[i] * factor[i] + row_sum[i]
            T.copy(scores, weights)
            for i, j in T.Parallel(BM, dim):
                out[i, j] *= factor[i]
            T.copy(V[bz, k * BN : (k + 1) * BN, by, :], V_shared)
            T.gemm(weights, V_shared, out, policy=T.GemmWarpPolicy.FullRow)
        for i, j in T.Parallel(BM, dim):
            out[i, j] /= total[i]
        T.copy(out, Out[bz, bx * BM : (bx + 1) * BM, by, :])
"""

HOPPER_ATTENTION = (
    ATTENTION.replace("1, 2, 256, 64", "4, 32, 4096, 128")
    .replace("BM, BN = 64, 64", "BM, BN = 128, 128")
    .replace("threads=128", "threads=256")
)

COMPILE_TIME_ITEMS = """
@T.prim_func
def table(out: T.Tensor(({items},), "int32")):
    with T.Kernel(1, threads=1):
        values = [((j >> 4) & 7) | ((j >> 7) << 3) for j in range({items})]
        for index, value in enumerate(values):
            out[index] = value
"""
