"""`**` with a constant works, with an integer that is known only on the device it does not."""
@T.prim_func
def powers(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "int32"), n: T.int32):
    with T.Kernel(1, threads=64):
        for i in T.Parallel(64):
            A[i] = A[i] ** 3 + A[i] ** 0.5
            B[i] = 2 ** n
