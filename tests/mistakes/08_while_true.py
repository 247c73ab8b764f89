"""A loop that nothing leaves."""
@T.prim_func
def count(A: T.Tensor((1,), "int32"), limit: T.int32):
    with T.Kernel(1, threads=1):
        n = 0
        while True:
            n += 1
            if n > limit:
                A[0] = n
