"""Messages stand at the text they speak of, several in one build, without follow-ups."""

from __future__ import annotations

import re

import pytest
from frontend.cells import HEAD, kernel, run_cell

from tilelang_nb.frontend.static import check_text

# `#: CODE text` says which code must be reported in the line and the exact text of its range ("" is not compared).
MISTAKES = """import itertools
import tilelang.language as T

@T.macro
def half(v):
    return v / 2  #: TL136 v / 2

@T.prim_func
def k(a: T.Tensor((8,), "int32"), b: T.Tensor((4, 6), "float32"), out: T.Tensor((8,), "int32"), n: T.int32, m: T.int32):
    with T.Kernel(1, threads=1):
        é = "日本"; out[0] = n / m  #: TL136 n / m
        é = "日本"; c = b @ b  #: TL137 b @ b
        é = "日本"; x = y = a[0]  #: TL101 x = y = a[0]
        é = "日本"; out[0] = x + y
        é = "日本"; z = len(a)  #: TL107 len(a)
        é = "日本"; z = type(n)  #: TL108 type(n)
        é = "日本"; z = isinstance(n, int)  #: TL109 isinstance(n, int)
        é = "日本"; print("é", n)  #: TL106 print("é", n)
        é = "日本"; out[0] = [1, 2][n]  #: TL116 [1, 2][n]
        é = "日本"; out[0] = {1: 2}[n]  #: TL116 {1: 2}[n]
        é = "日本"; out[0] = undefined_é + 1  #: TL002 undefined_é
        é = "日本"; T.clera(a)  #: TL003 T.clera
        é = "日本"; T.copy(a, out, coalesed_width=2)  #: TL004 T.copy(a, out, coalesed_width=2)
        é = "日本"; out[0] = b[1]  #: TL201 b[1]
        é = "日本"; out[8] = 1  #: TL202 out[8]
        é = "日本"; r = b[0, 1::2]  #: TL203 b[0, 1::2]
        é = "日本"; t = [j for j in range(n)]  #: TL113 range(n)
        é = "日本"; t = [j for j in (1, 2) if j < n]  #: TL114 j < n
        é = "日本"; assert n > 1  #: TL105 assert n > 1
        é = "日本"; assert len("日本") == 3  #: TL145 assert len("日本") == 3
        é = "日本"; out[0] = 1.5  #: TL135 out[0]
        é = "日本"; out[0] = None  #: TL140 out[0]
        é = "日本"; w = 1 if b else 2  #: TL138 1 if b else 2
        é = "日本"; w = n is m  #: TL139 n is m
        é = "日本"; del out[0]  #: TL127 del out[0]
        é = "日本"; out[0] = half(n) + half(m)
        é = "日本"; s = T.alloc_shared((n, 8), "float32")  #: TL206 T.alloc_shared((n, 8), "float32")
        é = "日本"; s = T.alloc_shared((8,), "float33")  #: TL205 T.alloc_shared((8,), "float33")
        é = "日本"; out[0] = (1, 2)[5]  #: TL144 (1, 2)[5]
        é = "日本"; out[0] = int("x")  #: TL144 int("x")
        é = "日本"; out[0] = (lambda v: v @ v)(n)  #: TL137 v @ v
        for i in n:  #: TL111 n
            out[0] = 1
        for i in range(0, 4, 0):  #: TL141 range(0, 4, 0)
            out[0] = 1
        for v in [1, 2]:
            if a[v] > 0:
                é = "日本"; break  #: TL110 break
        if n > 3:
            p = n + 1
        é = "日本"; out[0] = p  #: TL130 p
        for i in range(n):
            pass
        é = "日本"; out[0] = i  #: TL131 i
        q = n + 1
        if n > 3:
            é = "日本"; q = b[0, 0]  #: TL132 q
        out[0] = q
        u = []
        for i in range(n):
            é = "日本"; u.append(i)  #: TL133 u.append(i)
        acc = 0
        for i in T.Parallel(8):
            é = "日本"; acc += a[i]  #: TL134 acc += a[i]
        for i in T.Parallel(8):
            é = "日本"; break  #: TL119 break
        for i in itertools.count():  #: TL112
            pass
        while True:  #: TL118
            out[0] += 1
        try:  #: TL120
            pass
        finally:
            pass
        with open("é") as g:  #: TL104 open("é")
            pass
        with half(3) as g:
            pass
        import math  #: TL124 import math
        global COUNT  #: TL125 global COUNT
        é = "日本"; raise ValueError("é")  #: TL122 raise ValueError("é")
        é = "日本"; (yield n)  #: TL123 yield n
"""


def test_every_mistake_of_a_cell_is_reported_once_at_its_exact_range() -> None:
    cell = run_cell(MISTAKES)
    wanted = {}
    for number, line in enumerate(MISTAKES.splitlines(), 1):
        if "#:" in line:
            code, _, text = line.split("#:")[1].strip().partition(" ")
            wanted[(number, code)] = text
    # `half(3)` divides Python numbers: its result is no manager.
    wanted[(next(n for n, line in enumerate(MISTAKES.splitlines(), 1) if "half(3)" in line), "TL104")] = "half(3)"
    text = cell.session.text
    found = {(d.span.line, d.code): text.slice(d.span) for d in cell.diagnostics if d.severity == "error"}
    assert found.keys() == wanted.keys()
    different = {key: (found[key], text) for key, text in wanted.items() if text and found[key] != text}
    assert not different


def test_the_messages_are_sorted_by_line_and_each_has_a_help_and_a_short_label() -> None:
    diagnostics = run_cell(MISTAKES).diagnostics
    assert list(diagnostics) == sorted(diagnostics, key=lambda d: (d.span.line, d.span.column))
    for diagnostic in diagnostics:
        assert diagnostic.help
        assert len(diagnostic.label) <= 60
        assert not re.search(r"tirx|__tl|<kernel>|tvm|Namespace", str(diagnostic))


def test_columns_count_characters() -> None:
    cell = run_cell(kernel('größe = "日本語 é"; ñ = q = a[0]'))
    assert [(d.code, d.span.column) for d in cell.diagnostics] == [("TL101", 25)]


def test_lines_are_those_that_the_user_sees() -> None:
    cell = run_cell("@T.prim_func\ndef k(a: T.int32):\n    class Q: pass\n1 / 0\n", first_line=2)
    assert cell.errors == [("TL103", 4)]
    assert run_cell("x = 1\n1 / 0\n", first_line=5).errors == [("TL144", 6)]


def test_a_mistake_inside_a_macro_is_reported_once_with_the_chain_of_the_first_call() -> None:
    before = "@T.macro\ndef inner(o, i):\n    o[i] = nope + 1\n@T.macro\ndef outer(o):\n    inner(o, 2)\n"
    cell = run_cell(kernel("outer(out)\nouter(out)", before=before))
    (found,) = cell.diagnostics
    assert (found.code, found.span.line) == ("TL002", 4)
    assert [note.span.line for note in found.notes] == [7, 12]


def test_a_macro_of_another_cell_is_shown_at_its_call() -> None:
    library = run_cell(HEAD + "@T.macro\ndef inner(o):\n    o[0] = nope\n", name="In[1]")
    cell = run_cell(kernel("inner(out)"), namespace=dict(library.namespace), name="In[2]")
    (found,) = cell.diagnostics
    assert (found.code, cell.session.text.slice(found.span)) == ("TL002", "inner(out)")
    assert any("In[1]" in note.message and "line 4" in note.message for note in found.notes)


def test_names_of_a_refused_statement_give_no_second_message() -> None:
    body = "x = nope\ny = x + 1\nout[0] = y\nfor i in range(x):\n    out[i] = x\nif y:\n    z = 1\nout[1] = z\nt, u = nope2, 1\nout[2] = t"
    assert run_cell(kernel(body)).errors == [("TL002", 6), ("TL002", 14)]


def test_a_poisoned_scalar_makes_no_false_conflict() -> None:
    body = """
x = 0
for i in range(n):
    if a[i] > 2:
        x = nope
        x = 3
    else:
        x += 1
    out[i] = x
out[0] = x
"""
    assert run_cell(kernel(body)).errors == [("TL002", 9)]


CONTAINERS = """
t = [1.0, 2.0]
d = {}
t[n] = 3.0  #: TL116
out[0] = t[n]  #: TL116
t.append(nope)  #: TL002
if n > 3:
    t += [3.0]  #: TL133
    t.append(4.0)  #: TL133
for i in range(n):
    d["x"] = i  #: TL133
out[1] = d["x"]
out[2] = d[n]  #: TL116
if t[n] > 0:  #: TL116
    out[3] = nope2 + t[m]  #: TL002 TL116
out[4] = t[:n][0]  #: TL116
out[5] = t[7] + len(d["x"])
assert len(t) == 4
for v in t:
    out[v] = d[v]
u = t
out[7] = u[9]
t = [1, 2]
out[6] = t[1] + t[n]  #: TL116
out[7] = t[5]  #: TL144
"""


def test_containers_that_a_refused_statement_would_have_changed_are_checked_for_all_but_their_contents() -> None:
    text = kernel(CONTAINERS)
    lines = enumerate(text.splitlines(), 1)
    wanted = [(code, number) for number, line in lines for code in line.partition("#: ")[2].split()]
    assert sorted(run_cell(text).errors) == sorted(wanted)


OPERANDS = """
out[0] = u1 if n > 3 else u2  #: u1 u2
out[1] = n > 3 and u3 and u4  #: u3
out[2] = n > 3 and m > u5 and u6  #: u5 u6
out[3] = n < u7 < u8  #: u7 u8
out[4] = u9 < 3 < u10  #: u9
out[5] = u12 if 3 > 2 else u13  #: u12
out[6] = (u14 if n > u15 else u16) + u17  #: u14 u15 u16 u17
x = [v for v in u18] + [w for w in u19]  #: u18 u19
x = m or T.max(u20, u21)  #: u20 u21
x = 3 or u22
if a[u23] > 0:  #: u23
    out[0] = u24  #: u24
if u25 == 3:  #: u25
    out[0] = u26
elif n > 3:
    out[0] = u27
"""


def test_operands_under_a_condition_of_the_device_are_searched_and_others_are_not() -> None:
    text = kernel(OPERANDS)
    lines = enumerate(text.splitlines(), 1)
    wanted = [(name, number) for number, line in lines for name in line.partition("#: ")[2].split()]
    cell = run_cell(text)
    assert sorted((cell.session.text.slice(d.span), d.span.line) for d in cell.diagnostics) == sorted(wanted)
    static = [(cell.session.text.slice(d.span), d.span.line) for d in check_text(text)]
    assert set(static) <= set(wanted) and len(static) > 15


ATTRIBUTES = """
box.v = 1  #: TL127
out[0] = box.v
out[1] = nope + box.v + nope2  #: TL002 TL002
box.w += 1  #: TL127
assert box.w == 4
same = box
del same.x  #: TL127
out[2] = box.x + out[8]  #: TL202
box.inner.y: T.int32 = 2  #: TL127
out[3] = box.inner.y
out[4] = box.inner.z  #: TL144
for box.u in [1]:  #: TL127
    out[5] = box.u
other.v += 1  #: TL127
out[6] = box.t
"""
BOXES = "class Box: pass\nbox, other = Box(), Box()\nbox.inner, box.w, box.x, box.t, other.v = Box(), 3, 1, 2, 1\n"


def test_attributes_that_a_refused_statement_would_have_changed_give_no_second_message() -> None:
    text = kernel(ATTRIBUTES, before=BOXES)
    lines = enumerate(text.splitlines(), 1)
    wanted = [(code, number) for number, line in lines for code in line.partition("#: ")[2].split()]
    assert sorted(run_cell(text).errors) == sorted(wanted)


def test_two_names_of_one_statement_that_cannot_be_joined_are_both_said() -> None:
    body = "x, y = n, m\nif n > 3:\n    x, y = f[0], f[1]\nout[0] = x + y"
    assert run_cell(kernel(body)).marked() == [("TL132", "x"), ("TL132", "y")]


def test_an_endless_loop_is_said_beside_the_mistakes_of_its_body() -> None:
    assert run_cell(kernel("while True:\n    out[0] = nope")).errors == [("TL118", 6), ("TL002", 7)]
    assert run_cell(kernel("while True:\n    if nope:\n        break")).errors == [("TL002", 7)]
    assert run_cell(kernel("x = 3\nwhile x:\n    x = nope")).errors == [("TL002", 8)]


@pytest.mark.parametrize(
    ("name", "near"), [("a_sharde", "a_shared"), ("lenn", "len"), ("nn", "n"), ("ouut", "out"), ("WIDHT", "WIDTH")]
)
def test_an_undefined_name_gives_the_nearest_real_one(name: str, near: str) -> None:
    cell = run_cell(kernel(f"a_shared = 1\nx = {name}", before="WIDTH = 3\n"))
    assert [d.code for d in cell.diagnostics] == ["TL002"]
    assert f"`{near}`" in cell.diagnostics[0].help


def test_a_division_names_its_operands_in_the_help() -> None:
    (found,) = run_cell(kernel("x = (n + 1) / m")).diagnostics
    assert found.help == 'write `(n + 1) // m`, or `T.cast((n + 1), "float32") / m`'


def test_a_helper_that_needs_a_value_is_shown_with_its_line() -> None:
    (found,) = run_cell(
        kernel("out[0] = pick(n)", before="def pick(v):\n    if v > 2:\n        return 1\n")
    ).diagnostics
    assert found.code == "TL128"
    assert [note.span.line for note in found.notes] == [3]


def test_a_generator_read_where_its_value_is_gone_is_shown_at_the_reader() -> None:
    body = "for i in range(4):\n    y = i + 1\n    g = (y + j for j in range(2))\n    out[i] = y\nfor v in g:\n    out[0] = v"
    assert run_cell(kernel(body)).marked() == [("TL115", "g")] or run_cell(kernel(body)).marked() == [("TL130", "g")]


def test_the_same_warning_is_given_once_per_place() -> None:
    cell = run_cell(kernel("for v in [0, 1, 2]:\n    out[v] = f[v]"))
    assert [(d.code, d.severity, d.span.line) for d in cell.diagnostics] == [("TL212", "warning", 7)]
    assert cell.kernels["k"] is not None


@pytest.mark.parametrize(("name", "near"), [("p", ""), ("nope", ""), ("npp", "np")])
def test_a_module_is_the_nearest_name_only_where_it_is_very_near(name: str, near: str) -> None:
    (found,) = run_cell("import numpy as np\n" + kernel(f"a[0] = {name} + 1")).diagnostics
    assert found.code == "TL002" and ("`np`" in found.help) == bool(near)
