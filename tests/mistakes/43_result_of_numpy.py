"""An array of NumPy as the result of a kernel."""
import numpy as np
import tilelang

@tilelang.jit
def copied(X: T.Tensor[[10], T.float32]):
    N = 10
    Y = np.empty(N)
    with T.Kernel(1, threads=32) as bx:
        for i in T.Parallel(N):
            Y[i] = X[i]
    return Y
copied(np.zeros(10, "float32"))
