"""a per-thread array seen with another shape and as another type of the same width"""
import numpy as np
import tilelang.language as T

def build():
    @T.prim_func
    def k(x: T.Tensor((2, 4), "float32"), bits: T.Tensor((8,), "int32"), o: T.Tensor((4, 2), "float32")):
        with T.Kernel(1, threads=1):
            a = T.alloc_local((2, 4), "float32")
            for i, j in T.grid(2, 4):
                a[i, j] = x[i, j]
            b = T.view(a, (8,), dtype="int32")
            for i in range(8):
                bits[i] = b[i]
                b[i] = b[i] ^ T.int32(-(2**31))
            c = T.reshape(a, (4, 2))
            for i, j in T.grid(4, 2):
                o[i, j] = c[i, j]
    return k


X = np.arange(8, dtype=np.float32).reshape(2, 4) + 1


def inputs(): return dict(x=X.copy(), bits=np.zeros(8, np.int32), o=np.zeros((4, 2), np.float32))


def reference(x, bits, o): return dict(bits=x.view(np.int32).ravel(), o=-x.reshape(4, 2))
