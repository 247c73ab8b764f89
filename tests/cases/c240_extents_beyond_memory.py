"""Extents that no memory has, and loop bounds that no variable holds, are refused where they stand."""

import tilelang.language as T


@T.prim_func
def k(
    A: T.Tensor((16,), "int32"),
    B: T.Tensor((2**70,), "int8"),  #! TL004
    C: T.Tensor((2**40, 2**40), "int8"),  #! TL004
    D: T.StridedTensor((4, 4), (2**70, 1), "int8"),  #! TL004
    E: T.Tensor((10**5000,), "int8"),  #! TL004
    F: T.Tensor((True,), "int8"),  #! TL004
    n: T.int32,
):
    with T.Kernel(1, threads=32):
        s = T.alloc_shared((2**70,), "float32")  #! TL004
        f = T.alloc_fragment((2**31,), "float32")  #! TL004
        x = T.alloc_local((2**20, 2**20), "float32")  #! TL004
        w = T.alloc_global((10**5000,), "float32")  #! TL004
        z = T.alloc_local((2**17 + 1,), "float32")  #! TL004
        z = T.alloc_local((2**17,), "float32")
        z = T.alloc_shared((0,), "float32")  #! TL004
        y = T.alloc_fragment((4.0,), "float32")  #! TL004
        r = T.reshape(A, (2**70,))  #! TL004
        v = T.view(A, (2**35, 2**35))  #! TL204
        for i in range(2**70):  #! TL004
            A[0] = 1
        for i in range(n, 2**63):  #! TL004
            A[0] = 1
        for i in range(0, 10, 10**5000):  #! TL004
            A[0] = 1
        for i in T.serial(2**63):  #! TL004
            A[0] = 1
        for i in T.Persistent([4], 2**70, 0):  #! TL004
            A[0] = 1
    with T.Kernel(2**70):  #! TL208
        A[0] = 1
    with T.Kernel(1, 10**5000):  #! TL208
        A[0] = 1
    with T.Kernel(1, threads=10**5000):  #! TL208
        A[0] = 1


EXPECT = [
    ("TL004", 9),
    ("TL004", 10),
    ("TL004", 11),
    ("TL004", 12),
    ("TL004", 13),
    ("TL004", 17),
    ("TL004", 18),
    ("TL004", 19),
    ("TL004", 20),
    ("TL004", 21),
    ("TL004", 23),
    ("TL004", 24),
    ("TL004", 25),
    ("TL204", 26),
    ("TL004", 27),
    ("TL004", 29),
    ("TL004", 31),
    ("TL004", 33),
    ("TL004", 35),
    ("TL208", 37),
    ("TL208", 39),
    ("TL208", 41),
]
EXPECT_MESSAGE = ["an integer of 5,001 digits"]
EXPECT_HELP = ["it has to be below 2**31", "it has to be below 2**63"]
