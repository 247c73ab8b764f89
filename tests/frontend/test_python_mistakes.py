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


def test_a_message_that_is_not_known_is_passed_on() -> None:
    found = python_mistake(f"something new of Python {sys.version_info.major}")
    assert found.problem.startswith("something new") and found.remedy == "correct the line"
