"""How many programs the property tests try: some hundreds with every run of the suite, thousands at night."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

NIGHTLY = os.environ.get("TILELANG_NB_TESTS") == "nightly"
TIMEOUT = 7200 if NIGHTLY else 300


def amount(usual: int, nightly: int) -> settings:
    """Settings that try `usual` examples, the same in every run, or `nightly` ones, new in every run."""
    return settings(
        max_examples=nightly if NIGHTLY else usual,
        derandomize=not NIGHTLY,
        database=None,
        deadline=None,
        print_blob=NIGHTLY,
        suppress_health_check=list(HealthCheck),
    )
