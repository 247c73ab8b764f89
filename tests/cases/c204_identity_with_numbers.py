"""is not between device values; is None of buffers and values"""
import numpy as np
import tilelang
import tilelang.language as T

THREE = 3

@T.prim_func
def k(a: T.Tensor((8,), "int32"), out: T.Tensor((4,), "int32"), n: T.int32):
    with T.Kernel(1, threads=1):
        if n is not a[0]:
            out[0] = 1
        if a is not None and n is not None:
            out[1] = 1
        if n is THREE:
            out[2] = 1
        out[3] = 1 if n is a[1] else 2


EXPECT = [("TL139", 11), ("TL139", 15), ("TL139", 17)]
