"""Which kernel a fault is laid to, and when the code of kernels that are gone is freed."""

from __future__ import annotations

import gc
import threading
from typing import Any

import numpy as np
import pytest
from runtime.stand_in_device import DeviceMemory, StandInDevices
from runtime.test_device_calls import CELL, no_compiler, on  # noqa: F401  (a fixture)

import tilelang_nb
from tilelang_nb.runtime import cache, device_calls, device_faults
from tilelang_nb.runtime.device_wait import faults

NAMES = ("scaled", "by_number", "high", "shared")
FAULT = "CUDA_ERROR_ILLEGAL_ADDRESS"


@pytest.fixture(scope="module")
def programs() -> dict[str, Any]:
    c = tilelang_nb.compile_cell(CELL, target="cuda", arch="sm_90a")
    assert c.ok, c.to_text()
    return c.kernels


class Launches:
    """Launches of kernels by name on stand-in devices, with arrays of the device."""

    def __init__(self, programs: dict[str, Any]):
        self.devices = StandInDevices()
        self.kernels = {name: on(programs[name], self.devices) for name in NAMES}
        floats, whole = DeviceMemory(np.zeros(64, np.float32)), DeviceMemory(np.zeros(64, np.int32))
        matrix = DeviceMemory(np.zeros((4, 4), np.float32))
        self.arguments = {"scaled": (floats, floats, 1.0), "by_number": (whole, 1), "high": (matrix,)}
        self.arguments["shared"] = (floats,)

    def __call__(self, *names: str, stream: int = 0) -> None:
        for name in names:
            self.kernels[name](*self.arguments[name], stream=stream)

    @property
    def marks(self) -> list[tuple[Any, ...]]:
        return [entry for entry in self.devices.driver.log if entry[0] in ("mark", "launch")]

    def suspects(self, finished: int = 0) -> set[str]:
        """The kernels that a fault names when it is waited for and so many marks were written."""
        if self.devices.driver.words is not None:
            self.devices.driver.words.done(finished)
        self.devices.driver.fails |= {"synchronise": FAULT, "synchronise_context": FAULT}
        (error,) = faults(self.devices)
        return {name for name in NAMES if f"`{name}`" in error.diagnostic.message}


@pytest.fixture
def launches(programs: dict[str, Any]) -> Launches:
    return Launches(programs)


@pytest.mark.parametrize(("finished", "name"), [(0, "scaled"), (1, "by_number"), (2, "high"), (3, "shared")])
def test_a_fault_is_laid_to_the_first_kernel_that_has_not_finished(
    launches: Launches, finished: int, name: str
) -> None:
    launches("scaled", "scaled", "by_number", "high", "high", "shared")
    assert launches.suspects(finished) == {name}


def test_launches_of_one_kernel_cost_no_mark(launches: Launches) -> None:
    for _ in range(20):
        launches("scaled")
    assert all(entry[0] == "launch" for entry in launches.marks)
    assert launches.suspects() == {"scaled"}


def test_a_mark_stands_in_the_stream_between_two_kernels(launches: Launches) -> None:
    launches("scaled", "by_number", stream=7)
    assert [(entry[0], entry[-1]) for entry in launches.marks] == [("launch", 7), ("mark", 7), ("launch", 7)]


def test_kernels_too_soon_after_each_other_are_named_together(
    launches: Launches, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device_faults.time, "monotonic", lambda: 5.0)
    launches(*["scaled", "by_number"] * 6)
    budget = device_faults.MARKS_AT_ONCE
    assert sum(entry[0] == "mark" for entry in launches.marks) == budget + 1
    assert launches.suspects(budget + 1) == {"scaled", "by_number"}


def test_marks_are_free_again_after_a_wait(launches: Launches) -> None:
    for _ in range(5):
        launches("scaled", "by_number", "scaled")
        assert faults(launches.devices) == []
    assert sum(entry[0] == "mark" for entry in launches.marks) == 10


def test_each_stream_has_a_suspect_of_its_own(launches: Launches) -> None:
    launches("scaled", "by_number", stream=7)
    launches("high", "shared", stream=9)
    assert launches.suspects(1) == {"by_number", "high"}


def test_launches_of_several_threads_have_no_known_order(launches: Launches) -> None:
    launches("scaled")
    thread = threading.Thread(target=launches, args=("by_number", "high"))
    thread.start()
    thread.join()
    assert launches.suspects(2) == {"scaled", "by_number", "high"}


def test_a_kernel_that_was_not_launched_is_no_suspect(launches: Launches) -> None:
    launches("scaled")
    launches.devices.driver.fails["launch"] = FAULT
    with pytest.raises(tilelang_nb.LaunchError, match="in kernel `scaled`"):
        launches("by_number")


def test_work_that_a_graph_records_does_not_run_yet(launches: Launches) -> None:
    launches.devices.driver.recording = {7}
    launches("scaled", "by_number", stream=7)
    assert [entry[0] for entry in launches.marks] == ["launch", "launch"]
    launches.devices.driver.fails |= {"synchronise": FAULT, "synchronise_context": FAULT}
    assert faults(launches.devices) == []


# -- code that is no longer needed


def gone(launches: Launches, name: str) -> None:
    cache.clear()
    launches.kernels.pop(name)
    gc.collect()


def unloaded(launches: Launches) -> list[str]:
    return [entry[0] for entry in launches.devices.driver.log if entry[0] in ("synchronise", "unload")]


def test_the_code_of_a_kernel_that_is_gone_is_freed_when_its_launches_are_done(programs: dict[str, Any]) -> None:
    launches = Launches(programs)
    launches("scaled", "by_number")
    gone(launches, "scaled")
    assert unloaded(launches) == []  # its launch may still run
    assert faults(launches.devices) == []
    gc.collect()
    assert faults(launches.devices) == []
    assert unloaded(launches) == ["synchronise", "unload"]
    launches("by_number")
    assert faults(launches.devices) == [] and unloaded(launches).count("unload") == 1


def test_the_code_that_a_graph_may_launch_stays(programs: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_calls, "IN_GRAPHS", {})
    launches = Launches(programs)
    launches("scaled")
    launches.devices.driver.recording = {7}
    launches("scaled", stream=7)
    launches.devices.driver.recording = set()
    gone(launches, "scaled")
    assert faults(launches.devices) == []
    gc.collect()
    assert faults(launches.devices) == []
    assert unloaded(launches) == ["synchronise"]
