"""The command line: output forms, exit status, notebooks, and never a traceback."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tilelang_nb.cli import main

GOOD = """
import numpy as np
import tilelang.language as T

@T.prim_func
def k(A: T.Tensor((8,), "int32")):
    with T.Kernel(1, threads=8):
        for i in T.Parallel(8):
            A[i] = A[i] + 1

if __name__ == "__main__":
    a = np.zeros(8, np.int32)
    k(a)
    print("sum", a.sum())
"""
BAD = GOOD.replace("A[i] = A[i] + 1", "x = y = A[i]")
TOO_MUCH = GOOD.replace(
    "        for i", '        s = T.alloc_shared((65536,), "float64")\n        T.clear(s)\n        for i'
)


def written(folder: Path, text: str, name: str = "cell.py") -> str:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return str(path)


def notebook(folder: Path, *cells: str) -> str:
    made = [{"cell_type": "code", "source": text.splitlines(keepends=True)} for text in cells]
    text = json.dumps({"cells": [{"cell_type": "markdown", "source": ["# Title"]}, *made], "nbformat": 4})
    return written(folder, text, "book.ipynb")


def test_check_passes_a_good_file_without_running_its_main_program(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", written(tmp_path, GOOD)]) == 0
    assert capsys.readouterr().out == "All checks passed!\n"


def test_check_writes_one_line_per_diagnostic(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, BAD)
    assert main(["check", path]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"{path}:9:13: TL101 ") and lines[-1] == "Found 1 error."


def test_check_builds_only_with_build(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, TOO_MUCH)
    assert main(["check", path]) == 0
    assert main(["check", "--build", path]) == 1
    assert " TL209 " in capsys.readouterr().out


def test_check_runs_nothing_of_a_file_without_build(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = tmp_path / "made.txt"
    path = written(tmp_path, f"open({str(made)!r}, 'w').close()\nimport no_such_module\n{BAD}")
    assert main(["check", path]) == 1
    assert [" TL101 " in line for line in capsys.readouterr().out.splitlines()] == [True, False]
    assert not made.exists()
    assert main(["check", "--build", path]) == 1
    assert made.exists() and " TL144 " in capsys.readouterr().out


def test_check_with_build_says_a_mistake_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, BAD.replace("A[i]\n", "A[i]\n            A[i] = A[i] / 2\n", 1))
    assert main(["check", "--build", path]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[1] for line in lines[:-1]] == ["TL101", "TL136"] and lines[-1] == "Found 2 errors."


def test_a_factory_that_is_not_called_is_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kernel = BAD[BAD.index("@T.prim_func") : BAD.index("if __name__")].replace("\n", "\n    ")
    path = written(tmp_path, f"import tilelang.language as T\ndef make():\n    {kernel}")
    for options in ([], ["--build"]):
        assert main(["check", *options, path]) == 1
        assert " TL101 " in capsys.readouterr().out


def test_check_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, BAD)
    assert main(["check", "--format", "json", path]) == 1
    (item,) = json.loads(capsys.readouterr().out)
    assert (item["path"], item["cell"], item["line"], item["column"]) == (path, None, 9, 13)
    assert (item["code"], item["slug"], item["severity"]) == ("TL101", "chained-assignment", "error")


def test_check_for_github(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, BAD, "a,b.py")
    assert main(["check", "--format", "github", path]) == 1
    line = capsys.readouterr().out.splitlines()[0]
    assert line.startswith("::error file=") and "a%2Cb.py" in line and ",line=9,col=13," in line and "%0Ahelp" in line


def test_check_of_a_notebook_names_the_cell_and_its_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plain = "%load_ext tilelang_nb\nN = 8\nraise SystemExit\n"
    bad = '# first\n%%tilelang --target sim\n@T.prim_func\ndef k(A: T.Tensor((N,), "int32")):\n'
    bad += "    with T.Kernel(1):\n        x = y = A[0]"
    path = notebook(tmp_path, plain, "%%time\nnot python", bad)
    assert main(["check", path]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"{path}:cell 4:6:9: TL101 ") and len(lines) == 2


def test_cells_of_a_notebook_share_their_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = notebook(tmp_path, "%%tilelang\nsize = 8", "%%tilelang\nprint(size)")
    assert main(["run", path]) == 0
    assert capsys.readouterr().out == "8\n"


@pytest.mark.parametrize(
    ("line", "given", "expected"),
    [
        ("--arch sm_80 --quiet", [], "sim (sm_80)"),
        ("--target=sim --arch=sm_80", [], "sim (sm_80)"),
        ("--arch {ARCH}", [], "sim (sm_90a)"),
        ("--arch sm_80", ["--arch", "sm_75"], "sim (sm_75)"),
        ("--target cuda --arch sm_80", ["--target", "sim"], "sim (sm_80)"),
        ("", [], "sim (sm_90a)"),
    ],
)
def test_cells_are_compiled_for_what_their_line_says(
    line: str, given: list[str], expected: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command line comes first; a value that only a notebook knows is left to the defaults."""
    kernel = '@T.prim_func\ndef k(A: T.Tensor((8,), "int32")):\n    with T.Kernel(1, threads=8):\n        T.clear(A)\n'
    path = notebook(tmp_path, f"%%tilelang {line}\n{kernel}\nprint(k.target)")
    assert main(["run", path, *given]) == 0
    assert capsys.readouterr().out == f"{expected}\n"


@pytest.mark.parametrize(
    ("line", "given", "status"),
    [
        ("--limits items=20", [], 1),
        ("--quiet --limits=items=20,turns=90", [], 1),
        ("--limits items=20", ["--limits", "items=90"], 0),
        ("--limits items={N}", [], 0),
        ("", [], 0),
    ],
)
def test_limits_of_a_cell_hold_for_it(
    line: str, given: list[str], status: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kernel = '@T.prim_func\ndef k(A: T.Tensor((64,), "int32")):\n    with T.Kernel(1, threads=8):\n'
    path = notebook(tmp_path, f"%%tilelang {line}\n{kernel}        for i in list(range(50)):\n            A[i] = i")
    assert main(["check", "--build", path, *given]) == status
    assert ("items" in capsys.readouterr().out) == bool(status)


def test_run_runs_the_main_program(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", written(tmp_path, GOOD), "--target", "sim"]) == 0
    assert capsys.readouterr().out == "sum 8\n"


def test_run_shows_errors_with_their_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", written(tmp_path, BAD)]) == 1
    said = capsys.readouterr()
    assert said.out == "" and "error[TL101]" in said.err and "cell.py:9:13" in said.err


def test_run_fails_where_the_simulator_finds_faults(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    racing = GOOD.replace("T.Kernel(1, threads=8)", "T.Kernel(2, threads=8) as bx").replace("A[i] + 1", "bx")
    assert main(["run", written(tmp_path, racing)]) == 1
    said = capsys.readouterr()
    assert said.out.startswith("sum") and "TL401" in said.err and "Traceback" not in said.err


def test_a_module_beside_the_file_can_be_imported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written(tmp_path, "VALUE = 3\n", "beside_the_cell.py")
    assert main(["run", written(tmp_path, "import beside_the_cell\nprint(beside_the_cell.VALUE)\n")]) == 0
    assert capsys.readouterr().out == "3\n"


def test_explain_by_code_and_by_slug(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "tl101"]) == 0
    page = capsys.readouterr().out
    assert main(["explain", "chained-assignment"]) == 0
    assert capsys.readouterr().out == page and "chained" in page
    assert main(["explain", "chained-asignment"]) == 2
    assert "TL101" in capsys.readouterr().err


def test_export_writes_a_page(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert main(["export", written(tmp_path, GOOD), "-o", str(page)]) == 0
    text = page.read_text(encoding="utf-8")
    assert text.lower().startswith("<!doctype html>") and "thread" in text


def test_export_says_what_it_wrote_and_where_no_kernel_was_built(tmp_path: Path, capsys) -> None:
    page = tmp_path / "page.html"
    main(["export", written(tmp_path, GOOD), "-o", str(page)])
    said = capsys.readouterr()
    assert said.out == f"wrote {page}\n" and said.err == ""
    main(["export", written(tmp_path, "def factory():\n    pass\n"), "-o", str(page)])
    assert "no kernel was built" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["check"],
        ["check", "no_such_file.py"],
        ["run", "no_such_file.py"],
        ["check", "--format", "xml", "a.py"],
        ["export", "a.py"],
        ["run", "a.py", "--target", "abacus"],
    ],
)
def test_a_wrong_command_has_status_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    try:
        status = main(arguments)
    except SystemExit as stop:
        status = stop.code
    assert status == 2
    said = capsys.readouterr()
    assert "Traceback" not in said.err + said.out


def test_files_that_are_no_text_or_no_notebook_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    binary = tmp_path / "binary.py"
    binary.write_bytes(b"\xff\xfe\x00")
    assert main(["check", str(binary)]) == 2
    assert main(["check", written(tmp_path, "[]", "list.ipynb")]) == 2
    assert main(["export", written(tmp_path, GOOD), "-o", str(tmp_path / "no" / "such" / "folder.html")]) == 2
    assert main(["check", "--build", written(tmp_path, "import sys; sys.exit(3)")]) in (1, 2)
    assert "Traceback" not in capsys.readouterr().err


def test_a_fault_of_ours_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from tilelang_nb.runtime import compilation

    def broken(*_: object, **__: object) -> None:
        raise KeyError("lost")

    monkeypatch.setattr(compilation, "compile_cell", broken)
    assert main(["check", "--build", written(tmp_path, GOOD)]) == 1
    said = capsys.readouterr().err
    assert "TL900" in said and "KeyError" in said and said.count("\n") == 1
