"""Damaged cells get a report: whatever is wrong with a text, it is said at a place in it, and the process lives."""

from __future__ import annotations

import builtins
import contextlib
import io
import itertools
import math
import random
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties.amounts import TIMEOUT, amount
from properties.mutations import cells, mutated
from properties.reporting import compiled

import tilelang_nb.language as T
from tilelang_nb import tilelang

MODULES = (T, tilelang, np, np.random, math, itertools, builtins)


@contextlib.contextmanager
def kept_modules() -> Iterator[None]:
    """What a damaged cell does to the modules that cells import is undone: the next one finds them as they were."""
    before = [(module, dict(vars(module))) for module in MODULES]
    try:
        yield
    finally:
        for module, names in before:
            vars(module).update(names)


def outcome(text: str) -> str:
    """ "accepted" or the first code; AssertionError where the report is not as it must be."""
    with kept_modules(), warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")  # of Python about the damaged text, and findings of launches in it
        made = compiled(text)
    return "accepted" if made.ok else next(found.code for found in made.diagnostics if found.severity == "error")


@pytest.mark.timeout(TIMEOUT)
def test_damaged_cells_are_reported(record_property: Callable[[str, Any], None]) -> None:
    outcomes: Counter[str] = Counter()
    texts = cells()

    @amount(300, 5000)
    @given(st.sampled_from(texts), st.randoms(use_true_random=False))
    def check(text: str, source: random.Random) -> None:
        outcomes[outcome(mutated(text, source, texts))] += 1

    check()
    parts = ", ".join(f"{code} {number}" for code, number in outcomes.most_common(12))
    record_property("damaged cells", f"{sum(outcomes.values())} tried, {len(outcomes)} outcomes ({parts} ...)")
    assert len(outcomes) > 10
