"""More names than the grid has axes."""
@T.prim_func
def add(A: T.Tensor((1000,), "float32"), B: T.Tensor((1000,), "float32")):
    with T.Kernel(4, threads=256) as (bx, by):
        for i in T.Parallel(256):
            B[bx * 256 + i] = A[bx * 256 + i]
