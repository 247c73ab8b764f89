"""buffers and regions as conditions, in and/not/ternary/while"""
import numpy as np
import tilelang
import tilelang.language as T

@T.prim_func
def k(a: T.Tensor((8,), "int32"), out: T.Tensor((4,), "int32"), n: T.int32):
    with T.Kernel(1, threads=1):
        if not a:
            out[0] = 1
        if n > 2 and a:
            out[0] = 1
        out[1] = 1 if a else 2
        while a:
            out[2] = 1
        if a[0:4]:
            out[3] = 1


EXPECT = [("TL138", 9), ("TL138", 11), ("TL138", 13), ("TL138", 14), ("TL138", 16)]
