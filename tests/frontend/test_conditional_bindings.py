"""`:=` in an operand that runs only under a condition of the device keeps Python's meaning, or is refused."""

from __future__ import annotations

import numpy as np
import pytest
from frontend.cells import kernel, run_cell, titled

LIKE_PYTHON = """
## a number bound before
x = 1
y = n > 2 and (x := m) > 3
out[0] = x
out[1] = y
## the number itself is changed
x = 0
for i in range(8):
    if a[i] > 0 and (x := x + 1) > 1:
        out[i] = x
    out[i] += x * 10
out[0] = x
## an alternative
x = 7
y = (n > 2) or (x := m)
out[0] = x
out[1] = y
## both branches of a conditional expression
z = (x := n + 5) if n > 2 else (x := 9)
out[0] = z * 100 + x
## one branch of it
x = 3
z = (x := m) if n > 2 else n
out[0] = z * 100 + x
## read in the same chain
if n > 0 and (v := a[n % 8]) > 1 and v < 6 and (w := v * 2) > v:
    out[0] = v * 10 + w
## an access that the left side guards
for i in range(12):
    if i < 8 and (v := a[i]) > 0:
        out[i] = v
## the condition of a loop
i = 0
while i < 8 and (v := a[i]) != 5:
    out[i] = v + 1
    i += 1
## left by a break
for i in range(12):
    if not (i < 6 and (v := a[i]) > -9):
        break
    out[i] = v
## the other branch
for i in range(8):
    if i < 3 or (v := a[i]) > 4:
        out[i] = 1
    else:
        out[i] = v
## an elif
for i in range(8):
    if a[i] > 6:
        out[i] = 9
    elif i > 2 and (v := a[i] * 2) > 3:
        out[i] = v
## any of an iterator that is not used again
it = iter([n, m, 3])
out[0] = any(v > 2 for v in it)
out[1] = n in iter((1, 3))
t = [n, m]
out[2] = bool(any(t)) + bool(all(t))
## chains of comparisons
x = 1
y = 0 < n < (x := m)
out[0] = x
out[1] = y
z = n < (x := m + 1) < (x := 6)
out[2] = x
## any and all stop at the first item that decides
x = any((y := v) > 2 for v in [n, m, 4])
out[0] = y
z = all((w := v) > 2 for v in [n, m, n + m, 9])
out[1] = w
out[2] = x
out[3] = z
x = any((y := v) > 3 for v in (n, m, 3))
out[4] = y
out[5] = x
## a name bound in the condition of a conditional expression
out[0] = v if n > 1 and (v := a[n % 8]) > 0 else m
out[1] = m if not (n > 1 and (v := a[n % 8]) > 0) else v
## inside an operand that is itself under a condition
x, y = 1, 2
z = n > 1 and (m > 2 and (x := n) > 2 or (y := m) > 3)
out[0] = x * 100 + y
## a literal and a device value
x = 0
y = n > 2 and (x := n)
x = x + 1
out[0] = x
## literals beyond 32 bits, and a bool with a number
x = 2 ** 40 if n > 2 else 5
out[0] = x % 1000
z = n > 3
y = m > 2 and (z := 2)
out[1] = z
w = 1
y = m > 2 and (w := 2 ** 40)
out[2] = w % 1000
## another type in between, which both branches replace
x = n + 0
if m > 2:
    if (x := (not x)) if a[2] > 9 else m:
        x = n + 0
    else:
        x = m + 0
    if n > 1:
        x = (3 if not x else m) + 0
out[0] = x
## deleted in between
x = n + 0
if m > 2:
    del x
    if a[2] > n:
        x = n + 1
    else:
        x = m + 0
    if n > 1:
        x = (3 if not x else m) + 0
out[0] = x
## two loops
x = 0
for i in range(3):
    for j in range(3):
        if i != j and (x := x + i * j) > 2:
            out[i] = x
    out[3 + i] = x
## a value that a store changes later
if n > 0 and (v := out[0]) == 0:
    out[0] = 5
    out[1] = v
## the target of an augmented assignment
out[0] += (x := n) if n > 2 else (x := m)
out[1] += x
"""
REFUSED = """
## read where the operand may not have run
if n > 3 and (v := a[0]) > 0:
    out[0] = v
out[1] = v  #: TL130
## read in the other branch
if n > 3 and (v := a[0]) > 0:
    out[0] = 1
else:
    out[0] = v  #: TL130
## read behind an alternative
y = n > 3 or (v := m)
out[0] = v  #: TL130
## an object
t = [1]
y = n > 3 and (t := 5)
out[0] = t  #: TL133
## another type
x = f[0]
y = n > 3 and (x := m)
out[0] = x  #: TL132
## what any has left of an iterator
it = iter([n, m, 3, 4])
x = any(v > 2 for v in it)
out[0] = next(it)  #: TL133
## what all has left of a generator
g = (v for v in (n, m, 3))
x = all(g)
out[0] = sum(g)  #: TL133
## what a look-up has left of it
it = iter([1, 2, 3])
x = n in it
for v in it:  #: TL133
    out[v] = 1
## what is left of it below another
it = iter([n, m, 3])
x = any(map(abs, it))
y = any(map(abs, it))  #: TL133
## another type, read behind more conditions
y = n > 3
for i in range(3):
    if a[i] > 0 and (y := m) > 2 and (y := y + 1) > 3:
        out[i] = 1
    out[i] = y  #: TL132
## another type, in the condition of a loop, over a number that changes
y = m
for i in range(3):
    y = y % 7
    c = 0
    while c < 3 and (y := (not n)):  #: TL132
        c += 1
out[1] += y
## carried over the iterations of a parallel loop
x = 0
for i in T.Parallel(8):
    out[i] = a[i] > 0 and (x := x + 1) > 1  #: TL134
"""


@pytest.mark.parametrize("title", titled(LIKE_PYTHON))
@pytest.mark.parametrize(("n", "m"), [(0, 0), (1, 7), (2, 3), (3, 1), (5, 4), (9, -2)])
def test_what_a_name_holds_behind_a_condition_is_what_python_gives(title: str, n: int, m: int) -> None:
    body = titled(LIKE_PYTHON)[title]
    cell = run_cell(kernel(body))
    a = np.array([3, -1, 4, 1, 5, 9, 2, -6], np.int32)
    out, expected = np.zeros(12, np.int32), np.zeros(12, np.int32)
    cell.run(a.copy(), out, np.zeros(8, np.float32), n, m)
    exec(body, {"a": a.astype(object), "out": expected, "n": n, "m": m})
    np.testing.assert_array_equal(out, expected)


def test_a_macro_in_an_operand_binds_names_of_its_own() -> None:
    before = "@T.macro\ndef twice(v):\n    return (y := v + 1) * 2 + y\n"
    cell = run_cell(kernel("y = 5\nx = n > 3 and twice(n)\nout[0] = x\nout[1] = y", before=before))
    for n, wanted in ((1, [0, 5]), (4, [15, 5])):
        out = np.zeros(8, np.int32)
        cell.run(np.zeros(8, np.int32), out, np.zeros(8, np.float32), n, 0)
        assert list(out[:2]) == wanted


@pytest.mark.parametrize("title", titled(REFUSED))
def test_what_may_not_be_bound_is_refused_where_it_is_read(title: str) -> None:
    text = kernel(titled(REFUSED)[title])
    lines = enumerate(text.splitlines(), 1)
    wanted = [(code, number) for number, line in lines for code in line.partition("#: ")[2].split()]
    assert run_cell(text).errors == wanted


def test_nothing_is_read_outside_of_its_condition() -> None:
    body = "for i in range(12):\n    if i < 8 and (v := a[i]) > 0 and (w := v + a[i]) > 0:\n        out[0] = v + w"
    function = run_cell(kernel(body)).kernels["k"].function
    bound = [line for line in str(function.script()).split("\n") if "a[i]" in line]
    assert bound and all("if_then_else(i < 8" in line for line in bound), bound


@pytest.mark.parametrize(("n", "m", "wanted"), [(1, 2, 7), (3, 5, 10), (5, 1, 7)])
def test_a_branch_around_launches_sees_what_its_condition_bound(n: int, m: int, wanted: int) -> None:
    launch = "with T.Kernel(1, threads=1):"
    body = f"    if n > 2 and (v := m * 2) > 3:\n        {launch}\n            out[0] = v\n"
    body += f"    else:\n        {launch}\n            out[0] = 7\n"
    cell = run_cell(
        f'import tilelang.language as T\n@T.prim_func\ndef k(out: T.Tensor((8,), "int32"), n: T.int32, m: T.int32):\n{body}'
    )
    out = np.zeros(8, np.int32)
    cell.run(out, n, m)
    assert out[0] == wanted
