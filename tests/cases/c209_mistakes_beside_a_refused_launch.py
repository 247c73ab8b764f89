"""a parameter without an annotation and an impossible launch leave the mistakes of the body to be said"""
import tilelang.language as T

@T.prim_func
def k(a, out: T.Tensor((4,), "int32")):
    with T.Kernel(1, threads=2048) as bx:
        out[bx] = a[0]
        out[1] = len(out)


@T.prim_func
def q(out: T.Tensor((4,), "int32")):
    blocks = nowhere
    with T.Kernel(blocks, threads=32) as bx:
        x = y = bx
        out[0] = x
        T.clera(out)


EXPECT = [("TL207", 5), ("TL208", 6), ("TL107", 8), ("TL002", 13), ("TL101", 15), ("TL003", 17)]
