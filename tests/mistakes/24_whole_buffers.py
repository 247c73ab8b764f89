"""Arithmetic on whole buffers, and slices assigned as in NumPy."""
import numpy as np


@T.prim_func
def add(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32"), C: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=64):
        C[:] = 0.0
        C[0] = A + B
        total = np.sum(A)
        C[1] = total
