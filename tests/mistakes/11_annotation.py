"""A parameter without annotation."""
@T.prim_func
def add(A: T.Tensor((64,), "float32"), B, C: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=64):
        for i in T.Parallel(64):
            C[i] = A[i] + B[i]
