"""`tilelang-nb check --fix` and `--diff`: files and notebooks cured, and nothing else in them touched."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tilelang_nb.cli import main

KERNEL = """# é first
import tilelang.language as T


@T.prim_func
def k(A: T.Tensor((8,), "int32")):
    with T.Kernel(1, threads=8):
        for i in T.Parallel(8):
            x = y = A[i]  # both
            A[i] = (x + y) / 2
"""
CURED = KERNEL.replace("x = y = A[i]  # both", "x = A[i]\n            y = x  # both").replace("/ 2", "// 2")


def test_a_file_is_cured_in_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "cell.py"
    path.write_bytes(b"\xef\xbb\xbf" + KERNEL.replace("\n", "\r\n").encode())
    assert main(["check", "--build", "--fix", str(path)]) == 0
    assert path.read_bytes() == b"\xef\xbb\xbf" + CURED.replace("\n", "\r\n").encode()
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"{path}:9:13: TL101 one assignment per target"
    # What the first mistake hid comes to light when it is cured.
    assert lines[1].startswith(f"{path}:11:28: TL136 write `//`")
    assert lines[2:] == ["2 edits made.", "All checks passed!"]


def test_what_has_no_edit_is_left_and_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "cell.py"
    path.write_text(
        KERNEL + "        try:\n            pass\n        except ValueError:\n            pass\n", encoding="utf-8"
    )
    assert main(["check", "--build", "--fix", str(path)]) == 1
    assert path.read_text(encoding="utf-8").startswith(CURED)
    lines = capsys.readouterr().out.splitlines()
    assert lines[2] == "2 edits made." and " TL120 " in lines[3] and lines[-1] == "Found 1 error."


def test_a_good_file_is_not_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "cell.py"
    path.write_text(CURED, encoding="utf-8")
    path.chmod(0o444)
    before = path.stat().st_mtime_ns
    assert main(["check", "--build", "--fix", str(path)]) == 0
    assert path.stat().st_mtime_ns == before
    assert capsys.readouterr().out == "0 edits made.\nAll checks passed!\n"


def test_a_difference_is_shown_and_nothing_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "cell.py"
    path.write_text(KERNEL, encoding="utf-8")
    assert main(["check", "--build", "--diff", str(path)]) == 1
    assert path.read_text(encoding="utf-8") == KERNEL
    said = capsys.readouterr()
    lines = said.out.splitlines()
    assert lines[:2] == [f"--- {path}", f"+++ {path}"]
    assert [line for line in lines[2:] if line.startswith(("-", "+"))] == [
        "-            x = y = A[i]  # both",
        "-            A[i] = (x + y) / 2",
        "+            x = A[i]",
        "+            y = x  # both",
        "+            A[i] = (x + y) // 2",
    ]
    assert said.err.endswith("2 edits would be made.\n")


def test_cells_of_a_notebook_are_cured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "book.ipynb"
    head, _, body = KERNEL.partition("\n\n\n")
    cells = [
        {"cell_type": "code", "source": ["M = 4"], "outputs": [{"text": "x = y = A[i]"}]},
        {"cell_type": "code", "source": f"%%tilelang\n{head}\n\n\n{body}".splitlines(keepends=True), "metadata": {}},
        {"cell_type": "code", "source": "%%tilelang --target sim\nfor i in range(2):\n    print(i)"},
    ]
    raw = json.dumps({"cells": cells, "nbformat": 4}, indent=1, ensure_ascii=False)
    path.write_text(raw, encoding="utf-8")
    assert main(["check", "--build", "--fix", str(path)]) == 0
    cells[1]["source"] = f"%%tilelang\n{CURED}".splitlines(keepends=True)
    assert path.read_text(encoding="utf-8") == json.dumps({"cells": cells, "nbformat": 4}, indent=1, ensure_ascii=False)
    assert capsys.readouterr().out.startswith(f"{path}:cell 2:10:13: TL101 ")


def test_edits_are_in_the_json_form(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "cell.py"
    path.write_text(KERNEL, encoding="utf-8")
    main(["check", "--format", "json", str(path)])
    (item,) = json.loads(capsys.readouterr().out)
    assert item["fixes"] == [
        {
            "title": "one assignment per target",
            "line": 9,
            "column": 13,
            "end_line": 9,
            "end_column": 25,
            "replacement": "x = A[i]\n            y = x",
        }
    ]


def test_programs_read_only_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "cell.py"
    path.write_text(KERNEL, encoding="utf-8")
    assert main(["check", "--build", "--fix", "--format", "json", str(path)]) == 0
    said = capsys.readouterr()
    assert json.loads(said.out) == [] and said.err.endswith("2 edits made.\n")


def test_a_file_that_cannot_be_written_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "cell.py"
    path.write_text(KERNEL, encoding="utf-8")

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pathlib.Path.write_bytes", refuse)
    assert main(["check", "--build", "--fix", str(path)]) == 2
    assert f"cannot write {path}: Permission denied" in capsys.readouterr().err


def test_what_the_text_shows_is_cured_without_running_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "cell.py"
    path.write_text("import no_such_module\n" + KERNEL.replace(" / 2", " // 2"), encoding="utf-8")
    assert main(["check", "--fix", str(path)]) == 0
    assert path.read_text(encoding="utf-8") == "import no_such_module\n" + CURED
    assert capsys.readouterr().out.splitlines()[1:] == ["1 edit made.", "All checks passed!"]
