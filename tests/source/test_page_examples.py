"""The examples of the pages are true: the bad text gives the code of its page and no other, the good text nothing.

`pytest --update-goldens` also rewrites the `text said` blocks from what is really said.
"""

from __future__ import annotations

import re
import warnings

import pytest

import tilelang_nb
from tilelang_nb.runtime import cache
from tilelang_nb.source.catalogue import CATALOGUE
from tilelang_nb.source.catalogue.page import BLOCK, FOLDER, Page, page
from tilelang_nb.source.diagnostic import Diagnostic
from tilelang_nb.source.render import render
from tilelang_nb.source.text import Text


def found_in(text: str, run: str = "compile") -> tuple[Diagnostic, ...]:
    """What is said of a cell, and what the simulated device found in the launches that it makes.

    run: as in a page.
    """
    if run == "device":
        cell = tilelang_nb.compile_cell(text, {}, filename="In[1]", target="cuda", arch="sm_90a")
        assert cell.ok and all(kernel.ptx for kernel in cell.kernels.values()), cell.to_text()
        return tuple(found for kernel in cell.kernels.values() for found in kernel.diagnostics)
    namespace = {"T": tilelang_nb.language}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a launch with findings warns; the findings themselves are looked at
        compilation = tilelang_nb.compile_cell(text, namespace, filename="In[1]")
    found = list(compilation.diagnostics)
    for kernel in compilation.kernels.values():
        found += [finding for finding in kernel.findings if finding not in found]
    return tuple(found)


def said(about: Page, found: tuple[Diagnostic, ...]) -> str:
    """The first diagnostic as it is rendered; of a fault only its first line, the rest depends on the machine."""
    first = render(Text(about.bad, "In[1]"), found[:1]).rpartition("\n\n")[0]
    return first.partition("\n")[0] if about.run == "fault" else first


@pytest.fixture
def fault(monkeypatch):
    """A compiler that fails on every kernel."""

    def fail(*_, **__):
        raise RuntimeError("made on purpose")

    cache.clear()
    monkeypatch.setattr("tilelang_nb.runtime.build.lower", fail)
    yield
    cache.clear()  # a build that failed is kept as well


@pytest.mark.parametrize("code", CATALOGUE)
def test_the_bad_text_gives_exactly_its_code(code, request):
    about = page(code)
    if about.run == "fault":
        request.getfixturevalue("fault")
    found = found_in(about.bad, about.run)
    assert {diagnostic.code for diagnostic in found} == {code}, render(Text(about.bad, "In[1]"), found)
    rendered = said(about, found)
    if request.config.getoption("--update-goldens"):
        file = FOLDER / f"{code}.md"
        written = file.read_text(encoding="utf-8")
        block = next(match for match in BLOCK.finditer(written) if match[1] == "said")
        file.write_text(written[: block.start(2)] + rendered + "\n" + written[block.end(2) :], encoding="utf-8")
    else:
        assert rendered.startswith(about.said.rstrip("\n")), rendered


@pytest.mark.parametrize("code", CATALOGUE)
def test_the_good_text_gives_nothing(code):
    about = page(code)
    found = found_in(about.good, about.run)
    assert not found, render(Text(about.good, "In[1]"), found)


def test_findings_are_made_by_a_launch_in_the_example():
    for code in CATALOGUE:
        about = page(code)
        name = re.search(r"def (\w+)\([^)]*\)", about.bad.split("@T.prim_func")[-1])
        launches = bool(name and re.search(rf"^{name[1]}(\.compile)?\(", about.bad, re.MULTILINE))
        assert launches == (about.run in ("launch", "findings")), code
