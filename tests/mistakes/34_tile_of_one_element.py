"""The result of a reduction in arithmetic."""
@T.prim_func
def sm(X: T.Tensor((4, 64), "float32"), Y: T.Tensor((4, 64), "float32")):
    with T.Kernel(4, threads=64) as row:
        x = T.alloc_fragment((64,), "float32")
        m = T.alloc_fragment((1,), "float32")
        T.copy(X[row, :], x)
        T.reduce_max(x, m, dim=0)
        for j in T.Parallel(64):
            x[j] = T.exp(x[j] - m)
        T.copy(x, Y[row, :])
