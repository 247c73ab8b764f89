"""A statement that re-binds two buffers under runtime control flow is one mistake, said at the first name."""

import tilelang.language as T


@T.prim_func
def k(o: T.Tensor((8,), "float32"), n: T.int32):
    with T.Kernel(1, threads=1):
        x = T.alloc_local((4,), "float32")
        y = T.alloc_local((4,), "float32")
        for _ in range(n):
            x, y = y, x
            x[0] = 1.0
        p = T.alloc_local((4,), "float32")
        q = T.alloc_local((4,), "float32")
        if n > 1:
            p, q = q, p
        o[0] = p[0]
        o[1] = q[0]


EXPECT = [("TL133", 12), ("TL133", 17)]
EXPECT_SPAN_TEXT = ["x", "p"]
