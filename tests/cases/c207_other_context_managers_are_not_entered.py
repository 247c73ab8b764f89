"""with of other context managers, of nothing known, and nested launches"""
import numpy as np
import tilelang
import tilelang.language as T

@T.prim_func
def k(out: T.Tensor((4,), "int32"), n: T.int32):
    with T.Kernel(1, threads=1):
        with open("x") as f:
            out[0] = 1
        with nowhere() as g:
            out[0] = 1
        out[1] = 1


EXPECT = [("TL104", 9), ("TL104|TL002", 11)]
