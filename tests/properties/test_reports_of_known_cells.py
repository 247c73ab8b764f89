"""The report of every cell of the suite (acceptance cases, beginners' mistakes, pages of the codes) shows nothing of the
compiler, and every place in it lies in the cell.
"""

from __future__ import annotations

import contextlib
import io
import warnings
from pathlib import Path

import pytest
from properties.reporting import WORDS, compiled

from tilelang_nb.source.catalogue import CATALOGUE
from tilelang_nb.source.catalogue.page import page

TESTS = Path(__file__).parents[1]
CELLS = {
    path.stem: path.read_text(encoding="utf-8")
    for name in ("cases", "mistakes")
    for path in (TESTS / name).glob("*.py")
}
CELLS |= {f"{code} bad": page(code).bad for code in CATALOGUE} | {f"{code} good": page(code).good for code in CATALOGUE}


@pytest.mark.parametrize("name", sorted(CELLS))
def test_a_report_is_clean(name: str) -> None:
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")  # a launch with findings warns
        made = compiled(CELLS[name], seconds=60)
    for kernel in made.kernels.values():
        for finding in kernel.findings if kernel.program is not None else ():
            assert not WORDS.search(" ".join([finding.message, finding.help, finding.label, *map(str, finding.notes)]))


def test_what_is_looked_for_would_be_found() -> None:
    for text in (
        "a Dtype",
        "'Value' object",
        "module tilelang_nb.frontend.walk",
        "<x object at 0x7f>",
        "tirx.exp",
        "a NoneType",
    ):
        assert WORDS.search(text), text
    for text in (
        "a value",
        "`T.Tensor` without a shape",
        "give the text to `tilelang_nb.compile_cell`",
        "a buffer region",
    ):
        assert not WORDS.search(text), text
