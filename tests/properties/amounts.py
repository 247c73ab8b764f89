"""How many programs the property tests try: some hundreds with every run of the suite, thousands at night."""

from __future__ import annotations

import os
import random

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st

NIGHTLY = os.environ.get("TILELANG_NB_TESTS") == "nightly"
TIMEOUT = 7200 if NIGHTLY else 300
PARTS = range(4 if NIGHTLY else 1)  # of the longest tests, so that several processes share them


# Sources of random numbers in which rare choices stay rare; hypothesis' own are full of 0.0 and of first items.
SOURCES = st.integers(0, 2**63).map(random.Random)


def amount(usual: int, nightly: int) -> settings:
    """Settings that try `usual` examples, the same in every run, or `nightly` ones, new in every run.

    What fails is shown as it is: from other numbers other programs are made, not smaller ones.
    """
    return settings(
        max_examples=nightly if NIGHTLY else usual,
        derandomize=not NIGHTLY,
        database=None,
        deadline=None,
        print_blob=NIGHTLY,
        phases=(Phase.explicit, Phase.generate),
        suppress_health_check=list(HealthCheck),
    )
