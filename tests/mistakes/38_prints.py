"""What `print` is given."""
@T.prim_func
def st(A: T.Tensor((32, 32), "float32"), B: T.Tensor((32, 32), "float32")):
    with T.Kernel(1, 1, threads=32) as (bx, by):
        for i, j in T.Parallel(32, 32):
            terms = [1.0 * A[by * 32 + i, bx * 32 + j], 2.0]
            print(terms, i)
            print(terms[0])
            print(A)
            print("x", A[i, j] * 2)
            print(f"value {A[i, j]}")
            B[i, j] = terms[0]
