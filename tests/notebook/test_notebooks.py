"""The notebooks run from top to bottom; the cells meant to fail fail, the others do not."""

from __future__ import annotations

import ast
import os
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


def executed(path: Path) -> Any:
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(notebook, timeout=300, kernel_name="python3", extra_arguments=["--log-level=ERROR"])
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), before]))
    try:
        return client.execute()
    finally:
        os.environ.pop("PYTHONPATH")
        if before is not None:
            os.environ["PYTHONPATH"] = before


@pytest.fixture(scope="module")
def first() -> list[Any]:
    """The code cells of the first notebook after a run."""
    return [cell for cell in executed(ROOT / "notebooks/01_first_kernels.ipynb").cells if cell.cell_type == "code"]


def cell_with(cells: list[Any], text: str) -> Any:
    (found,) = [cell for cell in cells if text in cell.source]
    return found


def plain(cell: Any) -> str:
    """Everything a cell shows, as plain text."""
    shown = []
    for output in cell.outputs:
        if output.output_type == "stream":
            shown.append(output.text)
        elif output.output_type == "error":
            shown.append("\n".join(output.traceback))
        else:
            shown.append(output.data.get("text/plain", ""))
    return "\n".join(shown)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_no_outputs_are_kept_in_the_repository(path: Path) -> None:
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type == "code":
            assert cell.outputs == []
            assert cell.execution_count is None


def test_only_the_cells_meant_to_fail_fail(first: list[Any]) -> None:
    for cell in first:
        failed = any(output.output_type == "error" for output in cell.outputs)
        assert failed == ("raises-exception" in cell.metadata.get("tags", [])), cell.source


def test_every_kernel_cell_shows_its_stages(first: list[Any]) -> None:
    cells = [
        cell
        for cell in first
        if "@T.prim_func" in cell.source and "raises-exception" not in cell.metadata.get("tags", [])
    ]
    assert len(cells) >= 7
    for cell in cells:
        html = "".join(
            output.data.get("text/html", "") for output in cell.outputs if output.output_type == "display_data"
        )
        assert "<details" in html, cell.source


def test_results_stand_beside_the_stages(first: list[Any]) -> None:
    assert "array([" in plain(cell_with(first, "def add("))
    names = ast.literal_eval(plain(cell_with(first, "stage.changed")))
    assert {"tile", "lower-tile-operations"} <= set(names)


def test_the_race_is_found_at_its_line_and_the_repaired_kernel_is_clean(first: list[Any]) -> None:
    race = cell_with(first, "out[0] = out[0] + A[i]")
    line = 1 + race.source.split("\n").index("            out[0] = out[0] + A[i]")
    assert "error[TL401]" in plain(race)
    assert f"]:{line}:" in plain(race)
    for cell in first:
        if cell is not race:
            assert "TL401" not in plain(cell)


def test_the_three_mistakes_are_reported_at_once(first: list[Any]) -> None:
    said = plain(cell_with(first, "def mistakes("))
    assert [code for code in ("TL101", "TL003", "TL107") if code in said] == ["TL101", "TL003", "TL107"]
    assert "3 errors" in said
    assert "Traceback" not in said


def test_an_argument_that_does_not_fit_is_refused(first: list[Any]) -> None:
    assert "TL301" in plain(cell_with(first, "astype(np.float64)"))


def test_nothing_is_written_to_stderr(first: list[Any]) -> None:
    for cell in first:
        assert not [output for output in cell.outputs if output.get("name") == "stderr"], plain(cell)
