"""Tests that need a device: skipped without one, and not stopped by a kernel that costs the process its context."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tilelang_nb.runtime import numba_device

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    reason = numba_device.missing()
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.gpu)
            if reason is not None:
                item.add_marker(pytest.mark.skip(reason=f"needs a device: {reason}"))


@pytest.fixture
def hopper() -> None:
    """For tests of programs that only sm_90a runs."""
    facts = numba_device.devices().facts(0)
    if facts.capability != (9, 0):
        pytest.skip(f"needs a device of sm_90a, this one is {facts.name}")


@pytest.fixture(autouse=True)
def context_of_its_own(request: pytest.FixtureRequest) -> Iterator[None]:
    """A process whose context is lost runs nothing more: under pytest-xdist it ends and another takes its place."""
    yield
    opened = numba_device.opened()
    lost = (
        next((on.faults.lost for on in opened.opened.values() if on.faults.lost), None) if opened is not None else None
    )
    if lost is not None and "PYTEST_XDIST_WORKER" in os.environ:
        print(f"{request.node.nodeid}: {lost}", file=sys.__stderr__, flush=True)
        os._exit(1)
