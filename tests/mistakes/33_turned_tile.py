"""The tile of B allocated with its dimensions in the other order."""
@T.prim_func
def mm(A: T.Tensor((128, 128), "float16"), B: T.Tensor((128, 128), "float16"), C: T.Tensor((128, 128), "float32")):
    with T.Kernel(2, 2, threads=128) as (bx, by):
        As = T.alloc_shared((64, 32), "float16")
        Bs = T.alloc_shared((64, 32), "float16")
        acc = T.alloc_fragment((64, 64), "float32")
        T.clear(acc)
        for k in range(4):
            T.copy(A[by * 64, k * 32], As)
            T.copy(B[k * 32, bx * 64], Bs)
            T.gemm(As, Bs, acc)
        T.copy(acc, C[by * 64, bx * 64])
