"""Python protocols that need the value of a device value"""
import numpy as np
import tilelang
import tilelang.language as T

import math

@T.prim_func
def k(a: T.Tensor((8,), "float32"), out: T.Tensor((8,), "float32"), n: T.int32):
    with T.Kernel(1, threads=1):
        out[0] = math.sqrt(a[0])
        t = [1.0] * n
        out[1] = [1.0, 2.0][0] + math.floor(n)
        out[2] = "abc".index("c") + 1.0
        s = {n: 1}
        u = sorted([a[0], a[1]])
        out[3] = 2.0


EXPECT = [("TL128", 11), ("TL128", 12), ("TL128", 13), ("TL128", 15), ("TL128", 16)]
