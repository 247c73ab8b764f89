"""// and % of floats where a rounded quotient lies on the other side of a whole number, and at infinity"""
import numpy as np
import tilelang.language as T

def build():
    @T.prim_func
    def k(a: T.Tensor((9,), "float64"), b: T.Tensor((9,), "float64"), q: T.Tensor((9,), "float64"), r: T.Tensor((9,), "float64"), half: T.Tensor((9,), "float16")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(9):
                q[i] = a[i] // b[i]
                r[i] = a[i] % b[i]
                half[i] = T.float16(a[i]) % T.float16(b[i])
    return k


A = np.array([1.0, -1.0, 0.3, 3.0, -5.5, 5.0, -5.0, 1e8, 6.0])
B = np.array([0.1, 0.1, 0.1, 1e-3, 1.1, np.inf, np.inf, 0.3, -3.0])


def inputs(): return dict(a=A.copy(), b=B.copy(), q=np.zeros(9), r=np.zeros(9), half=np.zeros(9, np.float16))


def reference(a, b, q, r, half):
    with np.errstate(all="ignore"):
        return dict(q=a // b, r=a % b, half=a.astype(np.float16) % b.astype(np.float16))
