"""Two targets."""
@T.prim_func
def tr(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
    with T.Kernel(2, threads=32) as bx:
        for i in T.Parallel(32):
            x = B[i] = A[i] + 1
            B[i] = A[i] = 0.0
