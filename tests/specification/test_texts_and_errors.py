"""Where the text of a kernel comes from, and how mistakes are reported."""

from __future__ import annotations

import importlib.util
import inspect
import linecache
from pathlib import Path

import numpy as np
import pytest
from specification.cells import INTERNALS, cell, compiled, refuses, refuses_cell

import tilelang_nb
from tilelang_nb.frontend.static import check_text
from tilelang_nb.runtime import build, cache

KERNEL = '@T.prim_func\ndef k(o: T.Tensor((4,), "int32")):\n    with T.Kernel(1, threads=1):\n        o[0] = 5\n'
MISTAKES = """
@T.prim_func
def first(o: T.Tensor((8,), "int32"), n: T.int32):
    with T.Kernel(1, threads=1):
        x = y = n  #!
        o[0] = x + y
        p = nope(n)  #!
        q = p + 1
        for i in p:
            o[i] = q
        o[1] = n / 2  #!

@T.prim_func
def second(o: T.Tensor((8,), "int32")):
    with T.Kernel(1, threads=1):
        o[8] = 1  #!
        o[0] = len(o)  #!
"""


def test_the_conventional_names_are_there_and_may_be_imported() -> None:
    """P0: `import tilelang`, `import tilelang.language as T`, `from tilelang import jit`."""
    head = "import tilelang\nimport tilelang.language as T\nfrom tilelang import jit\n"
    compiled(head + KERNEL + "jit, tilelang.language is T")
    assert compiled("tilelang.language is T and tilelang.jit is jit").result is True


def test_the_text_of_a_cell_is_the_text_handed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """1.1, 1.3: No source is looked up anywhere, neither in a history nor in a file."""

    def nowhere(*_: object, **__: object) -> None:
        raise OSError("no text here")

    for name in ("getsource", "getsourcelines", "getsourcefile", "findsource"):
        monkeypatch.setattr(inspect, name, nowhere)
    monkeypatch.setattr(linecache, "getlines", nowhere)
    names: dict = {"text": KERNEL, "tilelang_nb": tilelang_nb}
    exec("c = tilelang_nb.compile_cell(text, target='sim')", names)
    o = np.zeros(4, np.int32)
    assert names["c"].ok
    names["c"].kernels["k"](o)
    assert o[0] == 5


def test_a_kernel_of_a_module_has_the_text_of_its_file(tmp_path: Path) -> None:
    """1.2: Its lines are those of the file."""
    path = tmp_path / "kernels_of_a_file.py"
    path.write_text("import tilelang_nb.language as T\n\n\n" + KERNEL.replace("= 5", "= nope"))
    spec = importlib.util.spec_from_file_location("kernels_of_a_file", path)
    with pytest.raises(tilelang_nb.CompileError) as caught:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))
    assert [(d.code, d.span.line) for d in caught.value.diagnostics] == [("TL002", 7)]


def test_text_that_cannot_be_had_is_a_diagnostic() -> None:
    """1.4: TL001 at the line that made the function, never OSError."""
    text = f"text = {KERNEL!r}\nexec(text)  #!"
    refuses_cell(text, ("TL001", "exec(text)", "cell"))


def test_annotations_may_be_strings_or_postponed() -> None:
    """1.5: And name closure variables that occur nowhere else in the function."""
    factory = """
{future}
def make(rows, kind):
    @T.prim_func
    def k(o: {quote}T.Tensor((rows,), kind){quote}):
        with T.Kernel(1, threads=1):
            o[0] = 5
    return k
make(4, "int32")
"""
    for future, quote in (("", ""), ("", "'"), ("from __future__ import annotations", "")):
        k = compiled(factory.format(future=future, quote=quote)).result
        o = np.zeros(4, np.int32)
        k(o)
        assert o[0] == 5


def test_lines_are_those_that_the_user_sees() -> None:
    """1.6: The magic line is line 1 of a cell, so its body begins at line 2, in spans and in the report."""
    text = cell("x = y = n  #!")
    made = refuses_cell(text, ("TL101", "x = y = n", "y = x"), first_line=2, filename="In[7]")
    assert made.diagnostics[0].span.line == 5 and "--> In[7]:5:9" in made.to_text()


def test_columns_count_characters() -> None:
    """1.7: Letters of several bytes left of the caret do not shift it."""
    made = refuses_cell(cell("größe = 'é日本'; ñ = q = n  #!"), ("TL101", "ñ = q = n", "q = ñ"))
    assert made.diagnostics[0].span.column == 8 + len("größe = 'é日本'; ")
    lines = made.to_text().split("\n")
    shown = next(line for line in lines if "größe" in line)
    assert "^" in lines[lines.index(shown) + 1]


def test_all_independent_mistakes_are_reported_in_one_go_sorted_by_line() -> None:
    """8.1: Of all kernels of the cell."""
    refuses_cell(
        MISTAKES,
        ("TL101", "x = y = n", "y = x"),
        ("TL002", "nope", "first"),
        ("TL136", "n / 2", "//"),
        ("TL202", "o[8]", "0..7"),
        ("TL107", "len(o)", "o.shape[0]"),
    )


SEVERAL_IN_ONE = {
    "operands": ("res[0] = nope * f[0, 1]", ["TL002 nope", "TL201 f[0, 1]"]),
    "target": ("res[0, 1] = nope", ["TL201 res[0, 1]", "TL002 nope"]),
    "targets": ("res[nope], out[9] = n, len(f)", ["TL002 nope", "TL202 out[9]", "TL107 len(f)"]),
    "augmented": ("res[nope] += nix", ["TL002 nope", "TL002 nix"]),
    "chain": ("x = y = f[0, 1] + nope", ["TL101 x = y = f[0, 1] + nope", "TL201 f[0, 1]", "TL002 nope"]),
    "call": ("T.copy(nope, f[0, 1], foo=1)", ["TL002 nope", "TL201 f[0, 1]", "TL004 foo"]),
    "dtype": ("s = T.alloc_shared((nope,), 'flaot32')", ["TL002 nope", "TL205 'flaot32'"]),
    "header": ("for i in T.Parallel(nope, nix):\n    res[i] = nada", ["TL002 nope", "TL002 nix", "TL002 nada"]),
    "behind a poisoned name": ("x = nope\nres[0] = x + f[0, 1]", ["TL002 nope", "TL201 f[0, 1]"]),
    "the same again": ("res[0] = nope * nope", ["TL002 nope"]),
    "what follows from it": ("res[nope] = f[nope] + [nope][0]", ["TL002 nope"]),
    "what may be avoided": ("res[0] = (nope and nix) + (1 if nope else nada)", ["TL002 nope"]),
    "what is built anyway": ("res[0] = nope if n > 0 else nada", ["TL002 nope", "TL002 nada"]),
}


@pytest.mark.parametrize("name", SEVERAL_IN_ONE)
def test_a_statement_gives_each_of_its_independent_mistakes_once(name: str) -> None:
    """8.1: In every operand that is evaluated whatever the others are; what follows from another is not said."""
    body, expected = SEVERAL_IN_ONE[name]
    made = tilelang_nb.compile_cell(cell(body), target="sim")
    assert [f"{d.code} {made.text.slice(d.span)}" for d in made.diagnostics] == expected, made.to_text()
    known = [f"{d.code} {made.text.slice(d.span)}" for d in check_text(cell(body))]
    assert known and set(known) <= set(expected)


def test_names_of_a_refused_statement_are_poisoned() -> None:
    """8.2: No follow-up message speaks of them, over several steps."""
    refuses_cell(
        cell(
            "x = nope  #!\ny = x + 1\nz = [y, n]\nfor v in z:\n    out[v] = v\nif y > 2:\n    w = y\nout[0] = w\nq = z[0] / 2"
        ),
        ("TL002", "nope", "first"),
    )


def test_what_a_refused_condition_might_have_ended_gives_no_second_message() -> None:
    """8.2: A loop that it might have left, a recursion that it might have ended, a name that its walrus would bind."""
    refuses_cell(
        cell("for v in itertools.count():\n    if nope == 6:  #!\n        break\n    out[v] = 1", "import itertools"),
        ("TL002", "nope", "first"),
    )
    macro = "@T.macro\ndef climb(v, depth):\n    if nope == 0:  #!\n        return v\n    return climb(v, depth - 1)\n"
    refuses_cell(cell("out[0] = climb(n, 3)", macro), ("TL002", "nope", "first"))
    refuses_cell(cell("out[0] = (p := nope) + (q := p * 2) + q  #!"), ("TL002", "nope", "first"))


def test_no_traceback_and_no_internal_name_reaches_the_user() -> None:
    """8.3: In text, HTML and JSON; exceptions of the user's own code are shown at their line of the cell."""
    text = cell("out[0] = table['missing']  #!\nout[1] = 1 // zero  #!", "table = {}\nzero = 0")
    made = refuses_cell(text, ("TL144", "table['missing']", "Python"), ("TL144", "1 // zero", "Python"))
    assert "KeyError" in made.diagnostics[0].message and "ZeroDivisionError" in made.diagnostics[1].message
    for report in (made.to_text(), made.to_html(), made.to_json()):
        assert not INTERNALS.search(report)


def test_an_exception_of_host_code_says_what_to_do() -> None:
    """8.3: A name of the cell that is nearest, an import that is missing; a refused kernel called in another one."""
    for text, word in (
        ("total = 1\nprint(totl)", "`total`"),
        ("x = np.ones(3)", "import numpy"),
        ("import nump", "install"),
    ):
        (found,) = tilelang_nb.compile_cell(text).diagnostics
        assert found.code == "TL144" and word in found.help and found.label == "Python raised this"
    text = cell("x = y = n  #!").replace("def k(", "def inner(") + cell("inner(a, f, out, res, n, m)  #!")
    refuses_cell(text, ("TL101", "x = y = n", "y = x"), ("TL127", "inner(a, f, out, res, n, m)", "@T.macro"))


def test_an_internal_failure_is_tl900_and_keeps_the_session_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    """8.4: With a short report to copy; the next cell works."""
    cache.clear()

    def fault(*_: object, **__: object) -> None:
        raise RuntimeError("lost")

    with monkeypatch.context() as patch:
        patch.setattr(build, "lower", fault)
        (diagnostic,) = tilelang_nb.compile_cell(KERNEL, target="sim").diagnostics
    assert diagnostic.code == "TL900" and "RuntimeError: lost" in diagnostic.help and len(diagnostic.help) < 200
    cache.clear()
    compiled(KERNEL)


HOSTILE = {
    "endless list": ("x = list(itertools.count())", "TL112"),
    "endless sum": ("x = sum(itertools.repeat(1))", "TL112"),
    "endless membership": ("x = -1 in itertools.count()", "TL112"),
    "endless comprehension": ("x = [i for i in itertools.count()]", "TL112"),
    "recursion of a lambda": ("f = lambda v: f(v)\nx = f(n)", "TL127"),
    "exit": ("exit()", "TL144"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_nothing_in_a_cell_hangs_or_ends_the_process(name: str) -> None:
    """8.5: Endless iterables in every consumer, endless recursion, `exit`."""
    body, code = HOSTILE[name]
    made = tilelang_nb.compile_cell(cell(body, "import itertools"), target="sim")
    assert [d.code for d in made.diagnostics if d.severity == "error"] == [code], made.to_text()


def test_what_a_container_lacks_after_a_refused_statement_gives_no_second_message() -> None:
    """8.2: Items that are stored or appended."""
    refuses(
        "box, rows = {0: 1}, [[]]\nbox[1] = n / m  #!\nrows[0].append(a[9])  #!\nout[0] = box[1] + rows[0][0]\n"
        "for i in range(box[1]):\n    out[i] = zzz  #!",
        ("TL136", "n / m", "n // m"),
        ("TL202", "a[9]", "0..7"),
        ("TL002", "zzz", "first"),
    )


def test_a_while_loop_whose_body_is_refused_is_not_called_endless() -> None:
    """8.2: What was refused may be what ends it."""
    refuses(
        "stack = [1]\nwhile stack:\n    stack.pop()  #!\nout[0] = 1",
        ("TL133", "stack.pop()", "buffer"),
    )
