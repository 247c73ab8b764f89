"""The K of the two operands of a product differs."""
@T.prim_func
def matmul(A: T.Tensor((128, 64), "float16"), B: T.Tensor((32, 128), "float16"), C: T.Tensor((128, 128), "float32")):
    with T.Kernel(1, threads=128):
        A_s = T.alloc_shared((128, 64), "float16")
        B_s = T.alloc_shared((32, 128), "float16")
        acc = T.alloc_fragment((128, 128), "float32")
        T.clear(acc)
        T.copy(A, A_s)
        T.copy(B, B_s)
        T.gemm(A_s, B_s, acc)
        T.copy(acc, C)
