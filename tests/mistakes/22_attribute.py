"""A typing error in an attribute of a buffer, and methods that device values do not have."""
@T.prim_func
def scale(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float16")):
    with T.Kernel(1, threads=64):
        n = A.shpae[0]
        for i in T.Parallel(64):
            B[i] = A[i].to("float16")
            A[i] = (A[i] * 2.0).sqrt()
