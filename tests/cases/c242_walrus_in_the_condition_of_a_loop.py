"""`while (v := ...)` binds on every turn and at least once: afterwards `v` is what the last evaluation gave."""

import numpy as np

import tilelang.language as T


@T.prim_func
def k(
    a: T.Tensor((8,), "int32"),
    x: T.Tensor((8,), "float32"),
    o: T.Tensor((16,), "int32"),
    f: T.Tensor((2,), "float32"),
    n: T.int32,
):
    with T.Kernel(1, threads=1):
        i = 0
        while (v := a[i]) > 0:
            i += 1
            o[0] += v
        o[1] = v
        # left by a break, and re-bound in the body
        i = 0
        while (w := a[i]) > 0:
            i += 1
            if w == 5:
                w = 100
                break
            w = w + 1000
            o[2] = w
        o[3] = w
        # bound before to another type, which the condition replaces
        u = n
        i = 0
        while (u := x[i]) < 3.0:
            i += 1
        f[0] = u
        # reads what it bound on the turn before
        c = 10
        while (c := c - 3) > 0:
            o[4] += c
        o[5] = c
        # two names, one from the other
        i = 0
        while (p := a[i]) + (q := p * 2) > 0:
            i += 1
        o[6] = p + q
        # inside another loop, the condition false at once on some turns
        for j in range(4):
            i = j
            while (r := a[i]) > 0 and i < 7:
                i += 1
            o[7 + j] = r
        # a constant, and a loop that never turns
        while (m := 3) > n + 5:
            o[15] = 1
        o[11] = m
        while z := 0:
            o[15] = 1
        o[12] = z
        # conditions of `if`, and filters
        if (s := a[2]) > 100:
            o[15] = 2
        elif (t := a[0]) > 0:
            o[13] = s + t
        o[14] = sum([y for e in (1, 2, 3) if (y := 2 * e) > 2]) + y
        if (g := x[0]) > 2.0:
            g = g * 2.0
        f[1] = g


def inputs():
    a = np.array([3, 2, 5, -4, 1, 1, 1, 1], np.int32)
    x = np.array([1, 2.5, 3.5, 0, 0, 0, 0, 0], np.float32)
    return dict(a=a, x=x, o=np.zeros(16, np.int32), f=np.zeros(2, np.float32), n=0)


def reference(a, x, o, f, n):
    expected = [10, -4, 1002, 100, 7 + 4 + 1, -2, -12, -4, -4, -4, -4, 3, 0, 8, 16, 0]
    return dict(o=np.array(expected, np.int32), f=np.array([3.5, 1.0], np.float32))
