"""Names: binding, re-binding under runtime control flow, what cannot keep Python's meaning, and stores."""

from __future__ import annotations

import re

import numpy as np
import pytest
from specification.cells import (
    cell,
    compiled,
    computes,
    emits,
    kernel,
    launched,
    like_python,
    refuses,
    refuses_cell,
    said,
)

import tilelang_nb
from tilelang_nb.frontend.static import check_text


def test_an_assignment_binds_a_name() -> None:
    """P31, 3.1: To a device value, a compile-time value, a buffer."""
    like_python("x = a[3] + n\nlimit = 4\nsource = a\nfor i in range(limit):\n    out[i] = source[i] + x")


def test_binding_again_in_straight_line_code_makes_a_new_value() -> None:
    """3.1: What was read before keeps its value, and the type may change."""
    like_python("x = n\ny = x\nx = x + 1\nout[0] = x * 10 + y\nx = f[1]\nres[0] = x\nx = [1, 2]\nout[1] = len(x)")


REBOUND = {
    "if without else": "x = 1\nif n > 3:\n    x = 2\nout[0] = x",
    "both branches": "if n > 2:\n    x = n\nelse:\n    x = m + 1\nout[0] = x",
    "elif": "x = 0\nif n > 3:\n    x = 5\nelif n > 2:\n    x = 6\nout[0] = x",
    "an operand of the condition": "x = n\nif x > 2:\n    x = x * 10\nif x > 20:\n    x += 1\nout[0] = x",
    "for": "x = 1\nfor i in range(n):\n    x = x * 2 + i\nout[0] = x",
    "for with if": "best = a[0]\nfor i in range(8):\n    if a[i] > best:\n        best = a[i]\nout[0] = best",
    "while": "i = 0\nt = 0\nwhile i < m:\n    i += 1\n    t = t + i * n\nout[0] = t\nout[1] = i",
    "nested": "x = 0\nfor i in range(n):\n    for j in range(i):\n        if j != 1:\n            x += 10 * i + j\nout[0] = x",
    "swap in a loop": "x = 0\ny = 1\nfor i in range(m):\n    x, y = y, x + y\nout[0] = x\nout[1] = y",
    "break": "x = 0\nfor i in range(8):\n    if a[i] == 5:\n        break\n    x = i\nout[0] = x",
    "an alias keeps the old value": "x = n\ny = x\nif m > 2:\n    x = 100\nout[0] = x\nout[1] = y",
    "in a compile-time loop": "x = 0\nfor j in [1, 2, 3]:\n    if n > j:\n        x = j\n    out[j] = x",
    "a parameter": "if m > 2:\n    n = n + 10\nout[0] = n",
    "read on the next turn": "x = 7\nfor i in range(m):\n    out[i] = x\n    x = i",
}


@pytest.mark.parametrize("how", REBOUND)
def test_rebinding_under_runtime_control_flow_keeps_pythons_meaning(how: str) -> None:
    """3.2: Bound outside and re-bound inside, or bound on both branches and used after."""
    like_python(REBOUND[how])


def test_what_is_bound_before_the_launch_is_rebound_for_each_thread() -> None:
    """3.2: Parameters too, under conditions without `else`, in loops, and nested."""
    text = """
@T.prim_func
def k(out: T.Tensor((8,), "int32"), n: T.int32, m: T.int32):
    x = 7
    y = n * 2
    with T.Kernel(1, threads=4):
        t = T.get_thread_binding()
        if t > 1:
            if n > 2:
                x = t
        for i in range(t):
            y += i
            if i == m:
                n = i
        out[t] = x * 100 + y
        out[t + 4] = n
"""
    k = compiled(text).kernels["k"]
    for n, m in ((3, 1), (0, 2)):
        expected = []
        for t in range(4):
            after = [n if t <= m else m]
            expected.append((t if t > 1 and n > 2 else 7) * 100 + n * 2 + sum(range(t)))
            expected += after
        out = np.zeros(8, np.int32)
        k(out, n, m)
        assert out.tolist() == expected[::2] + expected[1::2]


def test_a_rebound_name_becomes_one_scalar_of_the_thread() -> None:
    """3.2: Each thread has its own."""
    body = "t = T.get_thread_binding()\nx = 0\nif t > 3:\n    x = t\nfor i in range(t):\n    x += 1\nout[t] = x"
    computes(body, threads=8, out=[t + (t if t > 3 else 0) for t in range(8)])


def test_the_examples_of_rebinding_give_the_values_of_python() -> None:
    """3.3: `x = 1 / if`, `acc += B[i]`, `i += 1` in a `while`."""
    like_python("""
x = 1
if n > 3: x = 2
acc = 0.0
for i in range(n): acc += f[i]
i = 0
while i < n: i += 1
out[0] = x
out[1] = i
res[0] = acc
""")


def test_a_literal_is_weak() -> None:
    """3.4: `0` joins with float32 to float32, also when it comes second."""
    like_python(
        "x = 0\nfor i in range(3):\n    x = x + f[i]\nres[0] = x\ny = f[1]\nif n > 3:\n    y = 2\nres[1] = y / 4"
    )


def test_two_strong_types_are_refused_by_name() -> None:
    """3.5: At the second binding."""
    made = refuses("x = n + 1\nif n > 3:\n    x = f[0]  #!\nout[0] = x", ("TL132", "x", "T.cast"))
    assert all(word in said(made)[0] for word in ("int32", "float32", "`x`"))


def test_a_weak_float_and_a_strong_int_on_two_branches_are_refused() -> None:
    """9.25: TL132, in either order of the branches."""
    for first, second in (("0.5", "n"), ("n", "0.5")):
        body = f"if m > 3:\n    x = {first}\nelse:\n    x = {second}  #!\nres[0] = x"
        refuses(body, ("TL132", "x", "T.cast"))


OBJECTS_CHANGED = {
    "list appended in a loop": ("t = []\nfor i in range(n):\n    t.append(i)  #!", "t.append(i)"),
    "list element under an if": ("t = [1]\nif n > 2:\n    t[0] = 2  #!", "t[0]"),
    "dict element in a while": ("d = {}\nwhile out[0] < n:\n    d[1] = 2  #!\n    out[0] += 1", "d[1]"),
    "set in a parallel loop": ("s = {1}\nfor i in T.Parallel(4):\n    s.add(2)  #!", "s.add(2)"),
    "list changed in place": ("t = [1]\nif n > 2:\n    t += [2]  #!\nout[0] = t[0]", "t"),
    "str re-bound": ("s = 'a'\nif n > 2:\n    s = 'b'  #!\nout[0] = ord(s)", "s"),
    "buffer re-bound": ("b = f\nif n > 2:\n    b = res  #!\nb[0] = 1.0", "b"),
    "list re-bound in a loop": ("t = [1]\nfor i in range(n):\n    t = t + [2]  #!\nout[0] = t[0]", "t"),
    "list on both branches": ("if n > 2:\n    t = [1]  #!\nelse:\n    t = [2, 3]\nout[0] = t[0]", "t"),
}


@pytest.mark.parametrize("how", OBJECTS_CHANGED)
def test_a_compile_time_object_changed_at_run_time_is_refused(how: str) -> None:
    """3.6: Lists, dicts, sets, strings and buffers, under runtime conditions and in device loops."""
    body, at = OBJECTS_CHANGED[how]
    refuses(body, ("TL133", at, "buffer"))


def test_a_compile_time_object_may_change_where_nothing_depends_on_the_run() -> None:
    """3.6: In straight-line code, in compile-time loops, and one made by the turn itself."""
    like_python("""
t = []
for j in [1, 2, 3]:
    t.append(j * n)
out[0] = t[2] + len(t)
for i in range(n):
    mine = [i]
    mine.append(2)
    out[i + 1] = mine[0] + mine[1]
""")


def test_a_name_bound_on_one_path_only_and_used_after_is_refused() -> None:
    """3.7, 3.9: After an `if`, a `for` and a `while`; at the use."""
    refuses(
        """
if n > 3:
    x = 1
out[0] = x  #!
if n > 3:
    pass
else:
    y = 1
out[1] = y + 1  #!
for i in range(n):
    z = i
out[2] = z  #!
while out[3] < n:
    w = n
    out[3] += w
out[4] = w  #!
""",
        *(("TL130", name, "before") for name in "xyzw"),
    )


def test_a_value_bound_in_a_device_loop_is_local_to_it() -> None:
    """3.9: It may be bound anew on every turn, and again after the loop."""
    like_python("for i in range(n):\n    y = a[i] * 2\n    out[i] = y\ny = m\nout[7] = y")


def test_accumulation_over_parallel_iterations_is_refused() -> None:
    """3.8: The help names the three ways to write it."""
    body = "acc = 0.0\nfor i in T.Parallel(8):\n    acc += f[i]  #!\nres[0] = acc"
    made = refuses(body, ("TL134", "acc += f[i]", "T.reduce_sum"), threads=8)
    text = made.to_text()
    assert "T.atomic_add" in text and "T.alloc_reducer" in text


def test_a_maximum_over_parallel_iterations_is_refused_too() -> None:
    """3.8: Whatever carries the scalar from one iteration to another."""
    body = "best = 0\nfor i in T.Parallel(8):\n    if a[i] > best:\n        best = a[i]  #!\nout[0] = best"
    refuses(body, ("TL134", "best", "reduce"), threads=8)


@pytest.mark.parametrize(
    ("statement", "fix"),
    [
        ("x = y = a[0]", "write `x = a[0]` and `y = x`"),
        ("x = y = z = n", "`y = x`"),
        ("x = out[0] = n + 1", "`x = n + 1`"),
        ("(x, y) = z = (n, m)", "`(x, y) = "),
    ],
)
def test_chained_assignment_is_refused_with_the_separate_assignments(statement: str, fix: str) -> None:
    """P34, 3.10: Written out."""
    refuses(f"{statement}  #!", ("TL101", statement, fix))


def test_chained_assignment_of_names_before_the_launch_is_that_of_python() -> None:
    """P34: It speaks of the kernel part; what stands before the launch is Python of the host."""
    made = tilelang_nb.compile_cell(
        """
import numpy as np
@T.prim_func
def k(a: T.Tensor((4,), "int32"), n: T.int32):
    p = q = [3]
    q.append(4)
    x = y = n + p[1]
    with T.Kernel(1, threads=1):
        a[0], a[1], a[2] = x, y, len(p)

@jit
def eager(a, size: int = 4):
    p = q = size * 2
    a: T.Tensor[[size], T.int32]
    with T.Kernel(1, threads=1):
        a[0], a[1] = p, q

a, b = np.zeros(4, "int32"), np.zeros(4, "int32")
k(a, 5)
eager(b)
a.tolist(), b.tolist()
""",
        target="sim",
    )
    assert made.ok, made.to_text()
    assert made.result == ([9, 9, 2, 0], [8, 8, 0, 0])


@pytest.mark.parametrize(
    "text",
    [
        "import tilelang.language as T\nfrom tilelang import jit\n@jit\ndef k(a):\n    p = q = 3\n"
        "    a: T.Tensor[[4], T.int32]\n    with T.Kernel(1):\n        x = y = a[0]\n",
        "import tilelang.language as T\ndef make(n):\n    @T.prim_func\n    def k(a: T.Tensor((n,), 'int32')):\n"
        "        p = q = 3\n        with T.Kernel(1):\n            x = y = a[0]\n    return k\n",
    ],
)
def test_chained_assignment_in_a_launch_is_found_in_the_text_alone(text: str) -> None:
    """P34, 3.10: Without building."""
    assert [(one.code, one.span.line) for one in check_text(text) if one.span] == [
        ("TL101", text.count("\n") - ("return" in text))
    ]


AUGMENTED = ["+= 3", "-= 4", "*= 3", "//= 2", "%= 3", "<<= 2", ">>= 1", "&= 6", "|= 9", "^= 5", "**= 2"]


@pytest.mark.parametrize("operation", AUGMENTED)
def test_augmented_assignment_works_on_names_and_elements(operation: str) -> None:
    """P33, 3.11, 3.12: On values, on variables, on elements with one index or a device value as index."""
    like_python(f"""
x = n + 0
x {operation}
out[0] = x
y = m
for i in range(2):
    y {operation}
out[1] = y
out[2] = n
out[2] {operation}
a[n] {operation}
""")


def test_augmented_assignment_works_on_elements_of_matrices_and_on_floats() -> None:
    """3.12: `B[i, j] op= e`, `/=` of floats."""
    text = cell("M[1, n] += 5\nM[n - 2, 0] *= 3\nG[0, 1] /= 4", parameters='M: T.Tensor((2, 4), "int32"), G: T.Tensor((1, 2), "float32"), n: T.int32')  # fmt: skip
    M, G = np.arange(8, dtype=np.int32).reshape(2, 4), np.ones((1, 2), np.float32)
    compiled(text).kernels["k"](M, G, 3)
    assert M.tolist() == [[0, 1, 2, 3], [12, 5, 6, 12]] and G.tolist() == [[1.0, 0.25]]


def test_augmented_assignment_of_an_undefined_name_is_refused() -> None:
    """3.13: TL002 at the name."""
    refuses("total += n  #!\nB[0] += 1  #!", ("TL002", "total", "first"), ("TL002", "B", "first"))


def test_an_annotated_assignment_casts() -> None:
    """3.14: `x: T.float16 = e`, also of integers and constants; the name has the type from there on."""
    computes(
        "x: T.float16 = f[0] / 3\nres[0] = x\ny: T.int32 = f[1]\nout[0] = y\nz: T.float32 = n\nres[1] = z / 2\nw: T.uint8 = n - 4\nout[1] = w",
        out=[3, 255],
        res=[np.float16(np.float32(-2.5) / np.float32(3)), 1.5],
    )


TARGETS = {
    "swap": "x, y = n, m\nx, y = y, x\nout[0] = x * 10 + y",
    "three": "x, y, z = n, m, 1\nx, y, z = z, x, y\nout[0] = x * 100 + y * 10 + z",
    "nested": "(x, (y, z)), w = (n, [m, 1]), 2\nout[0] = x + y * 10 + z * 100 + w * 1000",
    "starred": "x, *rest = (n, m, 4, 5)\n*head, y = rest\nout[0] = x + rest[0] * 10 + len(head) * 100 + y * 1000",
    "elements": "out[0], out[1] = n, m\nout[0], out[1] = out[1], out[0]",
    "of a string": "x, y = 'ab'\nout[0] = ord(y) - ord(x)",
    "an element and its index": "i = 2\ni, a[i] = 4, n\nout[i] = i",
}


@pytest.mark.parametrize("how", TARGETS)
def test_tuple_targets_work_as_in_python(how: str) -> None:
    """3.15: Swaps, nested and starred targets of compile-time tuples."""
    like_python(TARGETS[how])


def test_a_wrong_number_of_tuple_targets_is_refused() -> None:
    """3.15: Said as Python says it, at the statement."""
    made = refuses("x, y = (n, m, 1)  #!\nx, y = n  #!", ("TL144", "x, y", "targets"), ("TL111", "x, y", "tuple"))
    assert "2 values to unpack, 3 given" in said(made)[0]


def test_a_name_keeps_its_own_name_in_the_program() -> None:
    """3.16: Parameters, loop variables, scalars and buffers; iterating over values renames nothing."""
    body = "tile = T.alloc_local((4,), 'int32')\ntotal = 0\nfor column in range(n):\n    total += column\n"
    body += "for v in [n, m]:\n    tile[0] = v\n    out[v] = tile[0] + total"
    script = kernel(body).script()
    for name in ("tile", "total", "column", "n", "m", "out"):
        assert re.search(rf"\b{name}\b", script), (name, script)


def test_names_may_be_used_again_for_new_variables() -> None:
    """3.17: Loop targets, values and `T.alloc_var` variables; each binding is a variable of its own."""
    computes(
        """
i = 5
out[0] = i
for i in range(2):
    out[i + 1] = i
for i in T.Parallel(1):
    out[3] = i + 40
i = T.alloc_var('int32', init=7)
i = i + n
out[4] = i
i = T.alloc_var('float32', init=0.5)
i = i * 3
res[0] = i
""",
        out=[5, 0, 1, 40, 10],
        res=[1.5],
    )


def test_storing_what_is_no_number_is_refused() -> None:
    """3.18, 9.23: None, a string, a list, a buffer, a type."""
    values = ["None", "'x'", "[1]", "(n, m)", "a", "{1: 2}", "int"]
    body = "\n".join(f"out[0] = {value}  #!" for value in values)
    made = refuses(body, *[("TL140", "out[0]", "number")] * len(values))
    assert [text.split(" is stored")[0] for text in said(made)[:3]] == ["`None`", "`'x'`", "a list"]


def test_a_float_constant_that_an_integer_buffer_would_change_is_refused() -> None:
    """3.19: TL135; one that is whole is stored."""
    refuses("out[0] = 2.5  #!\nout[1] = 1e30  #!\nout[2] = float('inf')  #!\nout[3] = float('nan')  #!",
            *(("TL135", f"out[{i}]", word) for i, word in enumerate(["`2`", "wider dtype", "dtype", "dtype"])))  # fmt: skip
    computes("out[0] = 2.0\nout[1] = -0.0\nout[2] = 4 / 2", out=[2, 0, 2])


def test_an_integer_constant_that_an_integer_buffer_cannot_hold_is_refused() -> None:
    """3.19: Nothing is stored but the value that the text says."""
    text = "small[0] = 300  #!\nsmall[1] = -1  #!\nsmall[2] = 255"
    refuses_cell(
        cell(text, parameters='small: T.Tensor((4,), "uint8")'),
        ("TL135", "small[0]", "0..255"),
        ("TL135", "small[1]", "0..255"),
    )


def test_float64_constants_keep_float64_range() -> None:
    """3.20: Also in arithmetic with float64 values."""
    text = cell("d[0] = 1e300\nd[1] = d[2] * 1e-300\nd[3] = 0.1", parameters='d: T.Tensor((4,), "float64")')
    d = np.array([0.0, 0.0, 1e301, 0.0])
    compiled(text).kernels["k"](d)
    np.testing.assert_array_equal(d, [1e300, 1e301 * 1e-300, 1e301, 0.1])


def test_a_weak_int_joins_bool_as_int32() -> None:
    """9.25: Whichever is bound first."""
    like_python("x = a[3] > 1\nif n > 2:\n    x = 7\nout[0] = x\ny = 7\nif n > 3:\n    y = a[3] > 9\nout[1] = y")


def test_compile_time_values_are_any_python_objects() -> None:
    """0.3: Numbers, lists, dicts, types, buffer handles, tuples of device values, functions, classes' objects."""
    like_python("""
shape = (2, 4)
names = {"rows": shape[0], "source": a}
pair = (n, m)
kinds = [int, float]
best = max
both = [names["source"][i] + pair[i] for i in (0, 1)]
out[0] = both[0] * 10 + both[1]
out[1] = best(shape) + len(names) + kinds[0]("3")
""")
    emits("kind = T.float16\nx = T.alloc_local((4,), kind)\nx[0] = 1.0\nres[0] = x[0]", 2)


def test_what_is_known_at_the_launch_gives_the_result_of_that_launch() -> None:
    """0.4: One kernel, two launches."""
    k = kernel("if n > m:\n    out[0] = n\nelse:\n    out[0] = m")
    assert [launched(k, 1, 2)["out"][0], launched(k, 9, 2)["out"][0]] == [2, 9]
