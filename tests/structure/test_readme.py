"""The cells of the README give what the README says they give."""

from __future__ import annotations

import re

import numpy as np
import pytest
from structure.package_files import ROOT

import tilelang_nb
from tilelang_nb.source.render import render

README = (ROOT / "README.md").read_text(encoding="utf-8")
CELL = re.compile(
    r"```python\n%%tilelang[^\n]*\n(?P<body>.*?)```\s*\n```text(?P<kind>[^\n]*)\n(?P<said>.*?)```", re.DOTALL
)
CELLS = list(CELL.finditer(README))


def test_the_readme_has_cells_with_their_output() -> None:
    assert [cell["kind"].strip() for cell in CELLS] == ["result", "result", ""]


@pytest.mark.parametrize("cell", CELLS)
def test_a_cell_gives_the_output_below_it(cell: re.Match[str]) -> None:
    compilation = tilelang_nb.compile_cell(cell["body"], {"np": np}, filename="In[3]", first_line=2, target="sim")
    if cell["kind"].strip() == "result":
        assert compilation.ok, compilation.to_text()
        assert repr(compilation.result) == cell["said"].rstrip("\n")
    else:
        assert render(compilation.text, compilation.diagnostics) == cell["said"]


def test_the_commands_of_the_readme_are_in_the_makefile() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in {one or other for one, other in re.findall(r"^make (\w+)|`make (\w+)`", README, re.MULTILINE)}:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"])
def test_links_to_files_of_the_project_lead_somewhere(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    links = [link for link in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in link]
    links += re.findall(r'(?:src|srcset)="([^"]+)"', text)
    missing = [link for link in links if not (ROOT / link.partition("#")[0]).exists()]
    assert not missing
