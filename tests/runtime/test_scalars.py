"""Numbers as scalar arguments: the value must survive."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tilelang_nb.runtime.host_arrays import NoHostArray
from tilelang_nb.runtime.scalars import scalar


@pytest.mark.parametrize(
    ("given", "dtype", "value"),
    [
        (5, "int32", 5),
        (True, "int32", 1),
        (np.int64(-7), "int8", -7),
        (np.uint8(200), "int16", 200),
        (2**63, "uint64", 2**63),
        (3, "float32", 3.0),
        (0.1, "float32", float(np.float32(0.1))),
        (0.1, "float16", float(np.float16(0.1))),
        (1.0, "bfloat16", 1.0),
        (3.3, "float8_e4m3fn", 3.25),
        (float("inf"), "float16", float("inf")),
        (np.float64(2.5), "float64", 2.5),
        (ml_dtypes.bfloat16(1.5), "float32", 1.5),
        (1, "bool", True),
        (np.bool_(False), "bool", False),
        (np.array(4, np.int32), "int32", 4),
    ],
)
def test_a_number_that_the_type_holds_is_taken_and_rounded_to_it(given: Any, dtype: str, value: Any) -> None:
    got = scalar(given, dtype)
    assert got == value and type(got) is type(value)


@pytest.mark.parametrize(
    ("given", "dtype", "words"),
    [
        (2.0, "int32", "the float 2.0"),
        (np.float32(2.0), "int32", "the float"),
        (128, "int8", "-128 to 127"),
        (-1, "uint32", "0 to 4294967295"),
        (2**31, "int32", "-2147483648 to 2147483647"),
        (2**24 + 1, "float32", "does not hold this integer"),
        (70000, "float16", "does not hold this integer"),
        (1e300, "float32", "out of the range"),
        (10**400, "float64", "does not hold this integer"),
        (2, "bool", "True or False"),
        (0.5, "bool", "True or False"),
        ("5", "int32", "a str"),
        (None, "int32", "None"),
        (1 + 2j, "float32", "a complex"),
        ([1], "int32", "a list"),
        (np.zeros(1, np.int32), "int32", "a numpy.ndarray"),
    ],
)
def test_a_number_that_would_change_is_refused_with_the_reason(given: Any, dtype: str, words: str) -> None:
    with pytest.raises(NoHostArray) as caught:
        scalar(given, dtype)
    assert words in f"{caught.value.given} | {caught.value.remedy}"


def test_nan_is_a_float() -> None:
    assert np.isnan(scalar(float("nan"), "float32"))
