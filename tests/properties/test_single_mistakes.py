"""One wrong name in a right kernel gives one message, at that name: nothing that follows from it is said."""

from __future__ import annotations

import ast
import contextlib
import io
import random
import warnings
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties.amounts import TIMEOUT, amount
from properties.mutations import cells

import tilelang_nb

NAME = "undefined_name"
# Which branch is built follows from the name here, so the other one is searched too.
DECIDED_BY_A_NAME = ("MODE ==",)


def compiled(text: str) -> tilelang_nb.Compilation:
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        return tilelang_nb.compile_cell(text, {}, target="sim")


@cache
def right_cells() -> dict[str, tuple[ast.Name, ...]]:
    """Texts of the acceptance cases that compile, with the names that their kernels and macros read."""
    found = {}
    for text in cells():
        try:
            tree = ast.parse(text)
        except SyntaxError:  # `T.assert`
            continue
        if any(words in text for words in DECIDED_BY_A_NAME):
            continue
        made = compiled(text)
        built = [kernel for kernel in made.kernels.values() if kernel.program is not None]
        functions = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.decorator_list]
        names = [
            part
            for function in functions
            for statement in function.body
            for part in ast.walk(statement)
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load)
        ]
        if made.ok and built and names:
            found[text] = tuple(names)
    return found


def replaced(text: str, node: ast.Name) -> str:
    lines = text.split("\n")
    line = lines[node.lineno - 1].encode()
    lines[node.lineno - 1] = (line[: node.col_offset] + NAME.encode() + line[node.end_col_offset :]).decode()
    return "\n".join(lines)


@pytest.mark.timeout(TIMEOUT)
def test_one_wrong_name_gives_one_message(record_property: Any) -> None:
    texts = right_cells()
    assert len(texts) > 60
    tried = said = 0

    @amount(150, 3000)
    @given(st.sampled_from(sorted(texts)), st.randoms(use_true_random=False))
    def check(text: str, source: random.Random) -> None:
        nonlocal tried, said
        damaged = replaced(text, source.choice(texts[text]))
        made = compiled(damaged)
        errors = [found for found in made.diagnostics if found.severity == "error"]
        tried += 1
        said += bool(errors)  # a name that no kernel reads while it is built, in dead code, is not said
        for error in errors:
            assert error.code == "TL002" and error.message == f"`{NAME}` is not defined", f"{damaged}\n{made.to_text()}"
            lazy = any("generator" in note.message for note in error.notes)  # its reader is the place
            assert lazy or NAME in made.text.slice(error.span)
        assert len({error.span for error in errors}) <= 1

    check()
    record_property("single mistakes", f"{tried} tried, {said} said")
    assert said > tried * 0.9
