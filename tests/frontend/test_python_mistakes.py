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
    "x = 1；y": "another in its place",
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
