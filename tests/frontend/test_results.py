"""What kernels compute: traps in names, evaluation order, control flow and macros, against Python's own results."""

from __future__ import annotations

import numpy as np
import pytest
from frontend.cells import HEAD, kernel, run_cell, titled

import tilelang_nb

A = (2, 0, 1, 5, 3, 1, 4, 7)
INPUTS = ((3, 5), (0, 1), (4, 2), (1, 0))


def arrays() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return np.array(A, np.int32), np.arange(8, dtype=np.int32), np.linspace(-2, 2, 8).astype(np.float32)


BODIES = titled("""
## a name read after it was re-bound in a branch
x = 1
if n > 3:
    x = 2
out[0] = x
## a swap reads both sides first
x, y = n, m
x, y = y, x
out[0] = x * 10 + y
## a swap of elements
out[0], out[1] = out[1], out[0]
## a load kept in a list keeps its value
t = [out[0], out[1]]
out[0] = 9
out[2] = t[0] + t[1]
## a load passed through a tuple of targets
x, y = out[3], out[4]
out[3] = 0
out[5] = x + y
## an alias of a promoted name keeps the old value
x = 1
y = x
for i in range(n):
    x = x + i
    y = y + x
out[0] = x
out[1] = y
## a lambda sees later bindings
x = 1
g = lambda v: v + x
x = n
out[0] = g(2)
## a default argument sees the binding at its definition
x = 1
g = lambda v, w=x: v + w
x = n
out[0] = g(2)
## a generator is lazy
base = 1
g = (base + v for v in (0, 10))
base = n
for at, v in enumerate(g):
    out[at] = v
## a walrus binds
if (x := n + 1) > 3:
    out[0] = x
out[1] = x
## a walrus in a comprehension binds outside
t = [last := v for v in (1, 2, 3)]
out[0] = last + len(t)
## augmented assignment of a list changes aliases
t = [1]
u = t
t += [2]
out[0] = len(u)
## augmented assignment evaluates its index once
x = 0
out[a[0]] += 5
out[a[1]] -= n
## the old value is read before the operand
x = 1
x += (x := 5)
out[0] = x
## and and or have Python's values
out[0] = n and m
out[1] = n or m
out[2] = (n > 2) and 7 or 9
## chains evaluate the middle once
out[0] = 1 if 0 < n < m else 0
out[1] = int(1 < 2 < 3)
## in and not in
out[0] = int(n in (1, 3, m))
out[1] = int(n not in [4])
out[2] = int(3 in (1, 3))
## is None is compile-time
out[0] = 1 if None is None else 2
out[1] = 1 if n is None else 2
out[2] = int(n is not None)
## break keeps what was bound before it
x = 0
for i in range(5):
    if a[i] > 2:
        x = i
        break
    else:
        x = 50
out[0] = x
## continue keeps what was bound before it
x = 0
for i in range(5):
    if a[i] > 1:
        x = x + i
        continue
    out[i] = x
out[6] = x
## a while with a compound condition
i = 0
while i < n and a[i] < 4:
    i += 1
out[0] = i
## a while whose condition is constant at first
i = 0
while i < 4:
    i += 1
out[0] = i
## nested loops carry one name
s = 0
for i in range(3):
    for j in range(i):
        s += j + 1
    s += 10
out[0] = s
## a name is a counter and then a list index
i = 0
while i < n:
    i += 1
out[1] = i
i = 1
out[0] = [5, 6, 7][i]
## code after a conditional continue is the other branch
for i in range(6):
    if a[i] == 1:
        continue
    x = a[i]
    out[i] = x + 1
## both branches bind a name
if n > m:
    z = 30
else:
    z = 40
out[0] = z
## both branches bind a name in a loop
for i in range(4):
    if a[i] > n:
        z = i
    else:
        z = m
    out[i] = z
## deleting and binding again
x = 1
del x
x = n
out[0] = x
## compile-time loops over everything
for i, v in enumerate([n, 3]):
    out[i] = v
for i, c in zip((2, 3), 'ab'):
    out[i] = ord(c)
for v in reversed([4, 5]):
    out[v] = v * n
for k, v in {6: 1, 7: 2}.items():
    out[k] = v
## break of a compile-time loop
for v in [0, 1, 2, 3]:
    if v == 2:
        break
    out[v] = 9
out[7] = v
## range in every form
for i in range(2, 8, 3):
    out[i] = 50
for i in range(6, -1, -3):
    out[i] += 7
for i in range(n, 0, -1):
    out[i] += 1
r = range(0, 8, 4)
for i in r:
    out[i] += 100
## an alias of range
turns = range
for i in turns(n):
    out[i] = 3
## match on compile-time values
match (1, [2, 3]):
    case (1, [p, *rest]):
        out[0] = p + len(rest)
match {'k': 5}:
    case {'k': v, **more}:
        out[1] = v
match 'x':
    case 'y' | 'x' if len('ab') == 2:
        out[2] = 8
## min, max, abs, sum, round
out[0] = min(n, m, 2)
out[1] = max(n, m)
out[2] = abs(n - m)
out[3] = sum(a[i] for i in range(4))
out[4] = sum([n, m], 10)
out[5] = max([n, 2])
out[6] = int(any(v > n for v in (1, 4)))
out[7] = int(all([n, m]))
## integer arithmetic floors
x = n - m
out[0] = x // 3
out[1] = x % 3
out[2] = x // -3
out[3] = x % -3
out[4] = -x // 2
out[5] = divmod(x, 4)[1]
## bit operations and powers
out[0] = (n << 2 | m) & 13 ^ 6
out[1] = ~n
out[2] = n ** 3 + 2 ** 5
out[3] = n >> 1
out[4] = +n
## numpy scalars are numbers
import_free = 3
out[0] = import_free
## a ternary does not evaluate the other side
out[0] = a[n] if n < 8 else a[n + 100]
out[1] = 1 if len(out_shape) == 1 else nope
## while with break and else-free flag
found = 0
i = 0
while True:
    if i >= 8:
        break
    if a[i] == n:
        found = i + 1
        break
    i += 1
out[0] = found
## a negative constant index
out[-1] = a[-2]
## an f-string and a helper
out[0] = int(f'{3}{4}')
out[1] = twice(n) + twice(2)
## star targets
first, *middle, last = 1, n, m, 4
out[0] = first + last
out[1] = middle[0] * 10 + middle[1]
## star arguments
t = [n, 2]
out[0] = max(*t)
d = dict(v=n)
out[1] = twice(**d)
## dict and set comprehensions
d = {p: p * n for p in range(3)}
out[0] = d[2]
s = {p % 2 for p in range(5)}
out[1] = len(s)
## nested comprehensions with conditions
t = [p * 10 + q for p in range(3) for q in range(p + 1) if q != 1]
out[0] = sum(t)
u = [[v + n for v in range(w)] for w in (1, 2)]
out[1] = u[1][1]
""")
HELPERS = "def twice(v):\n    return v * 2\nout_shape = (8,)\n"


@pytest.mark.parametrize("title", BODIES)
def test_a_kernel_computes_what_python_computes(title: str) -> None:
    body = BODIES[title]
    cell = run_cell(kernel(body, before=HELPERS))
    lines = "\n".join("    " + line for line in body.split("\n"))
    namespace: dict = {}
    exec(f"{HELPERS}def k(a, out, n, m):\n{lines}\n", namespace)
    for n, m in INPUTS:
        a, out, f = arrays()
        wanted = [int(v) for v in out]
        namespace["k"]([int(v) for v in a], wanted, n, m)
        cell.run(a, out, f, n, m)
        assert out.tolist() == wanted, (n, m)


MACROS = """@T.macro
def bump(v: T.Ref, by=1):
    v = v + by

@T.macro
def both(v, *, k=3):
    y = v + k
    return y, y * 2

@T.macro
def climb(v, depth):
    if depth == 0:
        return v
    return climb(v + depth, depth - 1)

@T.macro
def first_above(buf, limit):
    found = -1
    for i in range(8):
        if buf[i] > limit:
            found = i
            break
    return found

@T.macro
def many(*values, **named):
    return values[0] + len(values) + named["z"]

class Tools:
    @T.macro
    def add(self, v):
        return v + 1
tools = Tools()

@T.macro
def fill(buf, v):
    for i in range(4):
        buf[i] = v

"""
MACRO_BODIES = {
    "x = n\nbump(x)\nbump(x, by=5)\nout[0] = x": lambda a, out, n, m: {0: n + 6},
    "x = 0\nfor i in range(n):\n    bump(x, 2)\nout[0] = x": lambda a, out, n, m: {0: 2 * n},
    "x = n\nif m > 1:\n    bump(x)\nout[0] = x": lambda a, out, n, m: {0: n + (m > 1)},
    "bump(out[n], 7)": lambda a, out, n, m: {n: int(out[n]) + 7},
    "c = T.alloc_var('int32', init=40)\nbump(c, 2)\nout[0] = c": lambda a, out, n, m: {0: 42},
    "p, q = both(n)\nr, s = both(v=n, k=m)\nout[0] = p + q\nout[1] = r * 100 + s": lambda a, out, n, m: {
        0: 3 * (n + 3),
        1: 102 * (n + m),
    },
    "out[0] = climb(n, 4)": lambda a, out, n, m: {0: n + 10},
    "out[0] = first_above(a, n) * 10 + first_above(a, m)": lambda a, out, n, m: {
        0: next((i for i, v in enumerate(A) if v > n), -1) * 10 + next((i for i, v in enumerate(A) if v > m), -1)
    },
    "out[0] = many(n, m, z=5)": lambda a, out, n, m: {0: n + 7},
    "out[0] = tools.add(n)": lambda a, out, n, m: {0: n + 1},
    "x = out[1]\nfill(out, 9)\nout[5] = x": lambda a, out, n, m: {0: 9, 1: 9, 2: 9, 3: 9, 5: int(out[1])},
    "for i in T.Parallel(8):\n    x = a[i]\n    bump(x)\n    out[i] = x": lambda a, out, n, m: {
        i: v + 1 for i, v in enumerate(A)
    },
}


@pytest.mark.parametrize("body", MACRO_BODIES)
def test_macros_are_inlined_with_arguments_by_value_and_references(body: str) -> None:
    cell = run_cell(kernel(body, before=MACROS))
    for n, m in INPUTS:
        a, out, f = arrays()
        wanted = out.copy()
        for place, value in MACRO_BODIES[body](a, out, n, m).items():
            wanted[place] = value
        cell.run(a, out, f, n, m)
        assert out.tolist() == wanted.tolist(), (n, m)


FLOATS = {
    "out": ("float32", "f[i] // 0.75", lambda f: f // np.float32(0.75)),
    "modulo": ("float32", "f[i] % 0.75", lambda f: f % np.float32(0.75)),
    "power": ("float32", "f[i] ** 3", lambda f: f**3),
    "negative": ("float32", "-f[i]", lambda f: -f),
    "weak": ("float32", "f[i] * 2 + 0.1", lambda f: f * np.float32(2) + np.float32(0.1)),
    "round": ("float32", "round(f[i] * 1.75)", lambda f: np.rint(f * np.float32(1.75))),
    "condition": ("float32", "1.0 if f[i] else 2.0", lambda f: np.where(f != 0, 1, 2)),
    "truth": ("float32", "float(bool(f[i]))", lambda f: (f != 0).astype(np.float32)),
    "whole": ("float32", "float(int(f[i]))", np.trunc),
}


@pytest.mark.parametrize("name", FLOATS)
def test_float_arithmetic_is_numpy_s(name: str) -> None:
    _, expression, reference = FLOATS[name]
    parameters = 'f: T.Tensor((8,), "float32"), out: T.Tensor((8,), "float32")'
    cell = run_cell(kernel(f"for i in T.Parallel(8):\n    out[i] = {expression}", parameters))
    f, out = np.array([-2.5, -1.0, -0.25, 0.0, 0.4, 0.75, 1.5, 3.25], np.float32), np.zeros(8, np.float32)
    cell.run(f, out)
    np.testing.assert_allclose(out, reference(f), rtol=1e-6)


HOST = '@T.prim_func\ndef k(a: T.Tensor((8,), "int32"), out: T.Tensor((8,), "int32"), n: T.int32, m: T.int32):\n'


def host(body: str) -> str:
    return HEAD + HOST + "\n".join("    " + line for line in body.strip("\n").split("\n")) + "\n"


def test_a_runtime_if_around_launches_goes_inside_them_and_chooses_numbers() -> None:
    cell = run_cell(
        host("""
x = n + 1
if n > 2:
    x = m
    with T.Kernel(2, threads=1) as bx:
        out[bx] = x + 10
else:
    x = 7
with T.Kernel(3, threads=1) as bx:
    out[bx + 4] = x
""")
    )
    for n, m in INPUTS:
        out = np.zeros(8, np.int32)
        cell.run(np.array(A, np.int32), out, n, m)
        x = m if n > 2 else 7
        first = [m + 10] * 2 if n > 2 else [0, 0]
        assert out.tolist() == [*first, 0, 0, x, x, x, 0]


def test_launches_follow_one_another_and_compile_time_loops_expand_them() -> None:
    cell = run_cell(
        host("""
for step in (1, 2):
    with T.Kernel(4, threads=1) as bx:
        out[bx] = out[bx] + a[bx] * step
with T.Kernel(1, threads=1):
    out[7] = out[0] + step
""")
    )
    out = np.zeros(8, np.int32)
    cell.run(np.array(A, np.int32), out, 0, 0)
    assert out.tolist() == [6, 0, 3, 15, 0, 0, 0, 8]


def test_loops_bound_to_thread_axes_make_a_launch() -> None:
    body = 'for bx in T.thread_binding(2, "blockIdx.x"):\n    for tx in T.thread_binding(4, "threadIdx.x"):\n        out[bx * 4 + tx] = bx * 10 + tx'
    out = np.zeros(8, np.int32)
    run_cell(host(body)).run(np.array(A, np.int32), out, 0, 0)
    assert out.tolist() == [0, 1, 2, 3, 10, 11, 12, 13]


def test_persistent_loops_visit_every_tile_once() -> None:
    body = "with T.Kernel(3, threads=1) as bx:\n    for i, j in T.Persistent([3, n], 3, bx, group_size=2):\n        out[i * n + j] += 1"
    parameters = HOST.replace("(8,)", "(64,)")
    source = HEAD + parameters + "\n".join("    " + line for line in body.split("\n")) + "\n"
    for n in (1, 2, 5, 8):
        out = np.zeros(64, np.int32)
        run_cell(source).run(np.zeros(64, np.int32), out, n, 0)
        assert out.tolist() == [1] * (3 * n) + [0] * (64 - 3 * n)


def test_warp_groups_select_threads() -> None:
    body = (
        "with T.Kernel(1, threads=256):\n    tx = T.get_thread_binding(0)\n    with T.ws(1):\n        out[tx - 128] = 1"
    )
    parameters = HOST.replace("(8,)", "(128,)")
    source = HEAD + parameters + "\n".join("    " + line for line in body.split("\n")) + "\n"
    out = np.zeros(128, np.int32)
    run_cell(source).run(np.zeros(128, np.int32), out, 0, 0)
    assert out.tolist() == [1] * 128


OUTSIDE = {
    "out[0] = 1": "TL208",
    "x = a[0]": "TL208",
    "T.copy(a, out)": "TL208",
    's = T.alloc_shared((8,), "int32")': "TL208",
    "for i in range(3):\n    with T.Kernel(1):\n        out[0] = 1": "TL208",
    "while n > 3:\n    pass": "TL208",
    "with T.Kernel(1):\n    with T.Kernel(1):\n        out[0] = 1": "TL208",
    "with T.ws(0):\n    pass": "TL208",
    "with T.Kernel(a[0]):\n    pass": "TL208",
    "if a[0] > 1:\n    pass": "TL208",
    "if n > 1:\n    return": "TL121",
}


@pytest.mark.parametrize("body", OUTSIDE)
def test_what_needs_threads_is_refused_outside_a_launch(body: str) -> None:
    assert [code for code, _ in run_cell(host(body)).errors] == [OUTSIDE[body]]


def test_values_of_a_launch_are_gone_after_it_and_python_objects_are_not() -> None:
    body = "with T.Kernel(1, threads=1):\n    y = n + 1\n    z = 5\nwith T.Kernel(1, threads=1):\n    out[0] = z\n    out[1] = y"
    assert run_cell(host(body)).errors == [("TL130", 9)]


@pytest.mark.parametrize(
    "body",
    [
        "x = 1e300\nif n > 2:\n    x = 2e300\nd[0] = x",
        "d[0] = 1e300 if n > 2 else 2.0",
        "x = 1e-300 if n > 2 else 2.0\nd[0] = x",
        "x = 1e200\nfor i in range(2):\n    x = x * 1e50\nd[0] = x",
        "x = 1.0\ny = n > 2 and (x := 1e300)\nd[0] = x",
        "d[0] = n * 1e300",
        "x = T.if_then_else(n > 2, 1e-300, 2.0)\nd[0] = x",
    ],
)
@pytest.mark.parametrize("n", [1, 5])
def test_a_literal_beyond_float32_keeps_its_range_under_a_condition(body: str, n: int) -> None:
    cell = run_cell(kernel(body, parameters='d: T.Tensor((4,), "float64"), n: T.int32'))
    d, expected = np.zeros(4), [0.0] * 4
    cell.run(d, n)
    python = body.replace("T.if_then_else(n > 2, 1e-300, 2.0)", "1e-300 if n > 2 else 2.0")
    exec(python, {"d": expected, "n": n})
    np.testing.assert_allclose(d, expected, rtol=1e-6, atol=0)


def test_a_thread_binding_that_is_assigned_is_the_index_along_its_axis() -> None:
    cell = tilelang_nb.compile_cell(
        """
import numpy as np
@T.prim_func
def k(B: T.Tensor((4, 64), "int32")):
    with T.Kernel(2, threads=(32, 2)) as bx:
        tx = T.thread_binding(0, 32, thread="threadIdx.x")
        ty = T.thread_binding(0, 2, "threadIdx.y")
        block = T.thread_binding(2, thread="blockIdx.x")
        B[block * 2 + ty, tx] = tx + ty * 100 + bx * 1000

B = np.zeros((4, 64), "int32")
k(B)
B
""",
        target="sim",
    )
    assert cell.ok, cell.to_text()
    rows = np.arange(4)[:, None]
    wanted = np.arange(64) + rows % 2 * 100 + rows // 2 * 1000
    assert np.array_equal(cell.result, np.where(np.arange(64) < 32, wanted, 0))


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('T.thread_binding(0, 64, thread="threadIdx.x")', "write 32"),
        ('T.thread_binding(0, 64, thread="threadIdx.z")', "give its extent to `T.Kernel`"),
    ],
)
def test_a_thread_binding_of_another_extent_is_refused(line: str, said: str) -> None:
    text = f'@T.prim_func\ndef k(B: T.Tensor((4,), "int32")):\n    with T.Kernel(2, threads=32):\n        t = {line}\n'
    (found,) = tilelang_nb.compile_cell(text).diagnostics
    assert found.code == "TL208" and said in found.help and found.span is not None and found.span.line == 4
    outside = text.replace("    with T.Kernel(2, threads=32):\n    ", "")
    (found,) = tilelang_nb.compile_cell(outside).diagnostics
    assert found.code == "TL208" and "inside a launch" in found.help
