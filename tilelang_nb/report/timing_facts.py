"""The figures of a timed kernel, and what stands in their place where nothing can be timed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from .facts import Fact


def timing_facts(benchmark: Any) -> Iterator[Fact]:
    """Time, rates, share of the roofline and ratio to a baseline, as `runtime.timing.Benchmark` has them."""
    times = benchmark.times
    spread = f"{times.quantile(0.1):.4f} to {times.quantile(0.9):.4f} ms"
    detail = f"median of {len(times.milliseconds)} on {benchmark.device}, 80 % in {spread}"
    yield Fact("time", f"{benchmark.milliseconds:.4g}", detail, "event timer", "ms")
    if benchmark.teraflops is not None:
        yield Fact("rate", f"{benchmark.teraflops:,.1f}", "operations over the median time", "computed", "TFLOP/s")
    bandwidth = f"{benchmark.gigabytes_per_second:,.0f}"
    yield Fact("traffic", bandwidth, "each tensor once, over the median time", "computed", "GB/s")
    if benchmark.roofline is not None:
        share = 100 * benchmark.roofline.milliseconds / benchmark.milliseconds
        detail = f"at best {benchmark.roofline.milliseconds:.4g} ms, {benchmark.roofline.bound}"
        yield Fact("roofline", f"{share:.0f} %", detail, "computed")
    if benchmark.baseline is not None:
        detail = f"{benchmark.baseline_name}: {benchmark.baseline.median:.4g} ms"
        yield Fact("baseline", f"{benchmark.ratio:.3f} of its time", detail, "event timer", ok=benchmark.ratio <= 1)


def run_facts(kernel: Any, launched: bool, benchmarks: Iterable[Any]) -> Iterator[Fact]:
    """The times of a kernel in a run.  launched: did the run launch it?"""
    timed = [benchmark for benchmark in benchmarks if benchmark.name == kernel.name]
    for benchmark in timed:
        yield from timing_facts(benchmark)
    if launched and not timed and kernel.target.kind == "sim":
        yield Fact("time", "not timed", "the time of a simulated launch says nothing about a GPU", "simulator")
