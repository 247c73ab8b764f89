"""A dtype that there is not."""
@T.prim_func
def copy(A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float16")):
    with T.Kernel(1, threads=128):
        tile = T.alloc_shared((64, 64), "flaot16")
        T.copy(A, tile)
        T.copy(tile, B)
