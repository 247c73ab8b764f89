"""an operand that Python might skip changes no compile-time object, not even through a helper or NumPy"""
import numpy as np
import tilelang.language as T

seen = []
table = np.zeros(3)


def note(x):
    seen.append(x)
    return 1


class Settings:
    width = 1


@T.prim_func
def k(out: T.Tensor((16,), "float32")):
    with T.Kernel(1, threads=32):
        t = T.get_thread_binding()
        items = [1, 2, 3]
        a = items.pop() if t > 2 else 7
        if t > 3 and items.append(1) is None:
            out[3] = 1.0
        b = note(1) if t > 2 else 7
        for i in range(3):
            table.fill(table[0] + 2)
        for i in range(3):
            np.add(table, 1, out=table)
        if t > 3:
            setattr(Settings, "width", 2)


EXPECT = [("TL133", line) for line in (23, 24, 26, 28, 30, 32)]
