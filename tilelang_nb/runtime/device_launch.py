"""Launches of a kernel on a device: its code in the context of the device, and for each set of sizes the
configurations and parameter blocks of its launches.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..source import catalogue as say
from ..source.diagnostic import Diagnostic, Refusal
from ..source.wording import with_article
from .device_faults import Faults
from .device_reports import ReportBuffer
from .parameter_block import POINTER, Layout

# Results that say that the calling thread has no context, or one of another device.
NO_CONTEXT = ("CUDA_ERROR_INVALID_CONTEXT", "CUDA_ERROR_NOT_INITIALIZED", "CUDA_ERROR_INVALID_HANDLE")
AXES = "xyz"
REPORT = "address of the report"


@dataclass(eq=False)
class Device:
    """One device as the launches of this process share it."""

    devices: Any
    number: int
    faults: Faults
    lock: threading.RLock = field(default_factory=threading.RLock)
    _reports: ReportBuffer | None = None

    @property
    def reports(self) -> ReportBuffer:
        """The buffer that kernels print to; made when one does.  Used under the lock."""
        if self._reports is None:
            self._reports = ReportBuffer(self.devices)
        return self._reports


def device(devices: Any, number: int) -> Device:
    """The device of a number."""
    opened: dict[int, Device] = devices.opened
    return opened.get(number) or opened.setdefault(number, Device(devices, number, Faults(number)))


class Loaded:
    """A program in the context of one device.

    functions: for each launch, of the driver.  Refusal TL302: the device cannot run it.  DeviceError: it has no code.
    """

    def __init__(self, program: Any, on: Device):
        self.program, self.device = program, on
        devices = on.devices
        facts = devices.facts(on.number)
        check_architecture(program.arch, facts)
        self.library = devices.driver.load(program.cubin)
        self.functions = [devices.driver.function(self.library, launch.name) for launch in program.launches]
        self._shared = [facts.shared_bytes_default] * len(self.functions)

    def allow_shared(self, index: int, size: int) -> None:
        """Let launch `index` use so many bytes of dynamic shared memory."""
        facts = self.device.devices.facts(self.device.number)
        if size > facts.shared_bytes:
            raise Refusal(
                say.SharedMemoryExceeded(
                    needed=str(size),
                    arch=f"device {facts.number} ({facts.name})",
                    available=str(facts.shared_bytes),
                    biggest="the shared buffers of this kernel",
                )
            )
        if size > self._shared[index]:
            self.device.devices.driver.allow_shared(self.functions[index], size)
            self._shared[index] = size


def check_architecture(arch: str, facts: Any) -> None:
    """Code for one architecture runs on later ones of the same generation; with `a` on that one only."""
    major, minor = facts.capability
    digits = arch.removeprefix("sm_").rstrip("af")
    own = (int(digits[:-1]), int(digits[-1]))
    exact = arch.endswith("a")
    if own[0] != major or own[1] > minor or (exact and own[1] != minor):
        found = f"device {facts.number} ({facts.name}) is {with_article(f'sm_{major}{minor}')}"
        problem = f"code for {arch} does not run here: {found}"
        raise Refusal(say.TargetUnavailable(problem=problem, remedy="leave out `arch`: it is then the device's own"))


@dataclass
class Step:
    """One launch of a plan.

    configuration: grid, block and dynamic shared bytes as the driver takes them; None where the grid is empty.
    report: reads what it printed; None if it prints nothing.
    """

    function: Any
    layout: Layout
    configuration: tuple[int, int, int, int, int, int, int] | None
    report: Any


@dataclass(frozen=True)
class Shown:
    """What a call printed, and the assertions that ended it."""

    printed: tuple[str, ...] = ()
    failures: tuple[Diagnostic, ...] = ()


class Plan:
    """The launches of a kernel for one set of sizes on one device.

    order: names of the values of a call: parameters, workspaces.  A program that reports takes the address of the
    buffer after them.  sizes: values of the shape variables by name.  Where grids depend on numbers among the
    arguments, there is a plan for each set of them.
    """

    def __init__(self, loaded: Loaded, order: Sequence[str], sizes: Mapping[str, int]):
        self.loaded, self.device = loaded, loaded.device
        self.reports = any(launch.report for launch in loaded.program.launches)
        places = {name: at for at, name in enumerate(order)}
        if self.reports:
            order = [*order, REPORT]
            places |= {launch.report: len(order) - 1 for launch in loaded.program.launches if launch.report}
        constants = [name for name in sizes if name not in places]
        places |= {name: len(order) + at for at, name in enumerate(constants)}
        self.constants = tuple(sizes[name] for name in constants)
        self.steps = [self._step(index, places, sizes) for index in range(len(loaded.functions))]
        self._raw_launch = self.device.devices.driver.raw_launch
        self._one_device = self.device.devices.count == 1

    def _step(self, index: int, places: Mapping[str, int], sizes: Mapping[str, int]) -> Step:
        launch = self.loaded.program.launches[index]
        names = [parameter.name for parameter in launch.parameters]
        dtypes = [POINTER if parameter.kind == POINTER else parameter.dtype for parameter in launch.parameters]
        layout = Layout(dtypes, [places[name] for name in names])
        grid, block, shared = launch.configuration(sizes)
        grid, block = _three(grid), _three(block)
        configuration = None
        if all(grid):
            self._check(launch.name, grid, block)
            self.loaded.allow_shared(index, shared)
            configuration = (*grid, *block, shared)
        report = self.loaded.program.reports[index] if launch.report else None
        return Step(self.loaded.functions[index], layout, configuration, report)

    def _check(self, name: str, grid: tuple[int, ...], block: tuple[int, ...]) -> None:
        facts = self.device.devices.facts(self.device.number)
        for axis, extent, most in zip(AXES, grid, facts.largest_grid):
            if extent > most or extent < 0:
                problem = f"the grid of `{name}` has {extent} blocks along {axis}, the device takes at most {most}"
                remedy = "give the longest axis of the grid first (x), or let a block do more"
                raise Refusal(say.LaunchConfiguration(problem=problem, remedy=remedy))
        for axis, extent, most in zip(AXES, block, facts.largest_block):
            if not 1 <= extent <= most:
                problem = f"a block of `{name}` has {extent} threads along {axis}, the device takes 1 to {most}"
                raise Refusal(say.LaunchConfiguration(problem=problem, remedy="give `threads` other extents"))
        if block[0] * block[1] * block[2] > facts.threads:
            problem = f"a block of `{name}` has {block[0] * block[1] * block[2]} threads, the device takes 1 to 1024"
            raise Refusal(say.LaunchConfiguration(problem=problem, remedy="give `T.Kernel` fewer `threads`"))

    def run(self, values: Sequence[Any], stream: int) -> Shown:
        """Put the launches into a stream; values in the order of `order`.  DriverError, struct.error, OverflowError."""
        if self.reports:
            return self._run_with_reports(values, stream)
        values = (*values, *self.constants)
        handle = self.device.devices.driver.stream(stream)
        if not self._one_device:
            self.device.devices.activate(self.device.number)
        for step in self.steps:
            if step.configuration is not None:
                self._launch(step, values, handle)
        return NOTHING_SHOWN

    def _launch(self, step: Step, values: Sequence[Any], handle: Any) -> None:
        block = step.layout.block(values)
        configuration = step.configuration
        assert configuration is not None
        result = self._raw_launch(step.function, *configuration, handle, block.address, 0)[0]
        if result:
            error = self.device.devices.driver.error_of(result, "launching")
            if error.result not in NO_CONTEXT:
                raise error
            # A thread that did nothing on the device yet has no context.
            self.device.devices.activate(self.device.number)
            result = self._raw_launch(step.function, *configuration, handle, block.address, 0)[0]
            if result:
                raise self.device.devices.driver.error_of(result, "launching")
        step.layout.free.append(block)

    def _run_with_reports(self, values: Sequence[Any], stream: int) -> Shown:
        """Launch by launch, so that what one says stands before what the next does; none follows a failed assertion."""
        on = self.device
        driver = on.devices.driver
        with on.lock:
            on.devices.activate(on.number)
            buffer = on.reports
            values = (*values, buffer.pointer, *self.constants)
            handle = driver.stream(stream)
            printed: list[str] = []
            for step in self.steps:
                if step.configuration is None:
                    continue
                silent = step.report is None or driver.is_capturing(stream)
                if not silent:
                    buffer.clear(stream)
                self._launch(step, values, handle)
                if silent:
                    continue
                grid, block = step.configuration[:3], step.configuration[3:6]
                content = step.report.read(buffer.read(stream), grid, block)
                printed += content.printed
                if content.failures:
                    return Shown(tuple(printed), content.failures)
            return Shown(tuple(printed))

    def launcher(self, values: Sequence[Any], stream: int) -> Callable[[], None]:
        """The launches for these values and nothing else: for timing, where what a kernel says is not read."""
        if self.reports:
            self.device.reports.clear(stream)
            values = (*values, self.device.reports.pointer)
        values = (*values, *self.constants)
        handle = self.device.devices.driver.stream(stream)
        steps = [step for step in self.steps if step.configuration is not None]

        def launch() -> None:
            for step in steps:
                self._launch(step, values, handle)

        return launch


NOTHING_SHOWN = Shown()


def _three(extents: Sequence[int]) -> tuple[int, int, int]:
    x, y, z = (*extents, 1, 1)[:3]
    return int(x), int(y), int(z)
