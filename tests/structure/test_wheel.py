"""The built package holds what it needs at run time beside its Python files."""

from __future__ import annotations

import subprocess
import sys
import zipfile

import pytest
from structure.package_files import ROOT


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Names of the files in the wheel, built without the network by the build backend itself."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    (archive,) = folder.glob("*.whl")
    return zipfile.ZipFile(archive).namelist()


def test_pages_of_all_codes_are_in_the_wheel(wheel: list[str]) -> None:
    pages = {path.relative_to(ROOT).as_posix() for path in (ROOT / "tilelang_nb").rglob("pages/*.md")}
    assert pages, "the catalogue has pages"
    assert pages <= set(wheel)


def test_the_view_and_its_loader_are_in_the_wheel(wheel: list[str]) -> None:
    assert {"tilelang_nb/notebook/static/widget.js", "tilelang_nb/notebook/loader.js"} <= set(wheel)


def test_every_python_file_is_in_the_wheel(wheel: list[str]) -> None:
    files = {path.relative_to(ROOT).as_posix() for path in (ROOT / "tilelang_nb").rglob("*.py")}
    assert files <= set(wheel)


def test_nothing_but_the_package_and_its_metadata_is_in_the_wheel(wheel: list[str]) -> None:
    outside = [name for name in wheel if not name.startswith("tilelang_nb/") and ".dist-info/" not in name]
    assert not outside
    assert not [name for name in wheel if "__pycache__" in name]


def test_the_command_and_the_licence_are_in_the_wheel(wheel: list[str]) -> None:
    assert any(name.endswith(".dist-info/entry_points.txt") for name in wheel)
    assert any(name.endswith("LICENSE") for name in wheel)
