"""Every sentence of the specification has a test, and every test of this folder says which sentences it covers."""

from __future__ import annotations

import ast
import re
from pathlib import Path

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


def test_every_sentence_has_a_test() -> None:
    covered = {number for text in HERE.values() for number in claimed(text)} | set(ELSEWHERE)
    assert not {number: text for number, text in SENTENCES.items() if number not in covered}


def test_what_is_named_elsewhere_exists() -> None:
    assert set(ELSEWHERE) <= set(SENTENCES) and all(ELSEWHERE.values())
    for file, _, test in (place.partition("::") for places in ELSEWHERE.values() for place in places):
        path = FOLDER.parent / file
        assert path.is_file() and (not test or test in docstrings(path)), file


def test_every_test_names_sentences_that_are_there() -> None:
    wrong = {name: text for name, text in HERE.items() if not set(claimed(text) or [""]) <= set(SENTENCES)}
    assert not wrong
