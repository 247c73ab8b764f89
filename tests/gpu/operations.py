"""One small kernel for each kind of operation, as cells.  Every tensor has a constant shape; inputs are made up."""

KERNELS = {
    "copy_through_shared": """
@T.prim_func
def k(A: T.Tensor((100, 70), "float16"), B: T.Tensor((100, 70), "float16")):
    with T.Kernel(T.ceildiv(70, 32), T.ceildiv(100, 32), threads=128) as (bx, by):
        tile = T.alloc_shared((32, 32), "float16")
        T.copy(A[by * 32, bx * 32], tile)
        T.copy(tile, B[by * 32, bx * 32])
""",
    "copy_through_fragment_with_cast": """
@T.prim_func
def k(A: T.Tensor((64, 128), "float16"), B: T.Tensor((64, 128), "float32"), C: T.Tensor((64, 128), "bfloat16")):
    with T.Kernel(2, threads=128) as b:
        tile = T.alloc_fragment((32, 128), "float32")
        T.copy(A[b * 32, 0], tile)
        T.copy(tile, B[b * 32, 0])
        T.copy(tile, C[b * 32, 0])
""",
    "transposed_store": """
@T.prim_func
def k(A: T.Tensor((64, 96), "float32"), B: T.Tensor((96, 64), "float32")):
    with T.Kernel(2, 3, threads=128) as (bx, by):
        tile = T.alloc_shared((32, 32), "float32")
        T.copy(A[bx * 32, by * 32], tile)
        for i, j in T.Parallel(32, 32):
            B[by * 32 + i, bx * 32 + j] = tile[j, i]
""",
    "fill_and_clear": """
@T.prim_func
def k(A: T.Tensor((4, 256), "int8"), B: T.Tensor((256,), "float32")):
    with T.Kernel(4, threads=64) as b:
        tile = T.alloc_fragment((256,), "float32")
        T.fill(A[b, 0:256], -3)
        T.clear(tile)
        if b == 0:
            T.copy(tile, B)
""",
    "elementwise": """
@T.prim_func
def k(A: T.Tensor((1000,), "float32"), B: T.Tensor((1000,), "float32"), C: T.Tensor((1000,), "float32")):
    with T.Kernel(T.ceildiv(1000, 256), threads=64) as b:
        for i in T.Parallel(256):
            C[b * 256 + i] = T.if_then_else(A[b * 256 + i] > B[b * 256 + i], A[b * 256 + i] * 2.0, B[b * 256 + i] - 1.0)
""",
    "mathematics": """
@T.prim_func
def k(A: T.Tensor((256,), "float32"), C: T.Tensor((16, 256), "float32")):
    with T.Kernel(1, threads=256):
        for i in T.Parallel(256):
            x = A[i]
            C[0, i] = T.exp(x)
            C[1, i] = T.log(T.abs(x) + 1.0)
            C[2, i] = T.sin(x) + T.cos(x)
            C[3, i] = T.tanh(x)
            C[4, i] = T.rsqrt(T.abs(x) + 0.5)
            C[5, i] = T.floor(x) + T.ceil(x) + T.round(x)
            C[6, i] = T.pow(T.abs(x), 1.5)
            C[7, i] = T.erf(x)
            C[8, i] = x // 0.7
            C[9, i] = x % 0.7
            C[10, i] = T.exp2(x) + T.log2(T.abs(x) + 1.0)
            C[11, i] = T.sigmoid(x)
            C[12, i] = T.max(x, 0.25) + T.min(x, 0.5)
            C[13, i] = T.atan2(x, 0.5)
            C[14, i] = T.sqrt(T.abs(x))
            C[15, i] = T.clamp(x, -0.5, 0.5)
""",
    "integers": """
@T.prim_func
def k(A: T.Tensor((256,), "int32"), B: T.Tensor((256,), "int32"), C: T.Tensor((10, 256), "int32"), D: T.Tensor((256,), "int64")):
    with T.Kernel(1, threads=128):
        for i in T.Parallel(256):
            C[0, i] = A[i] // (B[i] % 7 + 1)
            C[1, i] = A[i] % (B[i] % 7 + 1)
            C[2, i] = A[i] & B[i]
            C[3, i] = A[i] | B[i]
            C[4, i] = A[i] ^ B[i]
            C[5, i] = A[i] << 3
            C[6, i] = A[i] >> 2
            C[7, i] = T.popcount(A[i])
            C[8, i] = T.clz(A[i])
            C[9, i] = T.max(A[i], B[i]) - T.min(A[i], B[i])
            D[i] = T.cast(A[i], "int64") * B[i]
""",
    "small_floats": """
@T.prim_func
def k(A: T.Tensor((256,), "float32"), B: T.Tensor((256,), "float8_e4m3fn"), C: T.Tensor((256,), "bfloat16"), D: T.Tensor((256,), "float16")):
    with T.Kernel(1, threads=64):
        for i in T.Parallel(256):
            B[i] = A[i]
            C[i] = A[i] * 3.0
            D[i] = A[i] + 0.5
""",
    "reductions_of_rows": """
@T.prim_func
def k(A: T.Tensor((32, 200), "float32"), S: T.Tensor((5, 32), "float32")):
    with T.Kernel(2, threads=128) as b:
        a = T.alloc_fragment((16, 200), "float32")
        s = T.alloc_fragment((16,), "float32")
        T.copy(A[b * 16, 0], a)
        T.reduce_sum(a, s, dim=1)
        T.copy(s, S[0, b * 16])
        T.reduce_max(a, s, dim=1)
        T.copy(s, S[1, b * 16])
        T.reduce_min(a, s, dim=1)
        T.copy(s, S[2, b * 16])
        T.reduce_abssum(a, s, dim=1)
        T.copy(s, S[3, b * 16])
        T.reduce_absmax(a, s, dim=1)
        T.copy(s, S[4, b * 16])
""",
    "reductions_of_columns": """
@T.prim_func
def k(A: T.Tensor((64, 48), "int32"), S: T.Tensor((3, 48), "int32")):
    with T.Kernel(1, threads=96):
        a = T.alloc_shared((64, 48), "int32")
        s = T.alloc_fragment((48,), "int32")
        T.copy(A, a)
        T.reduce_sum(a, s, dim=0)
        T.copy(s, S[0, 0])
        T.reduce_bitxor(a, s, dim=0)
        T.copy(s, S[1, 0])
        T.reduce_bitor(a, s, dim=0)
        T.copy(s, S[2, 0])
""",
    "cumulative_sums": """
@T.prim_func
def k(A: T.Tensor((8, 100), "float32"), B: T.Tensor((8, 100), "float32")):
    with T.Kernel(1, threads=64):
        a = T.alloc_shared((8, 100), "float32")
        T.copy(A, a)
        T.cumsum(a, dim=1)
        T.copy(a, B)
""",
    "gemm_of_halves": """
@T.prim_func
def k(A: T.Tensor((128, 96), "float16"), B: T.Tensor((96, 64), "float16"), C: T.Tensor((128, 64), "float32")):
    with T.Kernel(1, 2, threads=128) as (bx, by):
        a = T.alloc_shared((64, 32), "float16")
        b = T.alloc_shared((32, 64), "float16")
        c = T.alloc_fragment((64, 64), "float32")
        T.clear(c)
        for k in T.Pipelined(3, num_stages=2):
            T.copy(A[by * 64, k * 32], a)
            T.copy(B[k * 32, bx * 64], b)
            T.gemm(a, b, c)
        T.copy(c, C[by * 64, bx * 64])
""",
    "gemm_transposed": """
@T.prim_func
def k(A: T.Tensor((32, 64), "bfloat16"), B: T.Tensor((64, 32), "bfloat16"), C: T.Tensor((64, 64), "float32")):
    with T.Kernel(1, threads=128):
        a = T.alloc_shared((32, 64), "bfloat16")
        b = T.alloc_shared((64, 32), "bfloat16")
        c = T.alloc_fragment((64, 64), "float32")
        T.copy(A, a)
        T.copy(B, b)
        T.clear(c)
        T.gemm(a, b, c, transpose_A=True, transpose_B=True)
        T.copy(c, C)
""",
    "gemm_of_integers": """
@T.prim_func
def k(A: T.Tensor((64, 64), "int8"), B: T.Tensor((64, 64), "int8"), C: T.Tensor((64, 64), "int32")):
    with T.Kernel(1, threads=128):
        a = T.alloc_shared((64, 64), "int8")
        b = T.alloc_shared((64, 64), "int8")
        c = T.alloc_fragment((64, 64), "int32")
        T.copy(A, a)
        T.copy(B, b)
        T.clear(c)
        T.gemm(a, b, c, transpose_B=True)
        T.copy(c, C)
""",
    "gemm_with_a_fragment": """
@T.prim_func
def k(A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float16"), C: T.Tensor((64, 64), "float32")):
    with T.Kernel(1, threads=128):
        a = T.alloc_fragment((64, 64), "float16")
        b = T.alloc_shared((64, 64), "float16")
        c = T.alloc_fragment((64, 64), "float32")
        T.copy(A, a)
        T.copy(B, b)
        T.clear(c)
        T.gemm(a, b, c)
        T.copy(c, C)
""",
    "gemm_in_three_stages": """
@T.prim_func
def k(A: T.Tensor((256, 128), "float16"), B: T.Tensor((128, 128), "float16"), C: T.Tensor((256, 128), "float16")):
    with T.Kernel(2, 1, threads=128) as (bx, by):
        a = T.alloc_shared((128, 32), "float16")
        b = T.alloc_shared((32, 128), "float16")
        c = T.alloc_fragment((128, 128), "float32")
        T.clear(c)
        for k in T.Pipelined(4, num_stages=3):
            T.copy(A[bx * 128, k * 32], a)
            T.copy(B[k * 32, by * 128], b)
            T.gemm(a, b, c)
        T.copy(c, C[bx * 128, by * 128])
""",
    "pipelined_copies": """
@T.prim_func
def k(A: T.Tensor((64, 1024), "float32"), B: T.Tensor((64, 1024), "float32")):
    with T.Kernel(8, threads=128) as b:
        tile = T.alloc_shared((8, 128), "float32")
        total = T.alloc_fragment((8, 128), "float32")
        T.clear(total)
        for step in T.Pipelined(8, num_stages=3):
            T.copy(A[b * 8, step * 128], tile)
            for i, j in T.Parallel(8, 128):
                total[i, j] += tile[i, 127 - j]
            T.copy(total, B[b * 8, step * 128])
""",
    "attention": """
@T.prim_func
def k(
    Q: T.Tensor((128, 64), "float16"),
    K: T.Tensor((256, 64), "float16"),
    V: T.Tensor((256, 64), "float16"),
    O: T.Tensor((128, 64), "float16"),
):
    with T.Kernel(2, threads=128) as b:
        q = T.alloc_shared((64, 64), "float16")
        keys = T.alloc_shared((64, 64), "float16")
        values = T.alloc_shared((64, 64), "float16")
        scores, weights = T.alloc_fragment((64, 64), "float32"), T.alloc_fragment((64, 64), "float16")
        out = T.alloc_fragment((64, 64), "float32")
        row_sum, total = T.alloc_fragment((64,), "float32"), T.alloc_fragment((64,), "float32")
        T.copy(Q[b * 64, 0], q)
        T.clear(out)
        T.clear(total)
        for step in T.Pipelined(4, num_stages=2):
            T.copy(K[step * 64, 0], keys)
            T.copy(V[step * 64, 0], values)
            T.clear(scores)
            T.gemm(q, keys, scores, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)
            for i, j in T.Parallel(64, 64):
                scores[i, j] = T.exp2(scores[i, j] * 0.125)
            T.reduce_sum(scores, row_sum, dim=1)
            for i in T.Parallel(64):
                total[i] += row_sum[i]
            T.copy(scores, weights)
            T.gemm(weights, values, out, policy=T.GemmWarpPolicy.FullRow)
        for i, j in T.Parallel(64, 64):
            out[i, j] /= total[i]
        T.copy(out, O[b * 64, 0])
""",
    "gemm_through_a_shared_tile": """
@T.prim_func
def k(A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float16"), C: T.Tensor((64, 64), "float16")):
    with T.Kernel(1, threads=128):
        a, b = T.alloc_shared((64, 64), "float16"), T.alloc_shared((64, 64), "float16")
        r = T.alloc_shared((64, 64), "float16")
        c = T.alloc_fragment((64, 64), "float32")
        T.copy(A, a)
        T.copy(B, b)
        T.clear(c)
        T.gemm(a, b, c)
        T.copy(c, r)
        T.copy(r, C)
""",
    "atomics": """
@T.prim_func
def k(A: T.Tensor((512,), "int32"), S: T.Tensor((16,), "int32"), F: T.Tensor((16,), "float32"), M: T.Tensor((2,), "int32")):
    with T.Kernel(4, threads=128) as b:
        for i in T.Parallel(128):
            T.atomic_add(S[(A[b * 128 + i] % 16 + 16) % 16], 1)
            T.atomic_add(F[i % 16], 0.5)
            T.atomic_max(M[0], A[b * 128 + i])
            T.atomic_min(M[1], A[b * 128 + i])
""",
    "atomic_tile": """
@T.prim_func
def k(A: T.Tensor((4, 64), "float32"), S: T.Tensor((64,), "float32")):
    with T.Kernel(4, threads=64) as b:
        tile = T.alloc_shared((64,), "float32")
        T.copy(A[b, 0:64], tile)
        T.atomic_add(S, tile)
""",
    "warp_operations": """
@T.prim_func
def k(A: T.Tensor((64,), "int32"), C: T.Tensor((6, 64), "int32")):
    with T.Kernel(1, threads=64):
        t = T.get_thread_binding()
        v = A[t]
        C[0, t] = T.shfl_xor(v, 5)
        C[1, t] = T.shfl_down(v, 3)
        C[2, t] = T.cast(T.any_sync(v > 0), "int32")
        C[3, t] = T.cast(T.ballot(v > 0), "int32")
        C[4, t] = T.warp_reduce_sum(v)
        C[5, t] = T.warp_reduce_max(v)
""",
    "barriers_of_a_block": """
@T.prim_func
def k(A: T.Tensor((128,), "int32"), C: T.Tensor((2, 128), "int32")):
    with T.Kernel(1, threads=128):
        t = T.get_thread_binding()
        s = T.alloc_shared((128,), "int32")
        s[t] = A[t]
        T.sync_threads()
        C[0, t] = s[127 - t]
        C[1, t] = T.syncthreads_count(A[t] > 0)
""",
    "loops_and_variables": """
@T.prim_func
def k(A: T.Tensor((64,), "int32"), C: T.Tensor((64,), "int32")):
    with T.Kernel(1, threads=64):
        t = T.get_thread_binding()
        n = T.alloc_var("int32")
        n = T.abs(A[t]) % 1000 + 1
        steps = 0
        while n != 1 and steps < 500:
            if n % 2 == 0:
                n = n // 2
            else:
                n = 3 * n + 1
            steps = steps + 1
        for i in T.serial(4):
            if i == t % 4:
                break
            steps = steps + i
        C[t] = steps
""",
    "local_arrays": """
@T.prim_func
def k(A: T.Tensor((64, 8), "float32"), C: T.Tensor((64, 8), "float32")):
    with T.Kernel(1, threads=64):
        t = T.get_thread_binding()
        x = T.alloc_local((8,), "float32")
        for i in T.vectorized(8):
            x[i] = A[t, i]
        for i in T.unroll(8):
            C[t, i] = x[7 - i] + x[i]
""",
    "workspace_of_two_launches": """
@T.prim_func
def k(A: T.Tensor((256,), "float32"), C: T.Tensor((256,), "float32")):
    W = T.alloc_global((256,), "float32")
    with T.Kernel(4, threads=64) as b:
        for i in T.Parallel(64):
            W[b * 64 + i] = A[b * 64 + i] * 3
    with T.Kernel(4, threads=64) as b:
        for i in T.Parallel(64):
            C[b * 64 + i] = W[255 - (b * 64 + i)]
""",
    "reshaped_views": """
@T.prim_func
def k(A: T.Tensor((16, 64), "float32"), C: T.Tensor((1024,), "float32")):
    with T.Kernel(1, threads=128):
        a = T.alloc_shared((16, 64), "float32")
        T.copy(A, a)
        flat = T.reshape(a, (1024,))
        for i in T.Parallel(1024):
            C[i] = flat[1023 - i]
""",
    "swizzled_blocks_of_a_persistent_grid": """
@T.prim_func
def k(C: T.Tensor((64, 64), "int32")):
    with T.Kernel(8, 8, threads=64) as (bx, by):
        T.use_swizzle(panel_size=4)
        for i, j in T.Parallel(8, 8):
            C[by * 8 + i, bx * 8 + j] = by * 8 + bx
""",
    "softmax": """
@T.prim_func
def k(X: T.Tensor((8, 1000), "float16"), Y: T.Tensor((8, 1000), "float16")):
    with T.Kernel(8, threads=128) as b:
        x = T.alloc_fragment((1, 1000), "float32")
        m = T.alloc_fragment((1,), "float32")
        s = T.alloc_fragment((1,), "float32")
        T.copy(X[b, 0], x)
        T.reduce_max(x, m, dim=1)
        for i, j in T.Parallel(1, 1000):
            x[i, j] = T.exp(x[i, j] - m[i])
        T.reduce_sum(x, s, dim=1)
        for i, j in T.Parallel(1, 1000):
            x[i, j] = x[i, j] / s[i]
        T.copy(x, Y[b, 0])
""",
    "gather_by_table": """
@T.prim_func
def k(A: T.Tensor((100, 32), "float32"), at: T.Tensor((64,), "int32"), C: T.Tensor((64, 32), "float32")):
    with T.Kernel(4, threads=64) as b:
        for i, j in T.Parallel(16, 32):
            C[b * 16 + i, j] = A[(at[b * 16 + i] % 100 + 100) % 100, j]
""",
    "printing_and_checking": """
@T.prim_func
def k(A: T.Tensor((4,), "float32")):
    with T.Kernel(1, threads=4):
        t = T.get_thread_binding()
        T.device_assert(A[t] < 1e9, "finite")
        T.print(A[t], msg="value")
        A[t] = A[t] + 1
""",
}
