"""Reductions as NumPy has them."""
@T.prim_func
def sm(X: T.Tensor((4, 64), "float32"), Y: T.Tensor((4, 64), "float32")):
    with T.Kernel(4, threads=64) as row:
        x = T.alloc_fragment((64,), "float32")
        T.copy(X[row, :], x)
        m = T.max(x)
        k = T.min(x)
        q = max(x)
        r = T.reduce_max(X[row, :], dim=0)
        n = T.reduce_sum(x, dim=0)
        n = T.reduce_sum(x)
