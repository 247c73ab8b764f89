"""The figures of timed kernels in the report, each with its origin."""

from __future__ import annotations

from types import SimpleNamespace

from tilelang_nb.report.cell_run import CellRun
from tilelang_nb.report.json import to_data
from tilelang_nb.report.timing_facts import timing_facts
from tilelang_nb.runtime.timing import Benchmark, Times


def benchmark(**given):
    roofline = SimpleNamespace(milliseconds=0.1, bound="memory")
    known = {
        "name": "scale",
        "device": "a GPU",
        "times": Times((0.2, 0.25, 0.3)),
        "bytes": 500_000_000,
        "operations": 1e9,
        "matrix_operations": 4e9,
        "roofline": roofline,
    }
    return Benchmark(**{**known, **given})


def shown(measured):
    return {fact.name: (fact.value, fact.unit, fact.origin) for fact in timing_facts(measured)}


def test_measured_and_computed_figures_are_told_apart():
    assert shown(benchmark()) == {
        "time": ("0.25", "ms", "event timer"),
        "rate": ("20.0", "TFLOP/s", "computed"),
        "traffic": ("2,000", "GB/s", "computed"),
        "roofline": ("40 %", "", "computed"),
    }


def test_what_is_not_known_is_left_out():
    assert list(shown(benchmark(operations=None, roofline=None))) == ["time", "traffic"]


def test_a_baseline_is_named_with_its_time():
    measured = benchmark(baseline=Times((0.5,)), baseline_name="upstream")
    (fact,) = [fact for fact in timing_facts(measured) if fact.name == "baseline"]
    assert (fact.value, fact.ok) == ("0.500 of its time", True)
    assert "upstream: 0.5 ms" in fact.detail


def test_the_report_of_a_run_has_the_times_of_its_kernels_and_none_of_a_simulation(cell):
    def times(run):
        return [fact for fact in to_data(cell, run)["kernels"][0]["facts"] if fact["name"] == "time"]

    assert times(CellRun()) == []
    (simulated,) = times(CellRun(launches=(("scale", 2),)))
    assert (simulated["value"], simulated["origin"]) == ("not timed", "simulator")
    (timed,) = times(CellRun(launches=(("scale", 2),), benchmarks=(benchmark(),)))
    assert (timed["value"], timed["unit"]) == ("0.25", "ms")
