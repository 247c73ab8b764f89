"""A copy between tiles of different shapes."""
@T.prim_func
def move(A: T.Tensor((128, 64), "float16"), B: T.Tensor((128, 64), "float16")):
    with T.Kernel(1, threads=128):
        tile = T.alloc_shared((64, 128), "float16")
        T.copy(A, tile)
        T.copy(tile, B)
