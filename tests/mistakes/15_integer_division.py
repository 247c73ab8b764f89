"""`/` for an index."""
@T.prim_func
def pairs(A: T.Tensor((64,), "float32"), B: T.Tensor((128,), "float32")):
    with T.Kernel(1, threads=128):
        for i in T.Parallel(128):
            B[i] = A[i / 2]
