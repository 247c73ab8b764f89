"""Every sentence of the specification has a test, and every test of this folder says which sentences it covers."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from specification.sentences import ELSEWHERE, SENTENCES

FOLDER = Path(__file__).parent
CLAIM = re.compile(r"(?:P?\d+(?:\.\d+)?(?:, )?)+: ")


def docstrings(path: Path) -> dict[str, str]:
    """Docstrings of the tests of a file, by name."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")]
    return {node.name: ast.get_docstring(node) or "" for node in found}


HERE = {
    name: text
    for path in sorted(FOLDER.glob("test_*.py"))
    if path != Path(__file__)
    for name, text in docstrings(path).items()
}


def claimed(text: str) -> list[str]:
    """Numbers of the sentences that a docstring begins with."""
    found = CLAIM.match(text)
    return found.group().rstrip(": ").split(", ") if found else []


@pytest.mark.parametrize("number", SENTENCES)
def test_a_sentence_has_a_test(number: str) -> None:
    assert number in ELSEWHERE or any(number in claimed(text) for text in HERE.values()), SENTENCES[number]


@pytest.mark.parametrize("number", ELSEWHERE)
def test_what_is_named_elsewhere_exists(number: str) -> None:
    assert number in SENTENCES and ELSEWHERE[number]
    for place in ELSEWHERE[number]:
        file, _, test = place.partition("::")
        path = FOLDER.parent / file
        assert path.is_file() and (not test or test in docstrings(path)), place


@pytest.mark.parametrize("name", HERE)
def test_a_test_names_sentences_that_are_there(name: str) -> None:
    numbers = claimed(HERE[name])
    assert numbers and set(numbers) <= set(SENTENCES), HERE[name] or "no docstring"
