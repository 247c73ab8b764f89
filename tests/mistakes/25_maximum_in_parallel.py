"""A maximum over the iterations of T.Parallel."""
@T.prim_func
def largest(A: T.Tensor((128,), "float32"), M: T.Tensor((1,), "float32")):
    with T.Kernel(1, threads=128):
        best = A[0]
        for i in T.Parallel(128):
            if A[i] > best:
                best = A[i]
        M[0] = best
