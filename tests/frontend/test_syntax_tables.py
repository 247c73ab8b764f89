"""Syntax is decided, never discovered: every class of Python's grammar stands in exactly one table."""

from __future__ import annotations

import ast
import inspect

import pytest
from frontend.cells import kernel, run_cell

from tilelang_nb.frontend import expressions, syntax
from tilelang_nb.frontend.assign import IN_PLACE

DEPRECATED = {
    "Num",
    "Str",
    "Bytes",
    "NameConstant",
    "Ellipsis",
    "Index",
    "ExtSlice",
    "Suite",
    "AugLoad",
    "AugStore",
    "Param",
}


def classes(base: type[ast.AST]) -> list[type[ast.AST]]:
    return [
        cls for cls in base.__subclasses__() if cls.__name__ not in DEPRECATED and cls.__module__ in ("ast", "_ast")
    ]


@pytest.mark.parametrize("cls", classes(ast.stmt), ids=lambda cls: cls.__name__)
def test_every_statement_class_is_handled_or_refused(cls: type[ast.stmt]) -> None:
    assert (cls in syntax.HANDLERS) + (cls.__name__ in syntax.REFUSALS) == 1


@pytest.mark.parametrize("cls", classes(ast.expr), ids=lambda cls: cls.__name__)
def test_every_expression_class_is_handled_or_refused(cls: type[ast.expr]) -> None:
    assert (cls.__name__ in expressions.HANDLED) + (cls.__name__ in expressions.REFUSED) == 1


@pytest.mark.parametrize(
    ("base", "table"),
    [
        (ast.operator, expressions.BINARY_OPERATORS),
        (ast.operator, IN_PLACE),
        (ast.unaryop, expressions.UNARY_OPERATORS),
        (ast.cmpop, expressions.COMPARISONS),
    ],
)
def test_every_operator_is_known(base: type[ast.AST], table: dict) -> None:
    assert set(classes(base)) == set(table)


def test_the_tables_name_only_what_some_python_has() -> None:
    later = {"TryStar", "TypeAlias", "TemplateStr", "Interpolation"}
    names = {*(cls.__name__ for cls in syntax.HANDLERS), *syntax.REFUSALS, *expressions.HANDLED, *expressions.REFUSED}
    known = {name for name, cls in vars(ast).items() if inspect.isclass(cls)}
    assert names - known <= later


REFUSED = {
    "try:\n    pass\nfinally:\n    pass": "TL120",
    "raise ValueError": "TL122",
    "import math": "TL124",
    "from math import pi": "TL124",
    "global x": "TL125",
    "def g():\n    pass": "TL102",
    "async def g():\n    pass": "TL102",
    "class G:\n    pass": "TL103",
    "yield n": "TL123",
    "x = yield n": "TL123",
    "yield from [n]": "TL123",
    'with open("no such file"):\n    pass': "TL104",
    "with T.Kernel(1) as x, T.ws(0):\n    pass": "TL104",
    "a.x = 1": "TL127",
    "a.x += 1": "TL127",
    "del a[0]": "TL127",
    "return 3": "TL121",
    "x = y = 1": "TL101",
    "for i in range(n):\n    pass\nelse:\n    pass": "TL117",
}


@pytest.mark.parametrize("statement", REFUSED)
def test_a_refused_statement_is_named_at_its_line(statement: str) -> None:
    cell = run_cell(kernel("out[0] = 1\n" + statement + "\nout[1] = 1"))
    assert [code for code, _ in cell.errors] == [REFUSED[statement]]
    assert cell.errors[0][1] >= 7


def test_async_forms_are_refused() -> None:
    loop = (
        "import tilelang.language as T\n@T.prim_func\nasync def k(a: T.int32):\n    async for i in a:\n        pass\n"
    )
    assert run_cell(loop).errors == [("TL123", 3)]
