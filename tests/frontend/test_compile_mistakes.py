"""What Python refuses only when it compiles: each mistake at its place, and none hides another of the cell."""

from __future__ import annotations

from frontend.cells import HEAD, kernel, run_cell

from tilelang_nb.frontend.static import check_text

# `#: CODE text | CODE text` says which errors a line has, with the exact text of their ranges.
CELL = """import tilelang.language as T
@T.prim_func
def k(a: T.Tensor((4,), "int32"), n: T.int32):
    with T.Kernel(1, threads=1):
        é = "é"; y = u0 + await u1 + u2  #: TL002 u0 | TL123 await u1 | TL002 u1 | TL002 u2
        a[0] = y
        async for i in a:  #: TL123 async for i in a:
            a[0] = u3  #: TL002 u3
        async with n:  #: TL123 async with n:
            a[0] = u4  #: TL002 u4
        z = [i async for i in u5]  #: TL123 [i async for i in u5] | TL002 u5
        z = (i async for i in u6)  #: TL123 (i async for i in u6) | TL002 u6
        nonlocal q  #: TL125 nonlocal q
        global n  #: TL125 global n
        break  #: TL005 break
        from math import *  #: TL124 from math import *
        p, *q, *r = u7  #: TL005 p, *q, *r | TL002 u7
        *s = u8  #: TL005 *s | TL002 u8
        w = *u9  #: TL005 *u9 | TL002 u9
        w = [v := 1 for v in u10]  #: TL005 v | TL002 u10
        w = dict(n=u11, n=2)  #: TL002 u11 | TL005 n=2
        w = [(yield u12) for b in u13]  #: TL002 u13 | TL123 yield u12
        if n > u14:  #: TL002 u14
            a[0] = await u15  #: TL123 await u15 | TL002 u15
        if False:
            await n  #: TL123 await n
        match 3:
            case [c, c]:  #: TL005 c
                continue  #: TL005 continue
        a[0] = u16  #: TL002 u16
if 1:
    return 1  #: TL005 return 1
    break  #: TL005 break
@T.macro
def never(a, a):  #: TL005 a
    async with a:  #: TL123 async with a:
        pass
@T.prim_func
def k2(a: T.Tensor((4,), "int32"), a: T.int32):  #: TL005 a: T.int32
    with T.Kernel(1, threads=1):
        n = u17  #: TL002 u17
def helper(x):
    y = await x  #: TL005 await x
    yield y
    break  #: TL005 break
@T.prim_func
def k3(a: T.Tensor((4,), "int32"), n: T.int32):
    with T.Kernel(1, threads=1):
        a[0] = helper(n)
        a[1] = u18  #: TL002 u18
"""


def wanted() -> list[tuple[int, str, str]]:
    found = []
    for number, line in enumerate(CELL.splitlines(), 1):
        for mark in line.partition("#: ")[2].split(" | ") if "#: " in line else ():
            code, _, text = mark.partition(" ")
            found.append((number, code, text))
    return sorted(found)


def test_every_mistake_of_the_cell_is_reported_at_its_range() -> None:
    cell = run_cell(CELL)
    text = cell.session.text
    assert sorted((d.span.line, d.code, text.slice(d.span)) for d in cell.diagnostics if d.span) == wanted()


def test_the_static_check_finds_them_too() -> None:
    syntax = ("TL005", "TL123", "TL124", "TL125")
    found = [(d.span.line, d.code) for d in check_text(CELL) if d.span and d.code in syntax]
    assert sorted(found) == [(line, code) for line, code, _ in wanted() if code in syntax]


def test_what_an_awaited_statement_binds_is_silent() -> None:
    assert run_cell(kernel("y = await n\nfor i in range(y):\n    out[i] = y")).errors == [("TL123", 6)]


def test_a_macro_with_such_a_mistake_is_refused_in_a_later_cell_too() -> None:
    macro = "@T.macro\ndef wait(o):\n    if False:\n        await o\n    o[0] = 1\n"
    first = run_cell(HEAD + macro, name="In[1]")
    assert first.errors == [("TL123", 5)]
    second = run_cell(kernel("wait(out)"), namespace=dict(first.namespace), name="In[2]")
    (found,) = second.diagnostics
    assert (found.code, second.session.text.slice(found.span)) == ("TL123", "wait(out)")
    assert second.kernels["k"] is None


def test_names_from_outside_that_a_refused_statement_reads_are_found() -> None:
    text = """import tilelang.language as T
def build(N):
    @T.prim_func
    def k(a: T.Tensor((4,), "int32")):
        with T.Kernel(1, threads=1):
            a[0] = N + (lambda: N)()
            a[N] = 1
    return k
build(2)
"""
    assert run_cell(text).errors == []
    mistaken = text.replace("a[N] = 1", "a[N] = await N")
    assert run_cell(mistaken).errors == [("TL123", 7)]
