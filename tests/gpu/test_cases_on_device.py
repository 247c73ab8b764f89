"""Every acceptance case does on a GPU what it asks for, but for those that ask what the simulated device finds."""

from __future__ import annotations

from pathlib import Path

import pytest
from case_oracle import expectations, run_case

CASES = sorted((Path(__file__).parents[1] / "cases").glob("c*.py"))
ON_DEVICE = [path for path in CASES if "EXPECT_FINDINGS" not in expectations(path.read_text(encoding="utf-8"))]


def test_all_but_a_few_cases_run() -> None:
    assert len(ON_DEVICE) >= len(CASES) - 5


@pytest.mark.timeout(120)
@pytest.mark.parametrize("path", ON_DEVICE, ids=lambda path: path.stem)
def test_case_on_a_device(path: Path) -> None:
    run_case(path.read_text(encoding="utf-8"), target="cuda")
