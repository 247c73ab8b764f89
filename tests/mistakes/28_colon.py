"""A forgotten colon."""
@T.prim_func
def double(A: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=64):
        for i in T.Parallel(64)
            A[i] = A[i] * 2.0
