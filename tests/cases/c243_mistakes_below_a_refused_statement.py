"""The body of a refused statement is searched where it would surely be built; what hangs on the refusal is silent."""

import tilelang.language as T


@T.macro
def halved(o, d):
    if unknown == d:
        o[0] = 1
    else:
        halved(o, d - 1)
        halved(o, d - 1)
        o[0] = first


@T.prim_func
def k(o: T.Tensor((8,), "float32"), a: T.Tensor((8,), "int32"), n: T.int32):
    with T.Kernel(1, threads=32):
        for i in n:
            o[i] = 1.0
            o[0] = second
        x = third
        for i in range(x):
            y = i
            o[1] = len(a)
        o[2] = y
        items = []
        if x > 1:
            items.append(1)
            z = items[3]
            assert z == 2
            return
        elif n > fourth:
            o[3] = 2.0
        else:
            o[8] = 1.0
        if False:
            o[8] = 1.0
        elif a[1, 2] > n:
            o[9] = 1.0
        elif n > fifth:
            o[10] = 1.0
        else:
            o[11] = 1.0
        if kind == "plain":
            o[12] = 1.0
        else:
            o[0] = missing
        while fifth:
            o[4] = T.nonsense(o[0])
            break
        while True:
            if x:
                break
            o[5] = 1.0
        for number in (1, 2):
            if x:
                break
            if x == number:
                continue
        with T.ws(sixth):
            o[0, 1] = 2.0
        match a[0]:
            case 1:
                o[6] = seventh
            case other:
                o[6] = other
        try:
            o[7] = eighth
        except ValueError as error:
            o[7] = error
        for i in range(4):
            o[i] = 1.0
        else:
            o[7] = ninth
        halved(o, 3)
    with T.Kernell(2) as bx:
        s = T.alloc_shared((8,), "float32")
        T.copy(o, s)
        s[0] = tenth
        o[bx] = s[bx]


EXPECT = [
    ("TL002", 8),
    ("TL111", 19),
    ("TL002", 21),
    ("TL002", 22),
    ("TL107", 25),
    ("TL201", 39),
    ("TL202", 40),
    ("TL002", 41),
    ("TL202", 42),
    ("TL202", 44),
    ("TL002", 45),
    ("TL002", 49),
    ("TL003", 50),
    ("TL002", 61),
    ("TL201", 62),
    ("TL126", 63),
    ("TL002", 65),
    ("TL120", 68),
    ("TL002", 69),
    ("TL117", 75),
    ("TL002", 75),
    ("TL003", 77),
    ("TL002", 80),
]
