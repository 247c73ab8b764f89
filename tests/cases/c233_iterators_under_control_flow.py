"""an iterator made outside gives its items once per turn or thread in Python, and once in all while building: refused"""
import tilelang.language as T

@T.prim_func
def k(out: T.Tensor((16,), "float32")):
    with T.Kernel(1, threads=32):
        g = iter([1, 2, 3])
        for i in range(3):
            out[i] = next(g)
        for i in range(3):
            for item in g:
                out[item] += 1.0
        for i in range(3):
            out[i] = len([item for item in g])
        for i in range(3):
            out[i] = len(sorted(g))
        for i in range(3):
            first, *rest = g
        t = T.get_thread_binding()
        if t < 3:
            out[t] = max(*g)
        value = next(g) if t > 2 else 7
        for i in range(3):
            mine = iter([4, 5])
            out[i] = next(mine) + next(mine)
            for a, b in zip((1, 2), (3, 4)):
                out[i] += a * b
        for item in g:
            out[item] = 0.0


EXPECT_HELP = ["make a list of it before"] * 7
EXPECT = [("TL133", line) for line in (9, 11, 14, 16, 18, 21, 22)]
