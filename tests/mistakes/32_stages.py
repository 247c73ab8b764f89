"""The argument of a pipelined loop by half of its name."""
@T.prim_func
def add(A: T.Tensor((256,), "float32"), B: T.Tensor((256,), "float32")):
    with T.Kernel(1, threads=256) as bx:
        for k in T.Pipelined(8, stages=2):
            for i in T.Parallel(32):
                B[k * 32 + i] = A[k * 32 + i]
