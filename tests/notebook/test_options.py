"""The `%%tilelang` line as a value."""

from __future__ import annotations

import pytest
from IPython.core.error import UsageError

from tilelang_nb.notebook.options import HELP, PARSER, CellOptions, parse

NAMES = {"ARCH": "sm_80", "NAMES": "tile,thread", "MAJOR": 8}


def test_an_empty_line_asks_for_the_defaults() -> None:
    assert parse("") == CellOptions()


def test_every_option_of_the_design_is_there() -> None:
    names = {name for action in PARSER._actions for name in action.option_strings}
    assert names >= {"--target", "--arch", "--call", "--bench", "--stages", "--no-widget", "--quiet", "--help"}
    assert all(name in HELP for name in names)


def test_values_reach_their_fields() -> None:
    asked = parse("--target sim --arch sm_90a --stages tile,thread --no-widget --quiet --bench")
    assert asked == CellOptions("sim", "sm_90a", None, True, ("tile", "thread"), False, True)


@pytest.mark.parametrize(
    ("line", "expression"),
    [
        ("--call add(A, B, C)", "add(A, B, C)"),
        ("--call add(A, B, C) --quiet", "add(A, B, C)"),
        ('--call "add(A, B)"', "add(A, B)"),
        ("--call 'f(1)'", "f(1)"),
        ("--call=f(x)", "f(x)"),
        ("--call -x", "-x"),
        ("--call a --b", "a"),
        ("--call f(' --quiet ')", "f(' --quiet ')"),
        ("--call f(x --quiet)", "f(x --quiet)"),
        ("--call f({'n': 1, \"m\": [2]})", "f({'n': 1, \"m\": [2]})"),
        ("--call 'a' + 'b'", "'a' + 'b'"),
        ("--call {ARCH}", "{ARCH}"),
        ("--quiet --call $name", "$name"),
    ],
)
def test_call_takes_a_python_expression_as_it_is(line: str, expression: str) -> None:
    if line == "--call a --b":  # the expression ends where an option begins, known or not
        with pytest.raises(UsageError, match="unrecognized arguments: --b"):
            parse(line)
        return
    assert parse(line, NAMES).call == expression


def test_notebook_variables_stand_in_values() -> None:
    asked = parse("--arch {ARCH} --stages $NAMES", NAMES)
    assert (asked.arch, asked.stages) == ("sm_80", ("tile", "thread"))
    assert parse("--arch sm_{MAJOR + 1}0", NAMES).arch == "sm_90"


@pytest.mark.parametrize("line", ["--arch {NOPE}", "--arch $NOPE", "--stages tile,{NOPE}", "--arch sm_{NOPE}"])
def test_a_name_that_is_not_defined_is_said_so(line: str) -> None:
    with pytest.raises(UsageError, match=r"'NOPE' is not defined"):
        parse(line, NAMES)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("--target tpu", "invalid choice: 'tpu'"),
        ("--zzz", "unrecognized arguments: --zzz"),
        ("stray", "unrecognized arguments: stray"),
        ("--arch", "expected one argument"),
        ("--arch volta", "write an architecture"),
        ("--call", "--call needs an expression"),
        ("--call  --quiet", "--call needs an expression"),
        ("--targ sim", "unrecognized arguments: --targ"),
    ],
)
def test_a_bad_line_is_one_line_of_text(line: str, said: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse(line)
    text = str(refused.value)
    assert said in text
    assert "--help" in text
    assert "\n" not in text


def test_an_expression_that_fails_in_a_value_is_one_line_of_text() -> None:
    with pytest.raises(UsageError, match=r"--help") as refused:
        parse("--arch {1/0}")
    assert "ZeroDivisionError" in str(refused.value)


def test_help_wins_over_nothing_else_being_wrong() -> None:
    assert parse("--help").help
    assert parse("-h").help


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("--stages tile cuda", "separate stages by commas: --stages tile,cuda"),
        ("--stage tile", "did you mean --stages?"),
        ("add(a, b)", "did you mean --call add(a, b)?"),
    ],
)
def test_words_of_no_option_are_said_as_what_they_were_meant_to_be(line: str, hint: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(line)
    assert hint in str(caught.value)
