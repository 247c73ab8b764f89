"""tile operations and loops that need all threads are refused by a name that the text has"""
import tilelang.language as T

@T.prim_func
def k(x: T.Tensor((64,), "float32"), o: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=64):
        s = T.alloc_shared((64,), "float32")
        f = T.alloc_fragment((8, 8), "float32")
        r = T.alloc_fragment((8,), "float32")
        T.clear(f)
        if T.get_thread_binding() < 32:
            T.copy(x, s)
            T.reduce_max(f, r, dim=1)
        T.copy(s, o)


EXPECT_MESSAGE = ["work for all threads stands where only some of them get", "`T.reduce_max` needs all threads"]
EXPECT = [("TL210", 12), ("TL210", 13)]
