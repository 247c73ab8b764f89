"""Kernels over tiles compute what their text computes as plain Python on NumPy arrays, exactly, and without a finding."""

from __future__ import annotations

import random
import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from properties import tile_model
from properties.amounts import NIGHTLY, PARTS, SOURCES, TIMEOUT, amount
from properties.tile_kernels import TileKernel

import tilelang_nb


def expected(kernel: TileKernel, launch: int) -> dict[str, np.ndarray] | None:
    """What every array holds afterwards; None where that depends on unwritten memory, or on the order of iterations.

    The first launch tries both orders.
    """
    results = []
    for forwards in (True, False)[: 2 if launch == 0 else 1]:
        tensors, scalars, symbols = kernel.launches()[launch]
        try:
            tile_model.run(kernel.text, tensors, scalars, symbols, forwards)
        except tile_model.UnwrittenRead:
            return None
        results.append(tensors)
    first, second = results[0], results[-1]
    same = all(np.array_equal(first[name], second[name], equal_nan=True) for name in first)
    return first if same else None


def compare(kernel: TileKernel) -> str:
    """ "same" or "refused CODE"; AssertionError on a difference or a finding."""
    made = tilelang_nb.compile_cell(kernel.text, {}, target="sim")
    errors = [found for found in made.diagnostics if found.severity == "error"]
    if errors:
        # Threads cannot always wait for each other, or hold what every one of them writes; all else is right.
        assert {found.code for found in errors} == {"TL210"}, f"{made.to_text()}\n{kernel.text}"
        return f"refused {errors[0].code}"
    outcome = "same"
    for launch, (tensors, scalars, _) in enumerate(kernel.launches()[: 4 if NIGHTLY else 2]):
        wanted = expected(kernel, launch)
        if wanted is None:
            outcome = "no result to expect"
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of findings, which are looked at
            made.kernels["k"](**tensors, **scalars)
        found = [str(finding) for finding in made.kernels["k"].findings]
        assert not found, f"{scalars}: {found}\n{kernel.text}"
        for name, array in wanted.items():
            message = f"{name}, {scalars}\n{kernel.text}"
            np.testing.assert_array_equal(tensors[name], array, err_msg=message)
    return outcome


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.timeout(TIMEOUT)
def test_random_tile_kernels_compute_what_numpy_computes(
    record_property: Callable[[str, Any], None], part: int
) -> None:
    outcomes: Counter[str] = Counter()

    @amount(16, 1000 // len(PARTS))
    @given(SOURCES)
    def check(source: random.Random) -> None:
        outcomes[compare(TileKernel(source))] += 1

    check()
    total = sum(outcomes.values())
    refused = sum(number for outcome, number in outcomes.items() if outcome.startswith("refused"))
    parts = ", ".join(f"{outcome} {number}" for outcome, number in outcomes.most_common())
    record_property("random tile kernels", f"{total} run, {refused / total:.0%} refused ({parts})")
    assert outcomes["same"] > total * 0.9
