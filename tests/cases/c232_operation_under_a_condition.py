"""an operation in an operand that runs only under a condition is refused by the name that the text has"""
import tilelang.language as T

@T.prim_func
def k(a: T.Tensor((8,), "int32"), out: T.Tensor((8,), "int32")):
    with T.Kernel(1, threads=8) as bx:
        t = T.get_thread_binding()
        if a[t] > 0 and T.atomic_add(out[0], 1, return_prev=True) > 5:
            out[1] = 4


EXPECT_MESSAGE = ["`T.atomic_add` in an operand that runs only under a condition"]
EXPECT_HELP = ["`if` statement"]
EXPECT = [("TL127", 8)]
