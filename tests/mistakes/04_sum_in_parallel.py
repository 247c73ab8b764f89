"""A Python number that adds up over the iterations of T.Parallel."""
@T.prim_func
def total(A: T.Tensor((128,), "float32"), S: T.Tensor((1,), "float32")):
    with T.Kernel(1, threads=128):
        acc = 0.0
        for i in T.Parallel(128):
            acc += A[i]
        S[0] = acc
