"""The same in a serial loop, where it is what it looks like: this works."""
@T.prim_func
def row_sums(A: T.Tensor((64, 32), "float32"), S: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=64):
        for row in T.Parallel(64):
            acc = 0.0
            for i in range(32):
                acc += A[row, i]
            S[row] = acc
