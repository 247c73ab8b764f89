"""Statements: those that a kernel may hold, and those that are refused by name."""

from __future__ import annotations

import ast

import numpy as np
import pytest
from specification.cells import cell, compiled, computes, emits, like_python, refuses, refuses_cell

import tilelang_nb


def test_with_takes_kernel_and_ws_only() -> None:
    """P38, 6.1: Another context manager is not entered."""
    before = (
        "import contextlib\nentered = []\n@contextlib.contextmanager\ndef mark():\n    entered.append(1)\n    yield\n"
    )
    body = (
        "with mark():  #!\n    out[0] = 1\nwith open('x') as source:  #!\n    out[0] = 1\nwith T.ws(0):\n    out[1] = 2"
    )
    made = refuses(
        body,
        ("TL104", "mark()", "host code"),
        ("TL104", "open('x')", "host code"),
        before=before,
        threads=128,
    )
    assert made.namespace["entered"] == []


def test_with_ws_runs_its_body_in_the_warp_groups_named() -> None:
    """P38, 6.1: Group g has the threads from 128 g on."""
    text = cell(
        "t = T.get_thread_binding()\nwith T.ws(0):\n    o[t] = 2\nwith T.ws(1, 2):\n    o[t] = 1",
        parameters='o: T.Tensor((384,), "int32")',
        threads=384,
    )
    o = np.zeros(384, np.int32)
    compiled(text).kernels["k"](o)
    assert np.array_equal(o, np.repeat([2, 1, 1], 128))


def test_functions_inside_a_kernel_are_refused_and_point_to_macros() -> None:
    """P35, 6.2: `def` and `async def`, also where they are never called; the name says nothing more."""
    refuses(
        "def twice(v):  #!\n    return v * 2\nasync def later(v):  #!\n    return v\nout[0] = twice(n) + later(1)",
        ("TL102", "def twice(v):", "@T.macro"),
        ("TL102", "async def later(v):", "@T.macro"),
    )


def test_classes_inside_a_kernel_are_refused_and_point_to_macros() -> None:
    """P36, 6.3: TL103."""
    refuses("class Point(object):  #!\n    x = 1\nout[0] = Point.x", ("TL103", "class Point(object):", "@T.macro"))


def test_pass_del_and_docstrings_are_fine() -> None:
    """6.4: And emit nothing."""
    body = '"""A docstring."""\nx, y = n, m\npass\ndel x, y\n"another"\nif n > 2:\n    pass\nout[0] = n'
    emits(body, 1)
    refuses("x = n\ndel x\nout[0] = x  #!\ndel x  #!", ("TL002", "x", "first"), ("TL002", "x", "first"))


REFUSED = {
    "try": ("try:  #!\n    out[0] = 1\nfinally:\n    pass", "TL120", "try:", "if"),
    "raise": ("raise ValueError(1)  #!", "TL122", "raise ValueError(1)", "T.device_assert"),
    "raise under a condition": ("if n > 2:\n    raise ValueError  #!", "TL122", "raise ValueError", "T.device_assert"),
    "global": ("global G  #!", "TL125", "global G", "@T.macro"),
    "import": ("import math  #!", "TL124", "import math", "top of the cell"),
    "from import": ("from math import pi  #!", "TL124", "from math import pi", "top of the cell"),
    "yield": ("yield n  #!", "TL123", "yield n", "buffer"),
    "yield from": ("x = yield from [1]  #!", "TL123", "yield from [1]", "buffer"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_statement_without_a_meaning_on_the_device_is_refused_with_the_reason(name: str) -> None:
    """6.5: Each with its code at its place."""
    body, code, at, word = REFUSED[name]
    refuses(body, (code, at, word))


def test_nonlocal_and_await_are_refused() -> None:
    """6.5: TL125, TL123."""
    text = "def make():\n    x = 1\n    @T.prim_func\n    def k(o: T.Tensor((4,), 'int32')):\n        nonlocal x  #!\n        with T.Kernel(1, threads=1):\n            o[0] = 1\n    return k\nmake()"
    refuses_cell(text, ("TL125", "nonlocal x", "`"))
    text = (
        "@T.prim_func\nasync def k(o: T.Tensor((4,), 'int32')):  #!\n    with T.Kernel(1, threads=1):\n        o[0] = 1"
    )
    made = tilelang_nb.compile_cell(text.replace("  #!", ""), target="sim")
    assert [(d.code, d.span.line) for d in made.diagnostics] == [("TL123", 2)]


def test_match_is_pythons_on_compile_time_values_and_refused_on_device_values() -> None:
    """6.5: TL126."""
    like_python("match [1, len('ab')]:\n    case [x, 2]:\n        out[0] = x + n\n    case _:\n        out[0] = 77")
    refuses("match n:  #!\n    case 3:\n        out[0] = 1", ("TL126", "match n:", "if"))


def test_a_bare_return_ends_the_kernel() -> None:
    """6.6: As the last statement."""
    computes("out[0] = n\nreturn", out=[3])
    computes("out[0] = n\nreturn None", out=[3])  # the same in Python


def test_a_return_elsewhere_or_with_a_value_is_refused() -> None:
    """6.7: Under a condition, in a loop, with statements after it; TL121."""
    refuses("if n > 2:\n    return  #!\nout[0] = 1", ("TL121", "return", "if"))
    refuses("for i in range(3):\n    return  #!", ("TL121", "return", "if"))
    refuses("out[0] = 1\nreturn n  #!", ("TL121", "return n", "buffer"))


def test_an_eager_kernel_returns_its_empty_tensors() -> None:
    """6.8: `return T.empty(...)`, alone and in a tuple."""
    text = """
import numpy as np
@tilelang.jit
def both(X):
    X: T.Tensor[[8], T.int32]
    Y = T.empty((8,), T.int32)
    Z = T.empty((8,), T.int32)
    with T.Kernel(1, threads=8):
        for i in T.Parallel(8):
            Y[i] = X[i] * 2
            Z[i] = X[i] + 1
    return Y, Z
both(np.arange(8, dtype=np.int32))
"""
    y, z = compiled(text).result
    assert y.tolist() == list(range(0, 16, 2)) and z.tolist() == list(range(1, 9))


STATEMENTS = {
    "FunctionDef": "def g():\n    pass", "AsyncFunctionDef": "async def g():\n    pass", "ClassDef": "class C:\n    pass",
    "Return": "return", "Delete": "del n", "Assign": "x = n", "AugAssign": "n += 1", "AnnAssign": "x: T.int32 = n",
    "For": "for i in range(n):\n    pass", "AsyncFor": "async for i in n:\n    pass", "While": "while n > 9:\n    pass",
    "If": "if n:\n    pass", "With": "with T.ws(0):\n    pass", "AsyncWith": "async with n:\n    pass",
    "Match": "match 1:\n    case _:\n        pass", "Raise": "raise n", "Try": "try:\n    pass\nfinally:\n    pass",
    "TryStar": "try:\n    pass\nexcept* ValueError:\n    pass", "Assert": "assert True", "Import": "import math",
    "ImportFrom": "from math import pi", "Global": "global G", "Nonlocal": "nonlocal out", "Expr": "n", "Pass": "pass",
    "Break": "for i in range(n):\n    break", "Continue": "for i in range(n):\n    continue",
    "TypeAlias": "type X = int",
}  # fmt: skip
EXPRESSIONS = {
    "BoolOp": "n and m", "NamedExpr": "(x := n)", "BinOp": "n + m", "UnaryOp": "-n", "Lambda": "(lambda v: v)(n)",
    "IfExp": "n if m else 1", "Dict": "{1: n}[1]", "Set": "len({1, 2})", "ListComp": "[i for i in (1, 2)][0]",
    "SetComp": "len({i for i in (1, 2)})", "DictComp": "{i: n for i in (1, 2)}[1]", "GeneratorExp": "sum(i for i in (1, 2))",
    "Await": "await n", "Yield": "(yield n)", "YieldFrom": "(yield from [n])", "Compare": "n < m", "Call": "abs(n)",
    "FormattedValue": "len(f'{3}')", "JoinedStr": "len(f'{3}')", "Constant": "3", "Attribute": "out.shape[0]",
    "Subscript": "out[0]", "Starred": "max(*[n, m])", "Name": "n", "List": "[n][0]", "Tuple": "(n, m)[0]",
    "Slice": "[1, 2, 3][1:2][0]", "TemplateStr": "t'{n}'", "Interpolation": "t'{n}'",
}  # fmt: skip


def concrete(base: type[ast.AST]) -> list[str]:
    """Classes of Python's grammar in this version, without the names that older versions had."""
    old = {"Num", "Str", "Bytes", "NameConstant", "Ellipsis", "Index", "ExtSlice"}
    return [
        cls.__name__ for cls in base.__subclasses__() if cls.__module__ in ("ast", "_ast") and cls.__name__ not in old
    ]


@pytest.mark.parametrize("name", concrete(ast.stmt))
def test_every_statement_class_is_handled_or_refused_by_name(name: str) -> None:
    """6.9: A walk over `ast`: the class compiles, or the diagnostics say what it is; never an internal error."""
    handled_or_refused(cell(STATEMENTS[name], threads=128), name)


@pytest.mark.parametrize("name", concrete(ast.expr))
def test_every_expression_class_is_handled_or_refused_by_name(name: str) -> None:
    """6.9: The same for expressions."""
    handled_or_refused(cell(f"out[0] = {EXPRESSIONS[name]}"), name)


def handled_or_refused(text: str, name: str) -> None:
    made = tilelang_nb.compile_cell(text, target="sim")
    errors = [d for d in made.diagnostics if d.severity == "error"]
    assert all(d.code not in ("TL900", "TL144") and d.help and d.span for d in errors), made.to_text()
    refused = {"FunctionDef", "AsyncFunctionDef", "ClassDef", "AsyncFor", "AsyncWith", "Raise", "Try", "TryStar"}
    refused |= {"Import", "ImportFrom", "Global", "Nonlocal", "Await", "Yield", "YieldFrom", "TypeAlias"}
    refused |= {"TemplateStr", "Interpolation"}
    assert bool(errors) == (name in refused), made.to_text()
