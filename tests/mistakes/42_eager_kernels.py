"""A parameter of an eager kernel without annotation."""
import numpy as np
import tilelang

@tilelang.jit
def doubled(X):
    n = X.shape[0]
    Y = T.empty((n,), "float32")
    with T.Kernel(1, threads=32) as bx:
        for i in T.Parallel(n):
            Y[i] = X[i]
    return Y
doubled(np.zeros(10, "float32"))
