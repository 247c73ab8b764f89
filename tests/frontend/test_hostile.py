"""Nothing a cell contains crashes or hangs the process, and no traceback of the compiler reaches the user."""

from __future__ import annotations

import builtins
import sys
import threading

import numpy as np
import pytest
from frontend.cells import HEAD, kernel, run_cell

import tilelang_nb
from tilelang_nb.frontend.limits import Limits
from tilelang_nb.source.render import render

HOSTILE = """
class Bad:
    def __repr__(self): raise ValueError("repr")
    __str__ = __repr__
    def __eq__(self, o): raise ValueError("eq")
    def __hash__(self): return 1
    def __iter__(self): raise ValueError("iter")
    def __bool__(self): raise ValueError("bool")
    def __index__(self): raise ValueError("index")
    def __call__(self): raise ValueError("call")
    def __getattr__(self, n): raise ValueError("attr " + n)
class Worse:
    @property
    def __class__(self): raise ValueError("class")
    def __repr__(self): raise SystemExit
class Base(BaseException): pass
def boom(): raise Base("x")
def leave(): raise SystemExit(3)
def shown(): raise Bad2()
class Bad2(Exception):
    def __str__(self): raise ValueError
bad = Bad(); worse = Worse()
@T.macro
def refer(v: T.Ref):
    v = 1
@T.macro
def give(v):
    return v
"""
STATEMENTS = """out[0] = bad
out[0] = worse
out[bad] = 1
out[worse] = 1
x = out[bad:3]
for i in bad: out[0] = 1
for i in worse: out[0] = 1
for v in [bad, worse]: out[v] = 1
for i in range(bad): pass
for i in T.serial(worse): pass
if bad: out[0] = 1
if worse: out[0] = bad
while bad: out[0] = 1
T.copy(bad, out)
T.fill(out, worse)
T.gemm(worse, bad, n)
T.print(worse)
x = bad + n
x = n + worse
x = n < bad
x = n in [bad]
x = bad in [n]
x = bad == 3
x = f'{bad}'
x = f'{worse}'
x = max(bad, n)
x = sum([bad])
x = [*bad]
a1, b1 = bad
a1, *b1 = worse
d = {bad: 1}; d[worse] = 2; x = d[n]
print(worse)
print(bad)
boom()
leave()
shown()
exit()
x = bad()
x = bad.attr
x = worse.attr
with bad: pass
with worse: pass
assert bad
assert 0, worse
q: bad = n
q: T.int32 = worse
refer(bad)
refer(worse)
out[0] = give(worse)
T.alloc_shared((bad,), "float32")
T.alloc_shared((8,), worse)
x = (lambda v: bad[v])(n)
x = {v: bad for v in [worse]}[n]
del bad
bad = 1; out[0] = n // 0; del zero
T.Kernel(bad)
T.Tensor(worse)
x = n if bad else m
x = bad and n
x = n and bad
raise bad
return bad
x = open("/no such file")
x = __import__("no_such_module")
x = eval("n")
exec("out[0] = 1")
x = globals()["no"]
x = T
T.copy
T.nothing()
T()
out()
n()
n.x
n[0] = 1
a.x.y
out[0][0] = 1
out[0:2] = 3
x = -a
x = not a
x = a + 1
x = a < a
x = a and 1
x = [1][a]
x = a[a]
x = a["x"]
x = a[None]
x = a[1.5]
x = a[...]
x = a[()]
x = a[0:n:n]
x = n.astype("no such type")
x = T.cast(n, bad)
x = n ** m
x = f[0] << 1
x = ~f[0]
x = n @ m
x = int(n, 3)
x = round(n, 2)
x = hash(n)
x = iter(n)
x = len(n)
x = list(n)
x = min(a)
x = sum(a)
x = range(a)
x = range(f[0])
x = range()
x = next(n)
x = [n for n in n]
x = "%d" % n
x = "abc"[n]
x = n.real
"""


@pytest.mark.parametrize("statement", [line for line in STATEMENTS.splitlines() if line])
def test_no_statement_breaks_the_build(statement: str) -> None:
    cell = run_cell(
        kernel("out[1] = n\n" + statement.replace("; ", "\n") + "\nout[2] = undefined_name", before=HOSTILE)
    )
    assert ("TL002", cell.errors[-1][1]) == cell.errors[-1]  # the walk went on behind the statement
    assert "TL900" not in {code for code, _ in cell.errors}, [str(d) for d in cell.diagnostics]
    for diagnostic in cell.diagnostics:
        assert diagnostic.span is not None
        assert "__tl" not in str(diagnostic)


DEEP = {
    "a long sum": "out[0] = " + " + ".join(["n"] * 20000),
    "many signs": "out[0] = " + "-" * 5000 + "n",
    "many parentheses": "out[0] = " + "(" * 300 + "n" + ")" * 300,
    "a long elif chain": "if n == 0:\n    pass\n"
    + "".join(f"elif n == {i}:\n    out[0] = {i}\n" for i in range(1, 2000)),
    "a long and": "if " + " and ".join(["n > 1"] * 2000) + ":\n    out[0] = 1",
    "a recursive macro": "grow(n)",
    "a recursive helper": "out[0] = again(n)",
    "a macro under many branches": "nested(n, 60)",
}
RECURSIVE = (
    "@T.macro\ndef grow(v):\n    grow(v)\ndef again(v):\n    return again(v)\n"
    "@T.macro\ndef nested(v, d):\n    if v > d:\n        if v > 2:\n            if v > 3:\n                if d > 0:\n"
    "                    nested(v, d - 1)\n"
)


@pytest.mark.parametrize("name", DEEP)
def test_deep_nesting_is_refused_with_a_place(name: str) -> None:
    cell = run_cell(kernel(DEEP[name], before=RECURSIVE))
    assert cell.errors
    assert {code for code, _ in cell.errors} <= {"TL005", "TL127", "TL143"}
    assert all(line > 0 for _, line in cell.errors)


LONG = {
    "a sum over thousands of items": ("out[0] = sum(a[i % 8] for i in range(5000)) % 7", None),
    "a maximum of thousands of items": ("out[0] = max(a[i % 8] for i in range(3000))", None),
    "any of thousands of items": ("out[0] = int(any(a[i % 8] > 100 for i in range(3000)))", None),
    "a name changed thousands of times": ("x = n\nfor i in [v for v in range(5000)]:\n    x = x + 1\nout[0] = x", None),
}


@pytest.mark.parametrize("name", LONG)
def test_long_expressions_stay_flat(name: str) -> None:
    import numpy as np

    cell = run_cell(kernel(LONG[name][0]))
    a, out = np.array([2, 0, 1, 5, 3, 1, 4, 7], np.int32), np.zeros(8, np.int32)
    cell.run(a, out, np.zeros(8, np.float32), 3, 5)
    expected = {
        "a sum over thousands of items": 5000 // 8 * 23 % 7,
        "a maximum of thousands of items": 7,
        "any of thousands of items": 0,
        "a name changed thousands of times": 5003,
    }
    assert out[0] == expected[name]


ENDLESS = """x = list(count())
x = [v for v in count()]
x = tuple(v for v in count())
x = [*count()]
a1, *b1 = count()
x = sum(count())
x = max(*count())
x = n in count()
x = sorted(repeat(1))
x = dict(enumerate(count()))
x = any(v < 0 for v in count())
for v in count(): pass
for v in cycle([n]): out[0] = v
T.max(*count())
"""


@pytest.mark.parametrize("statement", [line for line in ENDLESS.splitlines() if line])
def test_an_endless_iterable_is_refused(statement: str) -> None:
    body = statement.replace(": ", ":\n    ")
    cell = run_cell(kernel(body, before="from itertools import count, cycle, repeat\n"), limits=Limits(items=500))
    assert [code for code, _ in cell.errors] == ["TL112"]


def test_a_break_before_the_limit_makes_an_endless_iterable_fine() -> None:
    body = "for v in count():\n    if v == 4:\n        break\n    out[v] = v"
    assert not run_cell(kernel(body, before="from itertools import count\n")).errors


def test_macros_are_limited_in_depth() -> None:
    cell = run_cell(kernel("grow(n)", before=RECURSIVE), limits=Limits(macro_depth=5))
    (found,) = cell.diagnostics
    assert found.code == "TL143"
    assert "5" in found.message


@pytest.mark.parametrize(
    "text",
    [
        "\0",
        "\ud800",
        "x = '\ud800'",
        "\ufeffx = 1",
        "if 1:\n\tx = 1\n        y = 2",
        "x = " + "(" * 1000,
        "x = (",
        "\x0c\nx =",
    ],
)
def test_any_text_gives_diagnostics(text: str) -> None:
    cell = run_cell(text)
    assert [code for code, _ in cell.errors] == ["TL005"]


def test_decorated_things_that_are_no_function_of_this_text_are_refused() -> None:
    for definition in (
        "k = T.prim_func(lambda a: 3)",
        "k = T.prim_func(len)",
        "@T.prim_func\nclass K: pass",
        "T.macro(max)",
    ):
        assert [code for code, _ in run_cell(HEAD + definition).errors] == ["TL001"]


@pytest.mark.parametrize("name", ["range", "len", "isinstance", "print", "min", "dict", "list", "tuple", "sum", "type"])
@pytest.mark.parametrize("owner", ["builtins", "sys.modules['builtins']"])
def test_a_cell_that_replaces_a_built_in_has_its_own_and_leaves_the_process_alone(name: str, owner: str) -> None:
    real = getattr(builtins, name)
    before = f"import builtins, sys\ndef mine(*args, **kwargs): return [7, 8]\n{owner}.{name} = mine"
    cell = run_cell(kernel(f"for i, v in enumerate({name}(0)):\n    out[i] = v", before=before))
    same = getattr(builtins, name) is real
    setattr(builtins, name, real)
    assert same
    out = np.zeros(8, "int32")
    cell.run(out.copy(), out, np.zeros(8, "float32"), 1, 2)
    assert list(out[:3]) == [7, 8, 0]


def test_a_cell_can_put_a_built_in_back_and_delete_one() -> None:
    real = builtins.len
    text = "import builtins\nkeep = builtins.len\nbuiltins.len = lambda x: 5\nfirst = len([])\nbuiltins.len = keep\n"
    cell = run_cell(text + "second = len([])\ndel builtins.len\nthird = 'len' in dir(builtins)\nlen\n")
    assert builtins.len is real
    assert [cell.namespace[name] for name in ("first", "second", "third")] == [5, 0, False]
    assert isinstance(cell.session.exception, NameError)


def test_a_long_chain_of_elifs_is_refused_at_the_one_that_is_too_deep() -> None:
    chain = "if n == 0:\n    out[0] = 0\n" + "".join(f"elif n == {i}:\n    out[0] = {i}\n" for i in range(1, 400))
    cell = run_cell(kernel(chain))
    (found,) = cell.diagnostics
    assert (found.code, cell.marked()[0][1]) == ("TL127", "elif n == 79:")
    assert "every `elif` nests one deeper" in found.message


def test_a_long_chain_of_compile_time_elifs_is_taken() -> None:
    chain = "if W == 0:\n    pass\n" + "".join(f"elif W == {i}:\n    out[0] = {i}\n" for i in range(1, 600))
    cell = run_cell(kernel(chain, before="W = 599"))
    out = np.zeros(8, "int32")
    cell.run(out.copy(), out, np.zeros(8, "float32"), 1, 2)
    assert out[0] == 599


def test_loops_that_macros_nest_deeper_than_a_text_could_are_refused() -> None:
    macro = "\n@T.macro\ndef deep(o, n, d):\n    if d == 0:\n        o[0] = 5\n    else:\n"
    macro += "        while o[0] < n:\n            deep(o, n, d - 1)\n"
    cell = run_cell(kernel("deep(out, n, 30)", before=macro))
    assert [code for code, _ in cell.errors] == ["TL127"]
    assert "loops more than 18 deep" in cell.diagnostics[0].message


@pytest.mark.parametrize("terms", [1000, 3000])
@pytest.mark.parametrize("between", [" + ", " +\n    "])
def test_an_expression_too_long_for_python_is_located(terms: int, between: str) -> None:
    cell = run_cell(kernel("out[1] = 2\nout[0] = (" + between.join(["n"] * terms) + ")\nout[2] = 5"))
    (code, written), *rest = cell.marked()
    assert (code, rest) == ("TL005", [])
    assert written.startswith("out[0] = (n +") and written.endswith("n)")


def test_expansions_of_a_kernel_are_limited_together() -> None:
    fibonacci = "@T.macro\ndef fib(d):\n    if d > 1:\n        fib(d - 1)\n        fib(d - 2)\n"
    (found,) = run_cell(kernel("fib(30)", before=fibonacci), limits=Limits(turns=2000)).diagnostics
    assert found.code == "TL143"
    body = "for u in [1] * 300:\n    for v in [1] * 300:\n        out[0] = u"
    found = run_cell(kernel(body), limits=Limits(turns=2000, statements=10**6)).diagnostics
    assert {diagnostic.code for diagnostic in found} == {"TL112"}


def test_a_loop_whose_body_is_refused_again_and_again_ends_soon() -> None:
    cell = run_cell(kernel("for v in count():\n    out[0] = missing + v", before="from itertools import count\n"))
    assert [code for code, _ in cell.errors] == ["TL002"]


@pytest.mark.parametrize("text", ["2 ** 2 ** 2 ** 2 ** 2 ** 2", "n + (1 << 10 ** 9)", "10 ** 10 ** 10"])
def test_constants_that_no_memory_holds_are_refused(text: str) -> None:
    cell = run_cell(kernel(f"out[0] = {text}"))
    assert [code for code, _ in cell.errors] == ["TL144"]


@pytest.mark.parametrize("items", ["object()", "3.5", "None", "n"])
def test_a_comprehension_over_what_is_no_iterable_is_refused(items: str) -> None:
    cell = run_cell(kernel(f"x = [v for v in {items}]"))
    assert [code for code, _ in cell.errors] == ["TL111"]


def test_a_macro_that_was_refused_gives_no_value_that_could_be_refused_again() -> None:
    before = "@T.macro\ndef climb(v, d):\n    if d == 0:\n        return v\n    return climb(v + 1, d - 1)\n"
    cell = run_cell(kernel("for i in T.grid(2, 2):\n    out[0] = climb(n, 2)", before=before))
    assert [code for code, _ in cell.errors] == ["TL004"]


@pytest.mark.parametrize(
    "work",
    [
        "out.__setitem__(0, 1)",
        "T.fill(out, 1)",
        "T.fill(out)",
        "sink.append(out[0])",
        "give(out)",
    ],
)
@pytest.mark.parametrize("pool", [False, True])
def test_an_operation_in_another_thread_is_refused(capsys, work, pool):
    start = (
        "    with ThreadPoolExecutor(1) as pool: pool.submit(lambda: WORK)\n"
        if pool
        else "    thread = threading.Thread(target=lambda: WORK)\n    thread.start()\n    thread.join()\n"
    )
    before = "import threading\nfrom concurrent.futures import ThreadPoolExecutor\nsink = []\n"
    before += "@T.macro\ndef give(v):\n    v[0] = 1\n"
    helper = f"def helper(out, n):\n{start.replace('WORK', work)}"
    hook = threading.excepthook
    cell = run_cell(HEAD + before + helper + kernel("helper(out, n)\nout[1] = 2"))
    assert [code for code, _ in cell.marked()] == ["TL004"]
    assert cell.marked()[0][1] == "helper(out, n)"
    assert threading.excepthook is hook
    assert capsys.readouterr().err == ""
    assert not run_cell(HEAD + kernel("out[1] = 2")).errors


def test_a_truth_value_asked_for_in_another_thread_is_refused(capsys):
    helper = "import threading\ndef helper(n):\n    thread = threading.Thread(target=lambda: 1 if n > 3 else 2)\n"
    cell = run_cell(HEAD + helper + "    thread.start()\n    thread.join()\n" + kernel("helper(n)\nout[1] = 2"))
    assert cell.marked() == [("TL004", "helper(n)")]
    assert capsys.readouterr().err == ""


def test_python_in_another_thread_is_python():
    before = "import threading\nfound = []\n"
    helper = "def helper():\n    t = threading.Thread(target=lambda: found.append(5))\n"
    helper += "    t.start()\n    t.join()\n    return found[-1]\n"
    cell = run_cell(HEAD + before + helper + kernel("out[1] = helper()"))
    assert not cell.errors


def test_loops_and_macros_that_multiply_end_with_one_message():
    lines = [" " * depth + f"for i{depth} in list(range(9)):" for depth in range(7)]
    (found,) = run_cell(kernel("\n".join([*lines, " " * 7 + "pass"]))).diagnostics
    assert (found.code, found.span.line) == ("TL112", 12)
    assert "200,000" in found.message
    halving = "@T.macro\ndef halve(k):\n    if k > 0:\n        halve(k - 1)\n        halve(k - 1)\n"
    (found,) = run_cell(kernel("halve(30)", before=halving)).diagnostics
    assert found.code == "TL143"
    assert "20,000" in found.message


@pytest.mark.parametrize(
    "expression",
    [
        "n in tuple(range(10000))",
        "n in set(range(60000))",
        "any(a[i % 8] > i for i in range(3000))",
        "all(a[i % 8] > i for i in range(64))",
        "sum([n + i for i in range(20000)])",
        "max([n * i for i in range(3000)])",
    ],
)
def test_long_chains_are_built_in_pieces(expression):
    cell = run_cell(kernel(f"out[0] = {expression}"))
    a, out = np.arange(8, dtype=np.int32), np.zeros(8, np.int32)
    cell.run(a, out, np.zeros(8, np.float32), 3, 4)
    assert out[0] == int(eval(expression, {"a": a, "n": 3}))


def test_long_texts_of_a_cell_are_shortened():
    helpers = "def boom(): raise ValueError('x' * 10_000_000)\n"
    for body in ("boom()", "getattr(out, 'z' * 100000)", "out[0] = {}['k' * 1000000]"):
        (found,) = run_cell(kernel(body, before=helpers)).diagnostics
        assert len(str(found)) < 9000
    (found,) = run_cell(kernel("boom()", before=helpers)).diagnostics
    assert found.code == "TL144"
    assert "(10,000,000 characters)" in found.message
    assert len(found.message) < 600


def test_of_thousands_of_mistakes_the_first_are_shown():
    cell = run_cell(kernel("\n".join(f"out[0] = unknown{i}" for i in range(1500))))
    assert len(cell.errors) == 1500
    shown = render(cell.session.text, cell.diagnostics)
    assert len(shown) < 100_000
    assert "more: correct these first" in shown
    assert shown.endswith("1500 errors\n")


def test_an_annotation_in_quotes_that_is_no_python_is_a_syntax_error():
    (found,) = run_cell(kernel("o[0] = 1", parameters="o: \"T.Tensor((4,), 'int32'\"")).diagnostics
    assert found.code == "TL005"
    assert "the annotation of `o`" in found.message
    assert "unknown" not in found.message


def test_a_decorator_that_stands_twice_is_named():
    text = kernel("out[0] = 1").replace("@T.prim_func", "@T.prim_func\n@T.prim_func")
    (found,) = tilelang_nb.compile_cell(text, {}, target="sim").diagnostics
    assert (found.code, found.message) == ("TL004", "`@T.prim_func` stands before a kernel")


def test_a_cell_that_clears_the_modules_still_has_a_report(monkeypatch):
    compilation = tilelang_nb.compile_cell("1 + 1", {}, target="sim")
    compilation.to_json()
    monkeypatch.delitem(sys.modules, "tilelang_nb")
    assert compilation.to_json().startswith('{"format":"tilelang_nb.trace"')
