"""Four mistakes in two statements."""
@T.prim_func
def k(A: T.Tensor((64, 64), "float16"), B: T.Tensor((64,), "float16")):
    with T.Kernel(1, threads=64):
        tile = T.alloc_shared((64, blcok), "flaot16")
        for i in T.Parallel(64):
            B[i, 0] = A[i] * scael
