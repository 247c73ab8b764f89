"""An element where `T.transpose` takes a region."""
@T.prim_func
def tr(A: T.Tensor((64, 64), "float32"), B: T.Tensor((64, 64), "float32")):
    with T.Kernel(2, 2, threads=128) as (bx, by):
        s = T.alloc_shared((32, 32), "float32")
        T.copy(A[by * 32, bx * 32], s)
        T.transpose(s, B[bx * 32, by * 32])
