"""a kernel is launched, not called by another kernel: refused, pointing to macros"""
import tilelang.language as T

@T.prim_func
def inner(o: T.Tensor((8,), "float32")):
    with T.Kernel(1, threads=8):
        o[0] = 1.0

@T.prim_func
def k(o: T.Tensor((8,), "float32")):
    with T.Kernel(1, threads=8):
        inner(o)


EXPECT_HELP = ["@T.macro"]
EXPECT_MESSAGE = ["a call of the kernel `inner` in a kernel"]
EXPECT = [("TL127", 12)]
