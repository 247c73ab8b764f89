"""The rule above all others, through the whole product: a kernel computes what its text computes as plain Python.

Random kernels of device and compile-time loops, conditions, re-bound names, integer arithmetic, macros and
comprehensions are compiled and run on the simulated device, and compared with CPython on the same text.
"""

from __future__ import annotations

import random
import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from frontend.random_kernels import HEAD, RandomKernel, run_by_python
from hypothesis import given
from properties.amounts import NIGHTLY, PARTS, SOURCES, TIMEOUT, amount
from properties.reasons import reason_is_found

import tilelang_nb

INPUTS = ((3, 5), (0, 1), (4, 2), (1, 0), (-2, 3), (5, -3))  # the usual profile launches every second one
ELEMENTS = (2, 0, 1, 5, 3, -1, 4, 7)


def by_python(source: str, n: int, m: int) -> list[int] | Exception:
    """What CPython leaves in `out`, or what it raises."""
    out = list(range(8))
    try:
        run_by_python(source, list(ELEMENTS), out, n, m)
    except (NameError, ValueError, ZeroDivisionError) as error:  # an unbound name; a step of 0
        return error
    return out


def compare(source: str, divisions: Counter[bool] | None = None) -> str:
    """ "same", "refused CODE" or "python raises"; AssertionError on a difference or a refusal without a reason.

    divisions: counts launches in which Python divides by 0, by whether the simulated device says so; a quotient that
    nothing uses is not computed.
    """
    wanted = {inputs: by_python(source, *inputs) for inputs in INPUTS}
    raised = [error for error in wanted.values() if isinstance(error, Exception)]
    made = tilelang_nb.compile_cell(source)
    errors = [found for found in made.diagnostics if found.severity == "error"]
    if errors:
        assert "TL900" not in {found.code for found in errors}, made.to_text()
        for found in errors if not raised else ():
            assert reason_is_found(found, source), f"no reason of the specification: {found}\n{source}"
        return "python raises" if raised else f"refused {errors[0].code}"
    assert not any(isinstance(error, NameError) for error in raised), f"accepted; Python raises {raised}\n{source}"
    for (n, m), result in [*wanted.items()][:: 1 if NIGHTLY else 2]:
        if isinstance(result, ValueError):
            continue
        out = np.arange(8, dtype=np.int32)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of findings, which are looked at
            made.kernels["k"](np.array(ELEMENTS, np.int32), out, n, m)
        divides = isinstance(result, ZeroDivisionError)
        found = [finding.code for finding in made.kernels["k"].findings]
        assert set(found) <= ({"TL406"} if divides else set()), f"n={n}, m={m}: {found}, Python: {result}\n{source}"
        if divides:
            if divisions is not None:
                divisions["TL406" in found] += 1
            continue
        assert out.tolist() == result, f"n={n}, m={m}\n{source}"
    return "same"


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.timeout(TIMEOUT)
def test_random_kernels_compute_what_python_computes(record_property: Callable[[str, Any], None], part: int) -> None:
    outcomes: Counter[str] = Counter()
    divisions: Counter[bool] = Counter()

    @amount(300, 5000 // len(PARTS))
    @given(SOURCES)
    def check(source: random.Random) -> None:
        unbound = 0.06 if source.randrange(8) == 5 else 0.0
        outcomes[compare(RandomKernel(source, unbound).text(), divisions)] += 1

    check()
    total = sum(outcomes.values())
    refused = sum(number for outcome, number in outcomes.items() if outcome.startswith("refused"))
    parts = ", ".join(f"{outcome} {number}" for outcome, number in outcomes.most_common())
    record_property("random kernels", f"{total} run, {refused / total:.0%} refused although Python runs them ({parts})")
    assert outcomes["same"] > total // 2
    assert divisions[True] > 4 * divisions[False]


# What the tests above found, made small: each was once accepted and computed something else than Python.
FOUND = [
    # A new binding under a condition took the name back from the iterations of a parallel loop, for good.
    """z = 0
for i in range(m):
    out[5] = z
    z = 9
    break
for j in range(2):
    for i in T.Parallel(3):
        z = a[2]
    if n == 1:
        z = 3
    out[4] = z""",
    # What a list still holds at the end of a launch was read outside of it, and refused.
    "out[0] = 4\nlast = [a[2], out[0]]",
]


@pytest.mark.parametrize("body", FOUND)
def test_what_was_found_stays_mended(body: str) -> None:
    compare(HEAD + "".join(f"        {line}\n" for line in body.split("\n")))
