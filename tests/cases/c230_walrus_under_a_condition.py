"""a walrus that Python might skip is refused: its name would be bound on some threads only"""
import tilelang.language as T

@T.prim_func
def k(a: T.Tensor((8,), "int32"), out: T.Tensor((8,), "int32")):
    with T.Kernel(1, threads=1):
        s = 0
        for i in range(8):
            if i > 3 and (s := i) > 5:
                out[i] = s
            out[i] = (s := 7) if a[i] > 0 else 1
            if (s := i) > 3 and a[i] > 0:
                out[i] = s


EXPECT_SPAN_TEXT = ["s := i", "s := 7"]
EXPECT_HELP = ["`if` statement", "`if` statement"]
EXPECT = [("TL127", 9), ("TL127", 11)]
