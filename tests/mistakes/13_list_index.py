"""A Python list indexed by the variable of a device loop."""
weights = [0.25, 0.5, 0.25, 0.0]


@T.prim_func
def weigh(A: T.Tensor((4,), "float32")):
    with T.Kernel(1, threads=4):
        for i in T.Parallel(4):
            A[i] = A[i] * weights[i]
