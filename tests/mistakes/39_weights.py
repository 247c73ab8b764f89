"""A Python list indexed in device loops."""
w = [[1, 2], [3, 4]]
@T.prim_func
def st(A: T.Tensor((32, 32), "float32"), B: T.Tensor((32, 32), "float32")):
    with T.Kernel(1, 1, threads=32) as (bx, by):
        for i, j in T.Parallel(32, 32):
            s = T.float32(0)
            for di in range(2):
                for dj in range(2):
                    s += w[di][dj] * A[i, j]
            B[i, j] = s
