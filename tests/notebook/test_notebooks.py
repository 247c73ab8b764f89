"""The notebooks run from top to bottom; the cells meant to fail fail, the others do not.

Their cells check results themselves, so that a wrong result is a cell that fails.
"""

from __future__ import annotations

import ast
import os
import re
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


def code_cells(name: str) -> list[Any]:
    """The code cells of a notebook after a run."""
    return [cell for cell in executed(ROOT / f"notebooks/{name}.ipynb").cells if cell.cell_type == "code"]


@pytest.fixture(scope="module")
def first() -> list[Any]:
    return code_cells("01_first_kernels")


@pytest.fixture(scope="module")
def matmul() -> list[Any]:
    return code_cells("02_matmul")


@pytest.fixture(scope="module")
def attention() -> list[Any]:
    return code_cells("03_flash_attention")


@pytest.fixture(scope="module")
def hopper() -> list[Any]:
    return code_cells("04_hopper")


@pytest.fixture(params=["first", "matmul", "attention", "hopper"])
def cells(request: pytest.FixtureRequest) -> list[Any]:
    """The code cells of each notebook."""
    return request.getfixturevalue(request.param)


def test_every_notebook_is_among_those_that_run() -> None:
    names = ["01_first_kernels", "02_matmul", "03_flash_attention", "04_hopper"]
    assert [path.stem for path in NOTEBOOKS] == names


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


def test_only_the_cells_meant_to_fail_fail(cells: list[Any]) -> None:
    for cell in cells:
        failed = any(output.output_type == "error" for output in cell.outputs)
        assert failed == ("raises-exception" in cell.metadata.get("tags", [])), cell.source


def test_every_kernel_cell_shows_its_stages(cells: list[Any]) -> None:
    kernels = [
        cell
        for cell in cells
        if "@T.prim_func" in cell.source and "raises-exception" not in cell.metadata.get("tags", [])
    ]
    assert kernels
    for cell in kernels:
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


def test_each_step_of_the_product_shows_what_it_saves(matmul: list[Any]) -> None:
    def read(kernel: str) -> int:
        return int(re.search(r"([\d,]+) bytes read", plain(cell_with(matmul, f"check({kernel})")))[1].replace(",", ""))

    assert read("one_by_one") > 10 * read("tiled") and read("tiled") == read("tensor_cores")
    for kernel, free in (("tensor_cores", True), ("plain_order", False), ("pipelined", True)):
        rows = re.findall(
            r"reads in ([\d,]+) wavefronts, ([\d,]+) at best", plain(cell_with(matmul, f"check({kernel})"))
        )
        assert len(rows) == 2 and all((used == best) == free for used, best in rows), (kernel, rows)
    assert "3 versions of A_shared, B_shared" in plain(cell_with(matmul, "check(pipelined)"))
    assert "second is copied in its turn" in plain(cell_with(matmul, "def chained("))


def test_maps_are_shown_as_pictures(matmul: list[Any]) -> None:
    for text in ('layouts["c"].held_by', 'layouts["A_shared"].bank_table'):
        (output,) = cell_with(matmul, text).outputs
        assert "<table" in output.data["text/html"] and "rows" in output.data["text/plain"]


def test_the_forgotten_wait_is_found_with_both_lines(matmul: list[Any]) -> None:
    cell = cell_with(matmul, "def forgetful(")
    lines = [1 + n for n, line in enumerate(cell.source.split("\n")) if "async_copy" in line or "Y[j] =" in line]
    said = plain(cell)
    assert "error[TL401]" in said and all(f"]:{line}:" in said for line in lines)
    assert all("TL401" not in plain(other) for other in matmul if other is not cell)


def test_attention_says_where_its_scores_are_and_what_causal_saves(attention: list[Any]) -> None:
    assert "p: float16 (64, 64) in registers" in plain(cell_with(attention, 'layouts["largest"].threads'))
    assert "kept in shared memory" in plain(cell_with(attention, "def apart("))
    full, causal = re.search(
        r"([\d,]+) products of a tensor core, causal ([\d,]+)", plain(cell_with(attention, "causal ="))
    ).groups()
    assert int(causal.replace(",", "")) / int(full.replace(",", "")) == 10 / 16  # tiles on and below the diagonal


def test_both_programs_of_a_text_stand_side_by_side(hopper: list[Any]) -> None:
    both = plain(cell_with(hopper, "chosen ="))
    assert [line for line in both.split("\n") if line.startswith("sm_")] == ["sm_80", "sm_90a"]
    assert "mma.sync m16n8k16" in both and "wgmma m64n128k16" in both and "1 warp group copies, 2 compute" in both
    roles = plain(cell_with(hopper, 'lines = stage(hopper, "plan-pipelines")'))
    assert roles.index("with T.ws(0, 1):") < roles.index("T.gemm") < roles.index("with T.ws(2):")
    assert "`A_shared` cannot run ahead" in plain(cell_with(hopper, "def scaled("))
    assert re.search(r"shared load +[\d,]+ +0\n", plain(cell_with(hopper, "operations) for kernel in")))


def test_roles_are_shown_over_time(hopper: list[Any]) -> None:
    for text, tiles in (("(before,), (after,)", "A_shared, B_shared"), ("(loop,) = flash", "K_shared, V_shared")):
        (picture,) = (output.data for output in cell_with(hopper, text).outputs if "data" in output)
        assert "<table" in picture["text/html"] and "bulk copies" in picture["text/plain"]
        assert (
            tiles in picture["text/plain"] and "* in use from its wait until it is given back" in picture["text/plain"]
        )
    maps = plain(cell_with(hopper, 'decided(hopper, "tensor map")'))
    assert maps.count("tensor map (line") == 3 and "CUtensorMap A_map" in maps
    assert "descriptor (line" in plain(cell_with(hopper, '"descriptor"'))


def test_mistakes_of_text_for_warp_groups_are_found_at_their_lines(hopper: list[Any]) -> None:
    for name, code, text in (("forgetful", "TL401", "T.gemm("), ("miscounted", "TL405", "T.barrier_wait(full")):
        cell = cell_with(hopper, f"def {name}(")
        line = 1 + next(number for number, line in enumerate(cell.source.split("\n")) if text in line)
        said = plain(cell)
        assert f"error[{code}]" in said and f"]:{line}:" in said, said
    assert "64 bytes at the barrier `full` that no copy brings" in plain(cell_with(hopper, "def miscounted("))
    mistaken = ("def forgetful(", "def miscounted(")
    for cell in hopper:
        assert any(text in cell.source for text in mistaken) or "error[" not in plain(cell), cell.source


def test_nothing_is_written_to_stderr(cells: list[Any]) -> None:
    for cell in cells:
        assert not [output for output in cell.outputs if output.get("name") == "stderr"], plain(cell)
