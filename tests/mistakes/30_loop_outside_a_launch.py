"""A loop as on a CPU."""
@T.prim_func
def add(A: T.Tensor((1000,), "float32"), B: T.Tensor((1000,), "float32")):
    for i in range(1000):
        B[i] = A[i]
