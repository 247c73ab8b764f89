"""Times of launches on a GPU: between two events around each launch, after a warm-up, with the second-level cache
flushed before each; beside a baseline in turn with it, and beside what the device could do at best.

The simulated device has no clock: a time on it is refused, TL302.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..source import catalogue as say
from . import numba_device
from .device_arrays import DeviceArray, torch_stream
from .device_calls import DeviceCalls, Prepared
from .driver import DriverError
from .errors import LaunchError
from .roofline import Roofline, limits_of, roofline

WARM_UP = 3  # launches that are not counted
FEWEST, MOST = 20, 1000  # launches that are
SPENT = 100.0  # milliseconds of launches to aim at
FLUSHED = 256 << 20  # bytes written to empty the cache; at least twice the cache


NOT_HERE = "compare the `counters` of two kernels, or measure on a GPU"


def no_timing(what: str, span: Any = None, text: Any = None, remedy: str = NOT_HERE) -> LaunchError:
    """The refusal of a measurement where there is no device to measure."""
    message = say.TargetUnavailable(
        problem=f"{what}: the simulated device has no clock, its time says nothing about a GPU",
        remedy=remedy,
    )
    return LaunchError(message.at(span), text)


@dataclass(frozen=True)
class Times:
    """Milliseconds of single launches, in the order in which they were made."""

    milliseconds: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.milliseconds)

    @property
    def mean(self) -> float:
        return statistics.fmean(self.milliseconds)

    @property
    def least(self) -> float:
        return min(self.milliseconds)

    @property
    def most(self) -> float:
        return max(self.milliseconds)

    def quantile(self, share: float) -> float:
        """The time that this share of the launches did not exceed, between two launches in proportion."""
        ordered = sorted(self.milliseconds)
        at = share * (len(ordered) - 1)
        low = int(at)
        high = min(low + 1, len(ordered) - 1)
        return ordered[low] + (ordered[high] - ordered[low]) * (at - low)


@dataclass(frozen=True)
class Benchmark:
    """What timing a kernel gave.

    times: of the kernel.  bytes: of each tensor once, read or written (both: twice).  operations, matrix_operations:
    of floating point, counted in the program; None where they depend on data.  roofline: the least time of the device
    for these, None where the device does not tell.  baseline: times of the callable to compare with, None without one.
    """

    name: str
    device: str
    times: Times
    bytes: int
    operations: float | None
    matrix_operations: float | None
    roofline: Roofline | None
    baseline: Times | None = None
    baseline_name: str = ""

    @property
    def milliseconds(self) -> float:
        """The median."""
        return self.times.median

    @property
    def gigabytes_per_second(self) -> float:
        """The bytes over the median time."""
        return self.bytes / self.milliseconds / 1e6

    @property
    def teraflops(self) -> float | None:
        """10^12 floating-point operations per second at the median time."""
        if self.operations is None or self.matrix_operations is None:
            return None
        return (self.operations + self.matrix_operations) / self.milliseconds / 1e9

    @property
    def ratio(self) -> float | None:
        """Median time over that of the baseline; below 1 the kernel is faster."""
        return None if self.baseline is None else self.milliseconds / self.baseline.median

    def __str__(self) -> str:
        spread = f"{self.times.quantile(0.1):.4f} to {self.times.quantile(0.9):.4f}"
        count = len(self.times.milliseconds)
        lines = [f"{self.name} on {self.device}: {self.milliseconds:.4f} ms (median of {count}, 80 % in {spread} ms)"]
        rates = f"  {self.gigabytes_per_second:,.0f} GB/s"
        if self.teraflops is not None:
            rates += f", {self.teraflops:,.2f} TFLOP/s"
        lines.append(rates)
        if self.roofline is not None:
            share = 100 * self.roofline.milliseconds / self.milliseconds
            lines.append(
                f"  {share:.0f} % of the roofline ({self.roofline.milliseconds:.4f} ms, {self.roofline.bound})"
            )
        if self.baseline is not None:
            median = self.baseline.median
            lines.append(f"  {self.ratio:.3f} of the time of {self.baseline_name} ({median:.4f} ms)")
        return "\n".join(lines)

    __repr__ = __str__


class Clock:
    """Times callables that put work into one stream of the device at hand.  DriverError: the device failed."""

    def __init__(self, devices: Any, number: int, stream: int, *, flush: bool = True):
        self.devices, self.stream = devices, stream
        size = max(FLUSHED, 2 * devices.facts(number).l2_bytes)
        self._flush = devices.allocate(size) if flush else None
        self._size = size

    def once(self, work: Callable[[], Any]) -> float:
        """Milliseconds of one call's work."""
        return self.each([work], 1)[0].milliseconds[0]

    def each(self, works: Sequence[Callable[[], Any]], count: int) -> list[Times]:
        """`count` calls of each, in turn."""
        devices, stream = self.devices, self.stream
        pairs: list[list[Any]] = [[] for _ in works]
        for _ in range(count):
            for work, mine in zip(works, pairs):
                first, last = devices.event(), devices.event()
                if self._flush is not None:
                    devices.driver.fill(self._flush.pointer, 0, self._size, stream)
                devices.record(first, stream)
                work()
                devices.record(last, stream)
                mine.append((first, last))
        devices.driver.synchronise(stream)
        return [Times(tuple(devices.milliseconds(*pair) for pair in mine)) for mine in pairs]

    def several(self, works: Sequence[Callable[[], Any]], repeat: int | None, warm_up: int) -> list[Times]:
        """Warm up, then as many calls of each as fit in the time to spend, or `repeat`."""
        for work in works:
            for _ in range(warm_up):
                work()
        if repeat is None:
            longest = max(self.once(work) for work in works)
            repeat = int(min(max(SPENT / max(longest, 1e-3), FEWEST), MOST))
        return self.each(works, repeat)


def bench(
    kernel: Any,
    build: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    *,
    baseline: Callable[[], Any] | None = None,
    repeat: int | None = None,
    warm_up: int = WARM_UP,
    flush: bool = True,
    stream: Any = None,
    devices: Any = None,
) -> Benchmark:
    """Time the launches of a call.  Refusal: the call cannot be launched.  LaunchError: the device failed."""
    calls = DeviceCalls(kernel, build, devices)
    devices = calls.devices
    on = None
    try:
        with devices.kept():
            launch, prepared, memory = calls.launcher(args, kwargs, stream)
            works = [launch] if baseline is None else [launch, baseline]
            on = prepared.on
            clock = Clock(devices, on.number, prepared.stream, flush=flush)
            times = clock.several(works, repeat, warm_up)
    except DriverError as error:
        error.ran = on is not None
        raise (calls.faults() if on is None else on.faults).error(error, kernel) from None
    del memory  # the copies of host arrays had to live until here
    counted = calls.counted(prepared)
    size = _bytes(prepared, counted)
    facts = devices.facts(prepared.on.number)
    best = roofline(limits_of(facts), size, counted.operations, counted.matrix_operations)
    name = getattr(baseline, "__name__", "the baseline") if baseline is not None else ""
    return Benchmark(
        kernel.name,
        facts.name,
        times[0],
        size,
        counted.operations,
        counted.matrix_operations,
        best,
        times[1] if baseline is not None else None,
        "the baseline" if name == "<lambda>" else name,
    )


def bench_callable(
    function: Callable[[], Any], *, repeat: int | None = None, warm_up: int = WARM_UP, flush: bool = True
) -> Times:
    """Time a callable that works on the stream of torch where torch is loaded, else on the default stream."""
    import sys

    reason = numba_device.missing()
    if reason is not None:
        raise no_timing(f"timing ({reason})")
    devices = numba_device.devices()
    number = devices.current()
    devices.activate(number)
    torch = sys.modules.get("torch")
    stream = torch_stream(number) if torch is not None and torch.cuda.is_available() else 0
    try:
        (times,) = Clock(devices, number, stream, flush=flush).several([function], repeat, warm_up)
    except DriverError as error:
        message = say.TargetUnavailable(problem=f"timing failed: {error.words}", remedy="see what was launched before")
        raise LaunchError(message.at(None)) from None
    return times


def _bytes(prepared: Prepared, counted: Any) -> int:
    """Bytes that have to be moved: each tensor that is read once, each that is written once."""
    total = 0
    for name, value in prepared.binding.values.items():
        if hasattr(value, "itemsize") and hasattr(value, "shape"):
            size = value.size * value.itemsize if isinstance(value, DeviceArray) else value.nbytes
            total += size * ((name in counted.read) + (name in counted.written))
    for name, (shape, dtype) in prepared.binding.outputs.items():
        size = dtype.itemsize
        for extent in shape:
            size *= extent
        total += size * ((name in counted.read) + (name in counted.written))
    return total
