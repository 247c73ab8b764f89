"""A condition of the device that should leave a loop over a list."""
@T.prim_func
def first_above(A: T.Tensor((8,), "float32"), at: T.Tensor((1,), "int32")):
    with T.Kernel(1, threads=1):
        for i in [0, 2, 4, 6]:
            if A[i] > 1.0:
                at[0] = i
                break
