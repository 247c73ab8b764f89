"""print of device values in f-strings and starred, sep; compile-time prints are fine"""
import numpy as np
import tilelang
import tilelang.language as T

@T.prim_func
def k(a: T.Tensor((4,), "float32"), out: T.Tensor((4,), "int32"), n: T.int32):
    with T.Kernel(1, threads=1):
        print("shape", a.shape, sep=": ")
        print(*[n, 1])
        print(f"n is {n}")
        print(a[0:2])
        print("dtype", a.dtype, out.shape[0] * 2)
        out[0] = 1

EXPECT_HELP = ["T.print"]


EXPECT = [("TL106", 10), ("TL106", 11), ("TL106", 12)]
