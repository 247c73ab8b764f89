"""Names say what a thing is, every public thing says its contract, and no file names a place on a machine."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

import pytest
from structure.package_files import ROOT, modules, tree

EMPTY_WORDS = re.compile(r"(?i)(^|_)(utils?|helpers?|managers?|misc|common|stuff)(_|$)|Utils?|Helper|Manager")
MACHINE_PATH = re.compile(r"(?<![\w.])/(home|root|work|Users|mnt|srv)/\w+")
TEXT_FILES = {".py", ".md", ".toml", ".ipynb", ".txt", ".yml", ".json", ".ts", ""}
LINES_PER_FILE = 500


def definitions(path: Path) -> list[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]:
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return [node for node in tree(path).body if isinstance(node, kinds)]


def tracked_files() -> list[Path]:
    """Files of the project: what version control lists, or everything outside hidden and built folders."""
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    if listing.returncode == 0 and listing.stdout:
        return [path for name in listing.stdout.split("\0") if name and (path := ROOT / name).is_file()]
    built = {"demo", "build", "dist", "node_modules", "__pycache__"}
    paths = (p for p in ROOT.rglob("*") if p.is_file())
    return [p for p in paths if not any(q in built or q.startswith(".") for q in p.relative_to(ROOT).parts)]


@pytest.mark.parametrize("module", modules())
def test_no_name_without_content(module: str) -> None:
    empty = [name for name in module.split(".")[1:] if EMPTY_WORDS.search(name)]
    public = [node.name for node in definitions(modules()[module]) if not node.name.startswith("_")]
    empty += [name for name in public if EMPTY_WORDS.search(name)]
    assert not empty, f"{module}: {empty} say nothing; name the subject"


@pytest.mark.parametrize("module", modules())
def test_modules_and_public_definitions_say_their_contract(module: str) -> None:
    path = modules()[module]
    body = tree(path).body
    missing = [] if ast.get_docstring(tree(path)) or not body else ["the module"]
    missing += [
        f"{node.name} (line {node.lineno})"
        for node in definitions(path)
        if not node.name.startswith("_") and not ast.get_docstring(node)
    ]
    assert not missing, f"{module} lacks the docstring of: {', '.join(missing)}"


def test_files_have_one_subject() -> None:
    """Near 400 lines is the aim; beyond this limit a file has two subjects."""
    lengths = {module: len(path.read_text(encoding="utf-8").splitlines()) for module, path in modules().items()}
    long = {module: lines for module, lines in lengths.items() if lines > LINES_PER_FILE}
    assert not long, f"split by subject: {long}"


def test_no_file_names_a_place_on_somebodys_machine() -> None:
    wrong = []
    for path in tracked_files():
        if path.suffix not in TEXT_FILES or path == Path(__file__).resolve():
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
            if MACHINE_PATH.search(line):
                wrong.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()[:100]}")
    assert not wrong, "\n".join(wrong)


def test_no_unfinished_marks() -> None:
    marks = re.compile(r"\b(TO" + r"DO|FIX" + r"ME|XX" + r"X)\b")
    wrong = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()[:100]}"
        for path in tracked_files()
        if path.suffix in (".py", ".md", ".ts")
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1)
        if marks.search(line)
    ]
    assert not wrong, "\n".join(wrong)
