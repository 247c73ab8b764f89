"""Comprehensions, generator expressions, and Python containers indexed by device values."""

from __future__ import annotations

import pytest
from specification.cells import computes, emits, kernel, like_python, refuses, said


def test_comprehensions_use_python_iteration() -> None:
    """P21, 2.29: List, set, dict and tuple-via-generator: no device loop is made, also over `range`."""
    body = """
t = [v * v for v in range(4)]
s = {v % 3 for v in range(7)}
d = {v: v + 1 for v in range(3)}
u = tuple(v + 5 for v in range(2))
out[0] = t[3]
out[1] = len(s) + d[2]
out[2] = u[1] + len(u)
"""
    like_python(body)
    assert "for " not in kernel(body).stages[1].text.split("T.launch_thread")[-1]


def test_a_table_built_by_a_comprehension_is_stored_by_enumerate() -> None:
    """P22: The example of the compatibility guide."""
    like_python("""
block_K = 8
scale_idx_table = [
    ((j >> 4) & 7) | ((j >> 7) << 3)
    for j in range(block_K)
]
for index, value in enumerate(scale_idx_table):
    out[index] = value + index
""")


def test_comprehension_bounds_and_filters_must_be_known_while_building() -> None:
    """P23, 2.29: In comprehensions of every kind; inner bounds and filters too."""
    refuses(
        """
t = [j for j in range(n)]  #!
u = {j for j in (1, 2) for i in range(j, a[0])}  #!
v = {j: j for j in range(6) if j < n}  #!
w = sum(j for j in [1, 2] if a[j])  #!
x = [j for j in n]  #!
""",
        ("TL113", "range(n)", "T.serial(n)"),
        ("TL113", "range(j, a[0])", "buffer"),
        ("TL114", "j < n", "if"),
        ("TL114", "a[j]", "if"),
        ("TL111", "n", "range"),
    )


def test_elements_of_a_comprehension_may_be_device_values() -> None:
    """P23, 2.30: Loads, arithmetic, conditional expressions, tuples."""
    like_python("""
t = [a[j] * n for j in range(4)]
out[0] = t[3]
u = [(n if a[j] > 1 else m, j) for j in (5, 6)]
out[1] = u[0][0] * 10 + u[1][0] + u[1][1]
out[2] = sum(v for v in t)
""")


def test_comprehensions_take_tuple_targets_several_fors_and_nesting() -> None:
    """2.31: As Python."""
    like_python("""
t = [x * 10 + y for x, (y, *_) in [(1, (2, 3)), (4, (5,))]]
u = [x + y for x in range(3) for y in range(x) if y != 1 if x]
v = [[x * y for y in range(2)] for x in range(3)]
out[0] = t[0] + t[1]
out[1] = len(u) * 10 + u[-1]
out[2] = v[2][1] + len(v)
""")


def test_a_walrus_in_a_comprehension_binds_outside() -> None:
    """2.32: In the enclosing scope, as in Python."""
    like_python("t = [last := v * 2 for v in (1, 2, 3)]\nout[0] = last + len(t)\nout[1] = (x := n + 1) * x")


def test_comprehension_variables_do_not_leak() -> None:
    """P24, 2.33: They hide a name of the kernel inside only, and are not bound outside."""
    like_python("j = n\nt = [j for j in (5, 6)]\nout[0] = j + t[1]\nu = {i: i for i in (1, 2)}\nout[1] = u[1]")
    refuses("t = [j for j in (5, 6)]\nout[0] = t[0]\nout[1] = j  #!", ("TL002", "j", "assign it first"))


def test_generator_expressions_are_lazy() -> None:
    """P25, 2.34: They see what a name holds when they are read, and only what is read is made."""
    like_python("base = 1\ng = (base + v for v in (0, 10))\nbase = n\nfor at, v in enumerate(g):\n    out[at] = v")
    emits("g = (out[v] for v in (0, 1, 2))\nout[4] = next(g)", 1)


def test_a_generator_is_consumed_once() -> None:
    """P25, 2.34: As in Python."""
    like_python("g = (v for v in (3, 4))\nout[0] = sum(g) + n\nfor v in g:\n    out[v] = 9")


def test_a_generator_whose_captured_value_is_gone_is_refused() -> None:
    """P25, 2.35, 9.24: TL115 at the reader of a generator made before, else what the name itself is (TL130)."""
    made = refuses(
        """
g = (i + j for j in range(2))
h = (y * j for j in range(2))
for i in range(4):
    y = a[i] + 1
    late = (y - j for j in range(2))
    out[i] = y
for v in g:  #!
    out[v] = 1
out[0] = sum(h)  #!
for v in late:  #!
    out[1] = v
""",
        ("TL115", "g", "inside the loop"),
        ("TL115", "sum(h)", "inside the loop"),
        ("TL130", "late", "before"),
    )
    assert "`i`" in said(made)[0] and "line 4" in said(made)[0] and "`y`" in said(made)[1]


@pytest.mark.parametrize("index", ["n", "a[0]", "i", "n + 1", "-n", "n % 2"])
def test_a_list_or_tuple_indexed_by_a_device_value_is_refused(index: str) -> None:
    """P26, 2.36: It is no device buffer; the help says a buffer, or the index expression."""
    body = f"t = [1, 2, 3]\nu = (4, 5)\nfor i in range(2):\n    out[0] = t[{index}]  #!\n    out[1] = u[{index}]  #!"
    refuses(body, ("TL116", f"t[{index}]", "buffer"), ("TL116", f"u[{index}]", "buffer"))


def test_a_dict_a_set_and_a_string_looked_up_with_a_device_value_are_refused() -> None:
    """2.37: The same code; a slice of a list by a device value too."""
    refuses(
        """
d = {0: 1, 3: 2}
out[0] = d[n]  #!
out[1] = d.get(n, 0)  #!
out[2] = ord('abc'[n])  #!
out[3] = [1, 2, 3][n:][0]  #!
""",
        ("TL116", "d[n]", "buffer"),
        ("TL116", "d.get(n, 0)", "buffer"),
        ("TL116", "'abc'[n]", "buffer"),
        ("TL116", "[1, 2, 3][n:]", "buffer"),
    )


def test_a_buffer_or_a_computed_index_serves_a_runtime_lookup() -> None:
    """P27: What the help of TL116 says to write works."""
    table = "t = T.alloc_local((4,), 'int32')\nfor at, v in enumerate([5, 6, 7, 8]):\n    t[at] = v\n"
    computes(table + "out[0] = t[n]\nout[1] = 5 + n", out=[8, 8])


PARTLY_CONSUMED = [
    "g = (v * n for v in (1, 2, 3))\nout[0] = next(g)\nout[1] = sum(g)",
    "g = (v * n for v in (1, 2, 3, 4))\nfor v in g:\n    out[0] += v\n    break\nfor v in g:\n    out[1] += v",
    "g = (v for v in [1, 2, 3, 4])\nout[0] = any(v > 1 for v in g)\nout[1] = next(g)\nout[2] = len(list(g))",
    "g = (v for v in [1, 2, 3, 4])\nout[0] = 2 in g\nout[1] = sum([v * n for v in g])",
    "g = zip((v for v in (n, m)), iter([3, 4, 5]))\np, q = next(g)\nout[0] = p * q\nout[1] = [u * v for u, v in g][0]",
    "it = iter((n, m, 4, 2))\nout[0] = [p * q for p, q in zip(it, it)][1]",
    "g = (v for v in (n, m, 1))\nfirst, *rest = g\nout[0] = first * 10 + len(rest)",
]


@pytest.mark.parametrize("body", PARTLY_CONSUMED)
def test_a_generator_goes_on_where_its_last_consumer_left_it(body: str) -> None:
    """2.34: As in Python: `next`, a loop with a `break`, `any` and `in` take only what they need."""
    like_python(body)
