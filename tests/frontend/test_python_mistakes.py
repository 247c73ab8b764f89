"""What is said of texts that are no Python: plain words, and one thing to do."""

from __future__ import annotations

import sys

import pytest

import tilelang_nb
from tilelang_nb.frontend.python_mistakes import python_mistake

TEXTS = {
    "if 1 > 0\n    x = 1": "add the `:`",
    "x = (1 + 2": "add the closing bracket",
    "x = 1)": "leave this bracket out",
    "x = (1]": "of one kind",
    "x = 'abc": "the quote that it begins with",
    "if True:\nx = 1": "indented by four spaces",
    "x = 1\n  y = 2": "where the line above begins",
    "if True:\n    x = 1\n  y = 2": "of the block around",
    "x = [1 2]": "add the `,`",
    "if x = 1:\n    pass": "write `==`",
    "f() = 1": "left of `=`",
    "f(a=1, 2)": "before the others",
    "x = 1；y": "write `;` in its place",
    "x = “abc”": 'write `"` in its place',
    "x = 3 − 2": "write `-` in its place",
    "x = 3 ≤ 2": "write `<=` in its place",
    "x =\u00a03": "put a space in its place",
    "\ufeffx = 3": "remove the character",
    "x\u200b = 3": "remove the character",
    "x = 3 € 2": "another in its place",
    "x = " + "(" * 250 + "1" + ")" * 250: "names or `@T.macro` for the parts",
    "x = 1abc": "between them",
    "for for": "missing or too many",
    "return 1": "into a function",
    "break": "into a loop",
}


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_that_is_no_python_gets_one_thing_to_do(text: str) -> None:
    (found,) = tilelang_nb.compile_cell(text).diagnostics
    assert found.code == "TL005" and TEXTS[text] in found.help, found
    assert "invalid" not in found.message and found.span is not None


@pytest.mark.parametrize("character", ["\0", "\ud800"])
def test_a_character_that_no_text_holds_is_pointed_at(character: str) -> None:
    (found,) = tilelang_nb.compile_cell(f"    \nx = 1\ny = {character}2").diagnostics
    assert found.code == "TL005" and f"(U+{ord(character):04X})" in found.message
    assert found.span is not None and (found.span.line, found.span.column, found.span.end_column) == (3, 4, 5)


KERNEL = """import numpy as np
import tilelang.language as T
@T.prim_func
def k(a: T.Tensor((8,), "int32"), n: T.int32):
    with T.Kernel(1, threads=1):
        {}
"""


@pytest.mark.parametrize("loops", [19, 24, 60])
def test_loops_that_are_nested_too_deep_are_said_once(loops: int) -> None:
    head = KERNEL.format("x = 1")
    lines = [f"{' ' * (8 + at)}for i{at} in range(1):" for at in range(loops)]
    cell = "\n".join([head.rstrip(), *lines, f"{' ' * (8 + loops)}a[0] = 1\n"])
    found = tilelang_nb.compile_cell(cell).diagnostics
    assert [one.code for one in found if one.code != "TL005"] == ["TL127"]
    assert len(found) == 1 + (loops > 19)


def test_a_method_as_a_kernel_is_told_to_be_a_static_one() -> None:
    text = 'class K:\n    @T.prim_func\n    def k(self, a: T.Tensor((8,), "int32")):\n        pass\n'
    (found,) = tilelang_nb.compile_cell(text).diagnostics
    assert found.code == "TL207" and "`@staticmethod` above the kernel, and leave out `self`" in found.help


def test_a_store_into_a_module_is_one_into_an_object_of_the_host() -> None:
    """NumPy's module has functions called `shape` and `dtype`."""
    (found,) = tilelang_nb.compile_cell(KERNEL.format("np[n] = a[0]")).diagnostics
    assert found.code == "TL116" and "a module" in found.message


def test_a_step_that_is_no_number_is_named_by_its_type() -> None:
    (found,) = tilelang_nb.compile_cell(KERNEL.format("T.copy(a[0:4:np], a[4:8])")).diagnostics
    assert found.code == "TL203" and found.message == "a slice of `a` with step a module"


def test_a_message_that_is_not_known_is_passed_on() -> None:
    found = python_mistake(f"something new of Python {sys.version_info.major}")
    assert found.problem.startswith("something new") and found.remedy == "correct the line"
