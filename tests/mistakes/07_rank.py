"""One index for a matrix."""
@T.prim_func
def diagonal(A: T.Tensor((64, 64), "float32"), D: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=64):
        for i in T.Parallel(64):
            D[i] = A[i]
