"""Every acceptance case does what it asks for on the simulated device."""

from __future__ import annotations

from pathlib import Path

import pytest
from case_oracle import run_case

CASES = sorted((Path(__file__).parent / "cases").glob("c*.py"))


def test_the_cases_are_there() -> None:
    assert len(CASES) >= 147


@pytest.mark.timeout(60)
@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_case(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_case(path.read_text(encoding="utf-8"))
