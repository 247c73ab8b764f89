"""A typing error in an operation."""
@T.prim_func
def zero(C: T.Tensor((128, 128), "float32")):
    with T.Kernel(1, threads=128):
        acc = T.alloc_fragmnet((128, 128), "float32")
        T.clear(acc)
        T.copy(acc, C)
