"""each mistaken annotation is said at its place, and the mistakes of the body with them"""
import tilelang.language as T

ROWS = 4

@T.prim_func
def k(
    a: T.Tensor((ROWZ,), "float32"),
    b: T.Tensor((4,), "float33"),
    c: T.Tensr((4,), "float32"),
    out: T.Tensor((4,), "float32"),
):
    with T.Kernel(1, threads=1):
        out[0] = a[0] + b[0] + c[0]
        out[1] = len(out)


EXPECT_SPAN_TEXT = ["ROWZ", '"float33"', "T.Tensr", "len(out)"]
EXPECT_HELP = ["ROWS", "float32", "T.Tensor"]
EXPECT = [("TL002", 8), ("TL205", 9), ("TL003", 10), ("TL107", 15)]
