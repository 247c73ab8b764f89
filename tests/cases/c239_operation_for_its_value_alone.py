"""an operation whose value nobody takes is evaluated and changes nothing"""
import numpy as np
import tilelang.language as T


@T.prim_func
def k(a: T.Tensor((8,), "float32"), out: T.Tensor((8,), "float32")):
    with T.Kernel(1, threads=8):
        for i in T.Parallel(8):
            T.exp(a[i])
            a[i]
            out[i] = a[i]


def inputs():
    return dict(a=np.arange(8).astype(np.float32), out=np.zeros((8,), np.float32))


def reference(a, out):
    return dict(out=a.copy())
