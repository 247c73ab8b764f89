"""a NumPy array indexed by a device value is refused like a list"""
import numpy as np
import tilelang
import tilelang.language as T

TABLE = np.array([1, 2, 3, 4], np.int32)
@T.prim_func
def k(out: T.Tensor((4,), "int32")):
    with T.Kernel(1, threads=1):
        out[0] = TABLE[2]
        for i in range(4):
            out[i] = TABLE[i]


EXPECT = [("TL116", 12)]
