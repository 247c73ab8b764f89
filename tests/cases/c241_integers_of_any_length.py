"""An integer that its type cannot hold is refused, floats included, and however long it is the message stays short."""

import tilelang.language as T

LONG = 10**5000


@T.prim_func
def k(
    o: T.Tensor((4,), "float32"),
    h: T.Tensor((4,), "float16"),
    d: T.Tensor((4,), "float64"),
    q: T.Tensor((4,), "int64"),
    s: T.Tensor((T.dynamic("m"),), "int64"),
    n: T.int32,
    x: T.float32,
):
    with T.Kernel(1, threads=1):
        o[0] = 10**400  #! TL135
        h[0] = 70000  #! TL135
        d[0] = -LONG  #! TL135
        q[0] = LONG  #! TL135
        o[1] = x + LONG  #! TL135
        q[1] = n * LONG  #! TL135
        if n > LONG:  #! TL135
            q[2] = 1
        o[2] = T.exp(LONG)  #! TL135
        o[3] = T.max(x, LONG)  #! TL135
        q[LONG] = 1  #! TL202
        q[2] = s[LONG]  #! TL202
        T.copy(q[0:LONG], q)  #! TL202
        t = T.alloc_fragment((4,), "int32")
        T.fill(t, LONG)  #! TL135
        v: T.int32 = LONG  #! TL135
        q[3] = T.shift_left(n, LONG)  #! TL004
        for item in [LONG]:
            q[3] = item  #! TL135
        c = T.alloc_fragment((4,), LONG)  #! TL205
        d[1] = 10**300
        h[1] = 65504


EXPECT = [
    ("TL135", 19),
    ("TL135", 20),
    ("TL135", 21),
    ("TL135", 22),
    ("TL135", 23),
    ("TL135", 24),
    ("TL135", 25),
    ("TL135", 27),
    ("TL135", 28),
    ("TL202", 29),
    ("TL202", 30),
    ("TL202", 31),
    ("TL135", 33),
    ("TL135", 34),
    ("TL004", 35),
    ("TL135", 37),
    ("TL205", 38),
]
EXPECT_MESSAGE = ["an integer of 5,001 digits", "a negative integer of 5,001 digits", "an integer of 401 digits"]
