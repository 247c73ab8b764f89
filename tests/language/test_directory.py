"""The list of operations holds all that this version lowers, a readable line each."""

from __future__ import annotations

import inspect

import pytest

import tilelang_nb.language as T
from tilelang_nb.cli import main
from tilelang_nb.language.directory import WIDTH, listing, operations


def lowered() -> set[str]:
    values = {name: getattr(T, name) for name in T.__all__}
    kinds = {name: value for name, value in values.items() if inspect.isfunction(value) or inspect.isclass(value)}
    return {name for name, value in kinds.items() if not (inspect.getdoc(value) or "").startswith("Not lowered")}


def test_every_operation_that_is_lowered_is_listed_and_no_other() -> None:
    assert {one.name for one in operations()} == lowered()


@pytest.mark.parametrize("one", operations(), ids=lambda one: one.name)
def test_a_line_says_what_the_operation_does(one) -> None:
    assert one.says.endswith(".") and len(one.says) > 4 and one.subject and len(str(one)) <= WIDTH
    assert "\n" not in str(one) and one.says.count("`") % 2 == 0


def test_the_list_is_in_groups_and_can_be_searched() -> None:
    text = listing()
    assert "Atomic operations" in text and "  T.copy(" in text and "  T.gemm(" in text
    found = operations("atomic")
    assert 5 < len(found) < 20 and all("atomic" in str(one).lower() or "atomic" in one.says.lower() for one in found)
    assert listing("no such thing") == "no operation of `T` speaks of 'no such thing'\n"


def test_the_command_line_lists_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["operations", "cumsum"]) == 0
    assert "T.cumsum(" in capsys.readouterr().out
    assert main(["operations", "nothing of that kind"]) == 1
