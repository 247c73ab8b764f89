"""annotations that cast, written as names of types and in quotes"""
import numpy as np
import tilelang
import tilelang.language as T

@T.prim_func
def k(a: T.Tensor((4,), "float32"), out: T.Tensor((6,), "float32"), n: T.int32):
    with T.Kernel(1, threads=1):
        x: T.bfloat16 = a[0]
        out[0] = x
        y: T.int8 = n
        out[1] = y
        z: T.float32 = n
        out[2] = z / 2
        w: "float16" = a[1]
        out[3] = w
        u: T.float32 = 1
        out[4] = u / 4
        v: int
        v = 3
        out[5] = v

def inputs(): return dict(a=np.array([0.1, 0.2, 0.3, 0.4], np.float32), out=np.zeros(6, np.float32), n=259)

def reference(a, out, n):
    import ml_dtypes
    return dict(out=np.array([np.float32(a[0].astype(ml_dtypes.bfloat16)), 3, 129.5, np.float32(np.float16(a[1])), 0.25, 3], np.float32))

RTOL = 1e-7
