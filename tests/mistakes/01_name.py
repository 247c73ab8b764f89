"""A typing error in a name."""
@T.prim_func
def scale(A: T.Tensor((256,), "float32"), B: T.Tensor((256,), "float32"), factor: T.float32):
    with T.Kernel(2, threads=128) as bx:
        for i in T.Parallel(128):
            B[bx * 128 + i] = A[bx * 128 + i] * facotr
