"""Python's own max of device values: this works."""
@T.prim_func
def relu(A: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=64):
        for i in T.Parallel(64):
            A[i] = max(A[i], 0.0)
