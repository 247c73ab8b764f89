"""The recipes of CONTRIBUTING.md speak of files and lines that are there."""

from __future__ import annotations

import re

import pytest
from structure.package_files import PACKAGE, ROOT

TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
EXCERPTS = re.findall(r"^ *```python (\S+)\n(.*?)^ *```", TEXT, re.MULTILINE | re.DOTALL)


def test_every_path_exists() -> None:
    paths = set(re.findall(r"`((?:tilelang_nb|tests)/[\w/.-]+)`", TEXT))
    assert len(paths) > 12
    assert not [path for path in paths if not (ROOT / path).exists()]


def test_the_recipes_quote_the_code() -> None:
    assert len(EXCERPTS) >= 7


@pytest.mark.parametrize(("path", "excerpt"), EXCERPTS, ids=[path for path, _ in EXCERPTS])
def test_excerpts_are_lines_of_their_files_in_order(path: str, excerpt: str) -> None:
    lines = iter((ROOT / path).read_text(encoding="utf-8").splitlines())
    for wanted in filter(None, (line.strip() for line in excerpt.splitlines())):
        assert any(wanted in line for line in lines), f"{path} does not say, in this order: {wanted}"


def test_the_map_names_every_part_in_the_order_of_imports() -> None:
    from structure.test_import_direction import ORDER

    named = re.findall(r"^\| `tilelang_nb/(\w+)(?:\.py)?` \|", TEXT, re.MULTILINE)
    there = {path.stem for path in PACKAGE.iterdir() if path.is_dir() or path.suffix == ".py"} - {
        "__pycache__",
        "__init__",
        "__main__",
    }
    assert set(named) == there
    ranks = [next(rank for rank, group in enumerate(ORDER) if name in group) for name in named]
    assert ranks == sorted(ranks)
