"""a per-thread array has no bytes to address: a view of another width is refused"""
import tilelang.language as T

@T.prim_func
def k(o: T.Tensor((8,), "float16")):
    with T.Kernel(1, threads=1):
        a = T.alloc_local((4,), "float32")
        b = T.view(a, dtype="float16")
        o[0] = b[0]


EXPECT_HELP = ["shared tile"]
EXPECT = [("TL205", 8)]
