"""Three mistakes in one kernel, all said at once."""
@T.prim_func
def k(A: T.Tensor((64, 64), "float32"), B: T.Tensor((64,), "int32")):
    with T.Kernel(1, threads=64):
        tile = T.alloc_shared((64, 64), dtyp="float32")
        for i in T.Parallel(64):
            x = y = A[i, 0]
            B[i] = B[i] / 2
        T.copy(A, tile)
