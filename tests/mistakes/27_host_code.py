"""Operations outside a kernel, and a kernel without its decorator."""
import numpy as np


def add_one(A: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=64):
        for i in T.Parallel(64):
            A[i] = A[i] + 1.0


add_one(np.zeros(64, np.float32))
