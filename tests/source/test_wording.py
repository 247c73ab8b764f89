"""Words that many messages need."""

from __future__ import annotations

import pytest

import tilelang_nb.language as T
from tilelang_nb.source.wording import number_text, of_type, tidy, with_article


@pytest.mark.parametrize(
    ("noun", "said"),
    [
        ("int", "an int"),
        ("int32 value", "an int32 value"),
        ("uint8", "a uint8"),
        ("float32", "a float32"),
        ("object", "an object"),
        ("ndarray", "an ndarray"),
        ("`int`", "an `int`"),
        ("unbound name", "an unbound name"),
        ("unit", "a unit"),
        ("one-dimensional tile", "a one-dimensional tile"),
        ("Ellipsis", "an Ellipsis"),
    ],
)
def test_the_article_fits_the_sound_of_the_noun(noun: str, said: str) -> None:
    assert with_article(noun) == said


def test_a_python_object_is_called_by_its_type() -> None:
    assert (of_type(3), of_type([])) == ("an int", "a list")


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (7, "7"),
        (-(2**70), "-1180591620717411303424"),
        (1.5, "1.5"),
        (True, "True"),
        (10**40, "an integer of 41 digits"),
        (10**5000, "an integer of 5,001 digits"),
        (10**5000 - 1, "an integer of 5,000 digits"),
        (-(10**5000), "a negative integer of 5,001 digits"),
    ],
    ids=lambda _: "",
)
def test_a_number_has_a_length_that_a_line_can_hold(number: float, said: str) -> None:
    assert number_text(number) == said


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("(n + 64 - 1) // 64", "T.ceildiv(n, 64)"),
        ("(n + 63) // 64", "T.ceildiv(n, 64)"),
        ("((n + 3 - 1) // 3) * 2", "T.ceildiv(n, 3) * 2"),
        ("(n * 2 + block - 1) // block", "T.ceildiv(n * 2, block)"),
        ("(n + 62) // 64", "(n + 62) // 64"),
        ("(n + 64 - 1) // 32", "(n + 64 - 1) // 32"),
        ("n // 64", "n // 64"),
        ("T.Cast('int64', n) //", "T.Cast('int64', n) //"),
        ("n + 1", "n + 1"),
    ],
)
def test_a_division_that_rounds_up_is_written_as_one(expression: str, said: str) -> None:
    assert tidy(expression) == said


def test_objects_of_the_package_are_called_by_words() -> None:
    named = {
        of_type(T.Parallel(4)),
        of_type(T.Kernel(1)),
        of_type(T.float16),
        of_type(None),
        of_type(len),
        of_type(int),
    }
    assert named == {"a device loop", "a launch", "a dtype", "None", "a built-in function", "a class"}
    assert of_type(T.Tensor((4,), "float32")) == "a tensor annotation"
