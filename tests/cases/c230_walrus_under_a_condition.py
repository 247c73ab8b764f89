"""a walrus that Python might skip binds only where it runs; behind it the name keeps what it held otherwise"""
import numpy as np
import tilelang.language as T


@T.prim_func
def k(a: T.Tensor((8,), "int32"), out: T.Tensor((8,), "int32"), more: T.Tensor((8,), "int32")):
    with T.Kernel(1, threads=1):
        s = 0
        for i in range(12):
            if 3 < i < 8 and (s := a[i] * i) > 5:
                out[i] = s
            if i < 8 and (v := a[i]) > 0 and (w := v + s) > 4:
                more[i] = v * 10 + w
        out[0] = s


def inputs():
    a = np.array([3, 0, 4, 1, 5, -9, 2, 6], np.int32)
    return dict(a=a, out=np.zeros(8, np.int32), more=np.zeros(8, np.int32))


def reference(a, out, more):
    s = 0
    for i in range(12):
        if 3 < i < 8 and (s := a[i] * i) > 5:
            out[i] = s
        if i < 8 and (v := a[i]) > 0 and (w := v + s) > 4:
            more[i] = v * 10 + w
    out[0] = s
    return dict(out=out, more=more)
