"""a weak int joins a boolean as int32, in every order of the bindings"""
import numpy as np
import tilelang.language as T

@T.prim_func
def k(a: T.Tensor((4,), "int32"), o: T.Tensor((4,), "int32")):
    with T.Kernel(1, threads=1):
        x = a[3] > 1
        if a[1] == 1:
            x = 7
        o[0] = x
        y = 7
        for i in range(3):
            if a[i] == 1:
                y = a[i] > 0
        o[1] = y
        z = False
        for i in range(3):
            z = z + (a[i] > 0)
        o[2] = z
        if a[0] > 5:
            w = a[0] > 1
        else:
            w = 3
        o[3] = w


def inputs():
    return dict(a=np.array([0, 1, 3, 4], np.int32), o=np.zeros((4,), np.int32))


def reference(a, o):
    return dict(o=np.asarray([7, 1, 2, 3], np.int32))
