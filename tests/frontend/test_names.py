"""Re-binding keeps Python's meaning or is refused; a name that needs no scalar gets none."""

from __future__ import annotations

import numpy as np
import pytest
from frontend.cells import kernel, run_cell, titled

REFUSALS = {
    "if n > 3:\n    x = 1\nout[0] = x": [("TL130", 8)],
    "for i in range(n):\n    y = i\nout[0] = y": [("TL130", 8)],
    "for i in range(n):\n    out[i] = i\nout[0] = i": [("TL131", 8)],
    "i = 3\nfor i in range(n):\n    out[i] = i\nout[0] = i": [("TL131", 9)],
    "x = n\nif n > 3:\n    x = f[0]\nout[0] = x": [("TL132", 8)],
    "x = n > 3\nif n > 3:\n    x = f[0]\nout[0] = x": [("TL132", 8)],
    "if n > 3:\n    x = n\nelse:\n    x = 1.5\nout[0] = x": [("TL132", 9)],
    "t = []\nfor i in range(4):\n    t.append(i)": [("TL133", 8)],
    "t = [1]\nif n > 3:\n    t[0] = 2": [("TL133", 8)],
    "d = {}\nif n > 3:\n    d.update(x=1)": [("TL133", 8)],
    "s = {1}\nwhile n > 3:\n    s.add(2)\n    break": [("TL133", 8)],
    "t = [1]\nif n > 3:\n    t += [2]": [("TL133", 8)],
    "t = [[1]]\nif n > 3:\n    t[0].append(2)": [("TL133", 8)],
    "t = [1]\nif n > 3:\n    list.append(t, 2)": [("TL133", 8)],
    "t = [1]\nif n > 3:\n    grow(t)": [("TL133", 8)],
    "t = [1]\nif n > 3:\n    list(map(grow, [t]))": [("TL133", 8)],
    "buf = a\nif n > 3:\n    buf = out\nout[0] = buf[0]": [("TL133", 8)],
    "s = 'x'\nif n > 3:\n    s = 'y'\nout[0] = len(s)": [("TL133", 8)],
    "s = None\nif n > 3:\n    s = 1\nout[0] = s": [("TL133", 8)],
    "acc = 0\nfor i in T.Parallel(8):\n    acc += a[i]\nout[0] = acc": [("TL134", 8)],
    "v = T.alloc_var('int32', init=0)\nfor i in T.Parallel(8):\n    v = v + a[i]": [("TL134", 8)],
    "w = 0\nfor i in T.Parallel(8):\n    w = a[i]\nout[0] = w": [("TL134", 8)],
    "x = 0\nfor i in T.Parallel(8):\n    if a[i] > 3:\n        x = 3\n    out[i] = x": [("TL134", 9)],
    "c = 0\nfor i in T.Parallel(8):\n    bump(c)": [("TL134", 8)],
    "z = 0\nfor j in range(3):\n    out[j] = z\n    for i in T.Parallel(3):\n        z = i": [("TL134", 10)],
    "if n > 3:\n    del n\nout[0] = n": [("TL130", 8)],
    "for i in range(2):\n    del m\nout[0] = m": [("TL130", 7)],
    "out[0] = x\nx = 1": [("TL002", 6)],
    "del x": [("TL002", 6)],
    "x += 1": [("TL002", 6)],
    "if n > 3:\n    x = x + 1\nelse:\n    x = 2\nout[0] = x": [("TL002", 7)],
    "with T.ws(0):\n    v = n + 1\nout[0] = v": [("TL130", 8)],
    "x = n\nx.y = 3": [("TL127", 7)],
    "v = T.alloc_var('int32')\nv = [1]": [("TL133", 7)],
    "if n > 3:\n    q = T.alloc_local((4,), 'int32')\nq[0] = 1": [("TL130", 8)],
    "t = make()\nif n > 3:\n    t.append(T.alloc_local((4,), 'int32'))": [("TL133", 8)],
}
BEFORE = "def grow(t):\n    t.append(1)\n@T.macro\ndef bump(v: T.Ref):\n    v = v + 1\ndef make():\n    return []\n"
LINES_BEFORE = BEFORE.count("\n")


@pytest.mark.parametrize("body", REFUSALS)
def test_what_cannot_keep_python_s_meaning_is_refused(body: str) -> None:
    wanted = [(code, line + LINES_BEFORE) for code, line in REFUSALS[body]]
    cell = run_cell(kernel(body, before=BEFORE))
    assert cell.errors == wanted, [str(d) for d in cell.diagnostics]


def script(body: str, **options: str) -> str:
    cell = run_cell(kernel(body, **options))
    assert not cell.errors, [str(d) for d in cell.diagnostics]
    return cell.kernels["k"].function.script()


def test_a_name_that_is_never_read_again_needs_no_scalar() -> None:
    assert "alloc_buffer" not in script("x = 1\nif n > 3:\n    x = 2\nout[0] = n")


def test_straight_line_rebinding_makes_new_values() -> None:
    assert "alloc_buffer" not in script("x = n\nx = x + 1\nx = x * 2\nout[0] = x")


def test_a_name_keeps_its_own_name_in_the_ir() -> None:
    text = script("total = 0\nfor turn in range(n):\n    total += turn\nresult = total * 2\nout[0] = result")
    assert "total = T.alloc_buffer" in text
    assert "for turn in range" in text
    assert "result: T.let" in text


def test_iterating_over_values_does_not_rename_them() -> None:
    text = script("first = n + 1\nsecond = m + 1\nfor v in [first, second]:\n    out[v] = v")
    assert "first: T.let" in text
    assert "v: T.let" not in text


def test_an_element_that_a_statement_uses_up_gets_no_variable() -> None:
    assert "T.let" not in script("out[0] = a[0] + a[1] * a[2]\nout[1] += a[n]\nf[0] = f[1] * 2.0")


def test_weak_literals_take_the_type_of_what_they_meet() -> None:
    text = script("best = 0\nfor i in range(n):\n    best = f[i]\nf[0] = best")
    assert 'best = T.alloc_buffer((1,), scope="local.var"' in text  # float32 is the default dtype of the printer


def test_a_name_bound_on_both_branches_is_one_scalar() -> None:
    assert script("if n > 3:\n    x = n\nelse:\n    x = m\nout[0] = x").count("alloc_buffer") == 1


def test_each_turn_of_a_compile_time_loop_has_its_own_type() -> None:
    body = "for v in (n, f[0]):\n    y = v\n    if n > 3:\n        y = 0\n    f[1] = y"
    text = script(body)
    assert text.count("alloc_buffer") == 2


def test_two_calls_of_a_macro_in_one_statement_have_their_own_types() -> None:
    before = "@T.macro\ndef pick(v):\n    r = v\n    if v > 1:\n        r = 0\n    return r\n"
    assert script("f[0] = pick(n) + pick(f[1])", before=before).count("alloc_buffer") == 2


def test_a_parameter_is_changed_in_a_copy() -> None:
    text = script("for i in range(4):\n    if a[i] > 2:\n        n = n + i\n    out[i] = n")
    assert text.count("alloc_buffer") == 1
    assert "n_1[0] = n" in text


@pytest.mark.parametrize(
    "body",
    [
        "x = 0\nfor i in range(n):\n    x += i\nout[0] = nope\nfor i in range(n):\n    x += i\nout[1] = x",
        "x = 0\nif n > 1:\n    x = nope\nelif n > 2:\n    x = 3\nfor i in range(2):\n    x += 1\nout[0] = x",
        "x = 0\nwhile x < n:\n    if a[x] > 3:\n        x = [1]\n    else:\n        x += 1\nout[0] = x",
        "for i in T.Parallel(4):\n    x = a[i]\n    if x > 2:\n        x = nope\n        x = 2\n    out[i] = x",
    ],
)
def test_a_build_with_mistakes_ends_without_internal_errors(body: str) -> None:
    codes = {code for code, _ in run_cell(kernel(body)).errors}
    assert codes
    assert "TL900" not in codes


@pytest.mark.parametrize(
    "body", ["c += 2", "out[0] = c\nc = 1", "for i in range(3):\n    c = c + 1", "max = max(1, 2)"]
)
def test_a_name_of_the_module_that_the_kernel_assigns_is_local_and_the_message_says_so(body: str) -> None:
    cell = run_cell(kernel(body, before="import numpy as np\nc = np.zeros(3)"))
    assert [code for code, _ in cell.errors] == ["TL002"]
    name = "max" if "max" in body else "c"
    assert cell.diagnostics[0].help.startswith(f"`{name}` is assigned in this function, so it is local here")


def test_a_name_that_is_bound_further_on_says_so() -> None:
    body = "out[0] = prev\nprev = n"
    (found,) = run_cell(kernel(body)).diagnostics
    assert found.code == "TL002"
    assert "assigned elsewhere in this function" in found.help


UNBOUND_IN_LOOPS = """
## read before its first binding
for i in range(4):
    if i > 0:
        out[i] = late  #: TL130
    late = i
## read by the condition of a while
while late > 3:  #: TL130
    late = n
## a sum that begins with nothing
for i in range(n):
    late += a[i]  #: TL002
## straight lines before any loop
out[0] = late  #: TL002
late = 3
## deleted in each turn
x = n
for i in range(3):
    out[i] = x  #: TL130
    del x
## deleted and not read but by the deletion itself
x = n
for i in range(3):
    del x  #: TL130
## deleted under a condition
x = n
for i in range(3):
    if n > 2:
        del x  #: TL130
## deleted before the loop goes on
x = n
while out[0] < n:
    out[0] += x  #: TL130
    if n > 2:
        del x
        continue
## a number that the loop changes
x = n
for i in range(3):
    x += 1  #: TL130
    if n > 2:
        del x
## an object
x = [1]
for i in T.Parallel(3):
    out[i] = x[0]  #: TL130
    del x
## the variable of the loop around
for i in range(3):
    for j in range(3):
        del i  #: TL130
## read after a loop that it may have left without a value
x = n
for i in range(3):
    if n > 2:
        del x
        break
out[1] = x  #: TL130
## a number that changes, deleted on one path of a turn
x = n
for i in range(3):
    x = 5 + i
    out[i] = x
    if n > 3:
        del x
out[3] = x  #: TL130
## bound anew before each use
x = n
for i in range(3):
    x = i
    out[i] = x
    del x
## deleted where the loop is left
x = n
for i in range(3):
    x += 1
    out[i] = x
    if x > n + 1:
        del x
        break
## its own variable
for i in range(3):
    out[i] = i
    del i
## bound again in the same turn
x = n
for i in range(3):
    out[i] = x
    del x
    x = i
"""


@pytest.mark.parametrize("title", titled(UNBOUND_IN_LOOPS))
def test_a_name_without_a_value_in_some_turn_of_a_loop_is_refused_where_it_is_read(title: str) -> None:
    text = kernel(titled(UNBOUND_IN_LOOPS)[title])
    lines = enumerate(text.splitlines(), 1)
    wanted = [(code, number) for number, line in lines for code in line.partition("#: ")[2].split()]
    cell = run_cell(text)
    assert cell.errors == wanted
    if not wanted:
        a, out = np.zeros(8, np.int32), np.zeros(8, np.int32)
        cell.run(a, out, np.zeros(8, np.float32), 3, 0)
        names = {"out": (expected := np.zeros(8, np.int32)), "n": 3}
        exec(titled(UNBOUND_IN_LOOPS)[title], names)
        np.testing.assert_array_equal(out, expected)
