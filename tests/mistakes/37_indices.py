"""Too few indices, each in brackets of its own, and no dtype."""
@T.prim_func
def sm(X: T.Tensor((4, 64), "float32"), Y: T.Tensor((4, 64), "float32")):
    with T.Kernel(4, threads=64) as row:
        x = T.alloc_fragment((64,), "float32")
        z = T.alloc_shared((32, 32))
        s = 2.0
        Y[row] = x[0] / s
        for i in T.Parallel(64):
            Y[row] = X[row] + 1.0
            Y[i][0] = X[row][1]
