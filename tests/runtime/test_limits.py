"""What a build may take can be set: by `compile_cell`, on the magic line, on the command line, in the environment."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from IPython.core.error import UsageError
from tilelang.test_standalone import load

import tilelang_nb
from tilelang_nb.cli import main
from tilelang_nb.frontend.limits import SETTINGS, VARIABLE, Limits
from tilelang_nb.notebook.options import parse

KERNEL = '@T.prim_func\ndef k(out: T.Tensor((8,), "int32")):\n    with T.Kernel(1, threads=1):\n'
LOOP = "        for v in iter(list(range({}))):\n            out[v % 8] = v\n"
TOO_MUCH = {  # setting -> a body that is refused, a value with which it is, and one with which it is not
    "items": (LOOP.format(30), 29, 30),
    "turns": (LOOP.format(30), 29, 30),
    "bits": ("        out[0] = (2 ** 999) % 7\n", 900, 2000),
    "macro_depth": ("        out[0] = down(9)\n", 9, 12),
}
MACRO = "@T.macro\ndef down(n):\n    if n == 0:\n        return 0\n    return down(n - 1)\n"


def compiled(body: str, **options: Any) -> tilelang_nb.Compilation:
    return tilelang_nb.compile_cell(MACRO + KERNEL + body, target="sim", **options)


@pytest.mark.parametrize("setting", TOO_MUCH)
def test_a_limit_is_what_it_is_set_to_and_the_message_names_the_setting(setting: str) -> None:
    body, less, enough = TOO_MUCH[setting]
    refused = compiled(body, limits={setting: less})
    assert len(refused.diagnostics) == 1 and f"`{setting}`" in refused.diagnostics[0].help, refused.to_text()
    assert compiled(body, limits={setting: enough}).ok
    assert compiled(body).ok


def test_the_warning_of_large_expansions_has_a_setting() -> None:
    (warning,) = compiled(LOOP.format(30), limits={"statements": 29}).diagnostics
    assert warning.code == "TL142" and "`statements`" in warning.help
    assert not compiled(LOOP.format(30), limits={"statements": 30}).diagnostics


def test_a_limit_may_be_raised_above_the_usual() -> None:
    body = f"        for v in iter(range({Limits().items + 1})):\n            pass\n"
    assert [found.code for found in compiled(body).diagnostics] == ["TL112"]
    assert compiled(body, limits={"items": Limits().items + 1}).ok


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        ({"item": 3}, "did you mean `items`"),
        ({"passes": 3}, "the settings are"),
        ({"items": 0}, "give 1.."),
        ({"items": 10**12}, "give 1.."),
        ({"items": "many"}, "a str"),
        ({"items": True}, "a bool"),
    ],
)
def test_what_is_no_setting_is_refused(limits: dict[str, Any], said: str) -> None:
    made = compiled(LOOP.format(3), limits=limits)
    assert [found.code for found in made.diagnostics] == ["TL004"] and said in made.to_text()


def test_the_environment_sets_limits_of_cells_and_modules(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(VARIABLE, "items=29, turns=1_000")
    assert [found.code for found in compiled(LOOP.format(30)).diagnostics] == ["TL112"]
    assert compiled(LOOP.format(30), limits={"items": 40}).ok
    with pytest.raises(tilelang_nb.CompileError, match="TL112"):
        load(tmp_path, "import tilelang_nb.language as T\n" + KERNEL + LOOP.format(30))
    monkeypatch.setenv(VARIABLE, "items:29")
    assert "`items:29` in `TILELANG_NB_LIMITS`" in compiled(LOOP.format(30)).to_text()


EAGER = """import tilelang_nb.tilelang as tilelang
import tilelang_nb.language as T

@tilelang.jit
def eager(X):
    X: T.Tensor[[8], T.int32]
    with T.Kernel(1, threads=1):
"""
FACTORY = """import tilelang_nb.tilelang as tilelang
import tilelang_nb.language as T

@tilelang.jit
def factory():
    @T.prim_func
    def inner(X: T.Tensor((8,), "int32")):
        with T.Kernel(1, threads=1):
"""


@pytest.mark.parametrize("entry", ["eager call", "eager compile", "factory"])
def test_the_environment_sets_limits_of_what_modules_build_when_they_are_called(
    entry: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    loop = LOOP.format(30).replace("out", "X")
    text = FACTORY + textwrap.indent(loop, "    ") + "    return inner\n" if entry == "factory" else EAGER + loop

    def used() -> None:
        module = load(tmp_path, text)
        if entry == "factory":
            module.factory()(np.zeros(8, np.int32))
        elif entry == "eager call":
            module.eager(np.zeros(8, np.int32))
        else:
            module.eager.compile()

    used()
    monkeypatch.setenv(VARIABLE, "items=29")
    with pytest.raises(tilelang_nb.CompileError, match="TL112"):
        used()
    monkeypatch.setenv(VARIABLE, "items=30")
    used()
    if entry != "factory":
        monkeypatch.setenv(VARIABLE, "items:30")
        with pytest.raises(tilelang_nb.CompileError, match="is no setting of a limit"):
            used()


def test_the_environment_sets_limits_of_eager_kernels_of_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    cell = EAGER.replace("tilelang_nb.tilelang", "tilelang") + LOOP.format(30).replace("out", "X")
    cell += "import numpy as np\neager(np.zeros(8, np.int32))\n"
    assert tilelang_nb.compile_cell(cell).ok
    monkeypatch.setenv(VARIABLE, "items=29")
    assert [found.code for found in tilelang_nb.compile_cell(cell).diagnostics] == ["TL112"]
    assert tilelang_nb.compile_cell(cell, limits={"items": 30}).ok


def test_the_magic_line_sets_limits() -> None:
    assert parse("--limits items=29,bits=5").limits == {"items": 29, "bits": 5}
    assert parse("").limits == {}
    for line, said in (("--limits items", "items=100000"), ("--limits itms=3", "did you mean `items`")):
        with pytest.raises(UsageError, match=said):
            parse(line)


def test_the_command_line_sets_limits(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "kernels.py"
    path.write_text("import tilelang.language as T\n" + KERNEL + LOOP.format(30))
    assert main(["check", "--build", str(path)]) == 0
    assert main(["check", "--build", "--limits", "items=29", str(path)]) == 1
    assert "TL112" in capsys.readouterr().out
    assert main(["check", "--build", "--limits", "itms=29", str(path)]) == 2
    assert "did you mean" in capsys.readouterr().err


def test_the_environment_holds_for_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "kernels.py"
    path.write_text("import tilelang.language as T\n" + KERNEL + LOOP.format(30))
    monkeypatch.setenv(VARIABLE, "items=29")
    assert main(["run", str(path)]) == 1
    assert "TL112" in "".join(capsys.readouterr())
    assert main(["run", "--limits", "items=30", str(path)]) == 0


def test_every_setting_is_a_limit() -> None:
    assert SETTINGS.keys() <= vars(Limits()).keys()
    assert all(getattr(Limits(), name) <= most for name, most in SETTINGS.items())
