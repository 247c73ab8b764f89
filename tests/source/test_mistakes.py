"""What a beginner reads: the cells of `tests/mistakes`, each with what is said of it and what the first edits make of it.

The goldens are read as a newcomer reads them: the right place, plain words, one useful thing to write instead.
"""

from __future__ import annotations

import difflib
import json
from pathlib import Path

import numpy as np
import pytest

import tilelang_nb
from tilelang_nb.source.catalogue import CATALOGUE
from tilelang_nb.source.catalogue.page import page
from tilelang_nb.source.cures import CURES
from tilelang_nb.source.edits import apply, chosen
from tilelang_nb.source.render import render

CELLS = sorted((Path(__file__).parents[1] / "mistakes").glob("[0-9]*.py"))


def compiled(text: str) -> tilelang_nb.Compilation:
    """A cell whose first line is that of the magic."""
    names = {"T": tilelang_nb.language}
    return tilelang_nb.compile_cell(text, names, filename="In[1]", first_line=2, target="sim")


def edited(found: tilelang_nb.Compilation) -> str:
    """The difference that the first edit of every diagnostic makes; "" without edits."""
    made = apply(found.text, [edit for _, edit in chosen(found.diagnostics)])
    lines = difflib.unified_diff(found.text.source.split("\n"), made.split("\n"), lineterm="", n=0)
    return "\n".join(line.rstrip() for line in list(lines)[2:] if not line.startswith("@@"))


def shown(found: tilelang_nb.Compilation) -> str:
    """What is said, and the edits that are offered."""
    parts = [render(found.text, found.diagnostics) or "nothing is wrong\n"]
    titles = [f"{d.code}: {fix.title}" for d in found.diagnostics for fix in d.fixes]
    if titles:
        parts.append("edits:\n  " + "\n  ".join(titles) + "\n")
        parts.append(edited(found) + "\n")
    return "\n".join(parts)


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: cell.stem)
def test_what_a_beginner_reads(cell: Path, golden) -> None:
    golden(shown(compiled(cell.read_text(encoding="utf-8"))), f"mistakes/{cell.stem}.txt")


def kernel_of(name: str) -> tilelang_nb.Kernel:
    (cell,) = [cell for cell in CELLS if cell.stem.endswith(name)]
    (kernel,) = compiled(cell.read_text(encoding="utf-8")).kernels.values()
    return kernel


def test_a_sum_in_a_serial_loop_is_what_it_looks_like() -> None:
    a, sums = np.random.default_rng(1).standard_normal((64, 32), np.float32), np.zeros(64, np.float32)
    kernel_of("sum_in_serial_loop")(a, sums)
    np.testing.assert_allclose(sums, a.sum(1), rtol=1e-5)


def test_pythons_max_is_what_it_looks_like() -> None:
    a = np.linspace(-1, 1, 64, dtype=np.float32)
    expected = np.maximum(a, 0)
    kernel_of("builtin_max")(a)
    np.testing.assert_array_equal(a, expected)


def test_several_diagnostics_as_json(golden) -> None:
    (cell,) = [cell for cell in CELLS if cell.stem.endswith("three_at_once")]
    found = json.loads(compiled(cell.read_text(encoding="utf-8")).to_json())["diagnostics"]
    golden(json.dumps(found, indent=1, ensure_ascii=False) + "\n", "mistakes/three_at_once.json")


def with_an_edit() -> list[str]:
    return sorted({cls.code for cls in CURES} | {"TL005"})


def test_the_edits_of_every_page(golden) -> None:
    blocks = []
    for code in with_an_edit():
        found = compiled(page(code).bad)
        titles = "\n".join(f"  {fix.title}" for d in found.diagnostics for fix in d.fixes)
        blocks.append(f"{code} {CATALOGUE[code].slug}\n{titles or '  none for this text'}\n{edited(found)}\n")
    golden("\n".join(blocks), "mistakes/pages.txt")


@pytest.mark.parametrize("code", [code for code in CATALOGUE if code != "TL900"])
def test_the_help_is_one_line(code: str) -> None:
    said = page(code).said.rstrip().split("\n")
    assert sum(line.lstrip().startswith("= help:") for line in said) == 1
    assert said[-1].lstrip().startswith("= help:")
