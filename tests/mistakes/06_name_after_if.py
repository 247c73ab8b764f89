"""A name that only one branch binds, used after the branches."""
@T.prim_func
def sign(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=64):
        for i in T.Parallel(64):
            if A[i] > 0.0:
                s = 1.0
            else:
                pass
            B[i] = s
