"""The static check says what the build says, and nothing of what the build accepts."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
import warnings
from functools import cache
from pathlib import Path

import pytest
from case_oracle import expectations
from frontend.cells import kernel

import tilelang_nb
from tilelang_nb.frontend.static import Checker, check_text
from tilelang_nb.source.catalogue import CATALOGUE
from tilelang_nb.source.catalogue.page import page
from tilelang_nb.source.diagnostic import Diagnostic
from tilelang_nb.source.document import Document, PlainCell
from tilelang_nb.source.render import render
from tilelang_nb.source.text import Text

TESTS = Path(__file__).parents[1]
CASES = sorted((TESTS / "cases").glob("c*.py"))
MISTAKES = sorted((TESTS / "mistakes").glob("[0-9]*.py"))
NOTEBOOKS = sorted((TESTS.parent / "notebooks").glob("*.ipynb"))
# Refusals that the text alone decides wherever it is reached.
OF_SYNTAX = frozenset(
    ["TL005", "TL101", "TL102", "TL103", "TL117", "TL120", "TL121", "TL122", "TL123", "TL124", "TL125", "TL127"]
)
# TL121 and TL127 that values decide.
BY_VALUES = (
    "in an operand that runs only under a condition",
    "a call of the kernel",
    "an eager kernel returns tensors that it makes",
)


@cache
def texts() -> dict[str, str]:
    found = {path.stem: path.read_text(encoding="utf-8") for path in [*CASES, *MISTAKES]}
    return found | {f"{code}-bad": page(code).bad for code in CATALOGUE if code != "TL900"}


def built(text: str) -> list[Diagnostic]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a launch with findings warns
        found = tilelang_nb.compile_cell(text, {}, filename="In[1]", target="sim", lower=False)
    return [d for d in found.diagnostics if d.severity == "error"]


def told(diagnostic: Diagnostic) -> tuple[object, ...]:
    return diagnostic.code, diagnostic.span, diagnostic.message, diagnostic.help, diagnostic.fixes


def shown(text: str, found: list[Diagnostic]) -> str:
    return render(Text(text, "In[1]"), tuple(found))


@pytest.mark.parametrize("name", texts())
def test_what_is_said_is_what_the_build_says(name: str) -> None:
    text = texts()[name]
    static, real = check_text(text, "In[1]"), built(text)
    known = {told(diagnostic) for diagnostic in real}
    more = [diagnostic for diagnostic in static if told(diagnostic) not in known]
    assert not more, f"{shown(text, more)}\nthe build says\n{shown(text, real)}"


@pytest.mark.parametrize("name", texts())
def test_every_mistake_of_syntax_is_found(name: str) -> None:
    text = texts()[name]
    static = {told(diagnostic) for diagnostic in check_text(text, "In[1]")}
    missed = [d for d in built(text) if d.code in OF_SYNTAX and told(d) not in static]
    missed = [d for d in missed if not any(words in d.message for words in BY_VALUES)]
    assert not missed, shown(text, missed)


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_a_case_without_a_mistake_is_clean(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    if "EXPECT" not in expectations(text):
        assert not check_text(text), shown(text, list(check_text(text)))


@pytest.mark.parametrize("code", CATALOGUE)
def test_the_good_text_of_a_page_is_clean(code: str) -> None:
    text = page(code).good
    assert not check_text(text), shown(text, list(check_text(text)))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_clean_but_for_cells_that_show_mistakes(path: Path) -> None:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    checker, wrong = Checker(), 0
    for part in Document.read(path).parts():
        if isinstance(part, PlainCell):
            checker.skip(part.lines)
        else:
            found = checker.check(part.text)
            meant = "raises-exception" in cells[(part.cell or 1) - 1]["metadata"].get("tags", ())
            assert bool(found) <= meant, render(part.text, found)
            wrong += bool(found)
    assert wrong or path.stem != "01_first_kernels"  # that one shows what a mistake looks like


def told_of(text: str) -> list[tuple[str, int]]:
    return [(d.code, d.span.line) for d in check_text(text) if d.span]


def test_nothing_heavy_is_loaded() -> None:
    code = f"from tilelang_nb.frontend.static import check_text; check_text({page('TL101').bad!r})"
    code += "\nimport sys; print(*{name.split('.')[0] for name in sys.modules})"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"tvm", "numpy"} & set(run.stdout.split())


BODY = """
def k(A: X.Tensor((8,), "int32")):
    with X.Kernel(1, threads=8) as b:
        x = y = A[b]
"""


@pytest.mark.parametrize(
    ("imports", "decorator", "owner"),
    [
        ("", "T.prim_func", "T"),
        ("import tilelang.language as X", "X.prim_func", "X"),
        ("import tilelang", "tilelang.language.prim_func", "tilelang.language"),
        ("from tilelang import language as L, jit as j", "j", "L"),
        ("from tilelang.language import prim_func as p", "p", "T"),
        ("from tilelang import *", "T.prim_func", "T"),
        ("import tilelang.language as X", "X.macro", "X"),
        ("", "jit(out_idx=-1)", "T"),
        ("", "T.prim_func(private=True)", "T"),
    ],
)
def test_kernels_are_found_under_every_name(imports: str, decorator: str, owner: str) -> None:
    text = f"{imports}\n@{decorator}{BODY.replace('X.', owner + '.')}"
    assert told_of(text) == [("TL101", 5)]


@pytest.mark.parametrize("head", ["T = object()", "def f(T):", "import numpy as T", "class T: pass"])
def test_another_meaning_of_a_name_is_respected(head: str) -> None:
    text = f"{head}\n" + "\n".join(("    " * head.endswith(":")) + line for line in f"@T.prim_func{BODY}".split("\n"))
    assert told_of(text.replace("X.", "T.")) == []


def test_a_factory_that_nobody_calls_is_checked() -> None:
    body = "\n".join("    " + line for line in f"@T.prim_func{BODY}".replace("X.", "T.").split("\n"))
    assert told_of(f"@tilelang.jit\ndef make(n):\n{body}\n    return k\n") == [("TL101", 6)]


KERNEL = """{before}
@T.prim_func
def k(A: T.Tensor((8,), "int32"), n: T.int32):
    with T.Kernel(1, threads=8) as b:
{body}
"""
# Statements, and what is said of them; several need what the text does not tell.
STATEMENTS = {
    "if FLAG:\n    x = y = 1": [],
    "if b < 3:\n    x = y = 1": ["TL101"],
    "if A[b] < n and A[b] > 0:\n    x = y = 1": ["TL101"],
    "if FLAG:\n    return\nx = y = 1": [],
    "for i in ():\n    x = y = 1": [],
    "while False:\n    x = y = 1": [],
    "for i in (1, 2):\n    if A[0] > 0:\n        break": ["TL110"],
    "for i in (1, 2):\n    if FLAG:\n        break": [],
    "for i in ITEMS:\n    if A[0] > 0:\n        break": [],
    "for i in T.serial(8):\n    if A[i] > 0:\n        break": [],
    "for i in T.Pipelined(8):\n    if A[i] > 0:\n        break": [],
    "for i in T.Parallel(8):\n    if A[i] > 0:\n        break": ["TL119"],
    "while True:\n    if FLAG:\n        break": [],
    "while True:\n    A[0] = 1": ["TL118"],
    "A[0] = missing": ["TL002"],
    "A[0] = missing if FLAG else 1": [],
    "A[0] = FLAG": [],
    "x = [missing for missing in ITEMS]": [],
    "f = lambda missing: missing": [],
    "A[0] = x\nx = 1": ["TL002"],
    "A[0, 0] = 1": ["TL201"],
    "A[ITEMS] = 1": [],
    "x = len(A) + len(ITEMS)": ["TL107"],
    "x = A @ A\ny = x @ x": ["TL137"],
    "T.copy(A, A, **ITEMS)": [],
    "T.copy(A, A, coalesce_width=2)": ["TL004"],
    "try:\n    x = y = 1\nfinally:\n    pass": ["TL120", "TL101"],
}


@pytest.mark.parametrize("statement", STATEMENTS)
def test_only_what_is_certain_is_said(statement: str) -> None:
    body = "\n".join("        " + line for line in statement.split("\n"))
    text = KERNEL.format(before="FLAG, ITEMS = make()", body=body)
    assert [code for code, _ in told_of(text)] == STATEMENTS[statement]


@pytest.mark.parametrize("before", ["from numpy import *", "exec(text)", "globals()['missing'] = 1"])
def test_a_name_that_may_be_bound_unseen_is_silent(before: str) -> None:
    assert told_of(KERNEL.format(before=before, body="        A[0] = missing")) == []


@pytest.mark.parametrize(
    ("cell", "codes"),
    [
        ("missing = 1", []),
        ("%%time\nmissing = 1", []),
        ("missing = !ls", []),
        ("%run other.py", []),
        ("%matplotlib inline\n!ls", ["TL002"]),
    ],
)
def test_cells_before_bind_names(cell: str, codes: list[str]) -> None:
    checker = Checker()
    checker.skip(cell.split("\n"))
    text = KERNEL.format(before="", body="        A[0] = missing")
    assert [d.code for d in checker.check(Text(text))] == codes


def test_the_factories_of_the_suite_and_the_cells_of_the_benchmarks_are_clean() -> None:
    factories = (TESTS / "kernels" / "factories.py").read_text(encoding="utf-8").replace("(T, ", "(")
    assert factories.count("@T.prim_func") > 3
    assert told_of(factories) == []
    cells = ast.parse((TESTS / "benchmarks" / "cells.py").read_text(encoding="utf-8"))
    texts_of_cells = [part.value for part in ast.walk(cells) if isinstance(part, ast.Constant)]
    kernels = [text for text in texts_of_cells if isinstance(text, str) and "T.prim_func" in text]
    assert kernels and [told_of(f"items = ()\n{text}") for text in kernels] == [[]] * len(kernels)


@pytest.mark.parametrize(
    "body",
    [
        "for i in range(4):\n    out[i] = late\n    late = i",
        "for i in range(4):\n    for v in [1, 2]:\n        out[i] = late\n        late = v",
        "out[0] = late\nlate = 3",
        "for i in range(4):\n    late += i",
        "for v in [1, 2]:\n    out[v] = late\n    late = v",
        "while late > 3:\n    late = 4",
    ],
)
def test_a_name_that_is_bound_further_on_is_said_as_the_build_says_it(body: str) -> None:
    text = kernel(body)
    assert [str(d) for d in check_text(text)] == [str(d) for d in built(text)] != []
