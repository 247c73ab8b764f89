"""layouts from tilelang.layout, use_swizzle and hints of copies do not change results"""
import numpy as np
import tilelang
import tilelang.language as T

def build():
    @T.prim_func
    def k(a: T.Tensor((64, 64), "float16"), o: T.Tensor((64, 64), "float16")):
        with T.Kernel(2, 2, threads=64) as (bx, by):
            T.use_swizzle(panel_size=10)
            s = T.alloc_shared((32, 32), "float16")
            T.annotate_layout({s: tilelang.layout.make_swizzled_layout(s)})
            T.copy(a[by * 32, bx * 32], s, coalesced_width=8)
            T.copy(s, o[by * 32, bx * 32])
    return k

def inputs(): return dict(a=np.arange(4096).reshape(64, 64).astype(np.float16), o=np.zeros((64, 64), np.float16))

def reference(a, o): return dict(o=a)
