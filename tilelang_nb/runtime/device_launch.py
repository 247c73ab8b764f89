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
from .driver import DriverError
from .parameter_block import POINTER, Layout

# Results that say that the calling thread has no context, or one of another device.
NO_CONTEXT = ("CUDA_ERROR_INVALID_CONTEXT", "CUDA_ERROR_NOT_INITIALIZED", "CUDA_ERROR_INVALID_HANDLE")
AXES = "xyz"


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
    index: int
    configuration: tuple[int, int, int, int, int, int, int] | None
    report: Any


@dataclass(frozen=True)
class Shown:
    """What a call printed, and the assertions that ended it."""

    printed: tuple[str, ...] = ()
    failures: tuple[Diagnostic, ...] = ()


class Plan:
    """The launches of a kernel for one set of sizes on one device.

    order: names and types of the values of a call: parameters, workspaces; POINTER for addresses.  sizes: values of
    the shape variables by name, and of the numbers among the arguments where grids depend on them.
    struct.error: a size does not fit the type of its variable.
    """

    def __init__(self, loaded: Loaded, order: Mapping[str, str], sizes: Mapping[str, int]):
        self.loaded, self.device = loaded, loaded.device
        launches = loaded.program.launches
        self.reports = any(launch.report for launch in launches)
        places = {name: at for at, name in enumerate(order)}
        constants: dict[str, tuple[str, Any]] = {}
        for parameter in (parameter for launch in launches for parameter in launch.parameters):
            if parameter.name in sizes and parameter.name not in places:
                constants[parameter.name] = (parameter.dtype, sizes[parameter.name])
        for launch in launches:
            if launch.report:
                constants[launch.report] = (POINTER, self.device.reports.pointer)
        places |= {name: len(order) + at for at, name in enumerate(constants)}
        slots = [[places[parameter.name] for parameter in launch.parameters] for launch in launches]
        self.layout = Layout(list(order.values()), list(constants.values()), slots)
        self.steps = [self._step(index, sizes) for index in range(len(launches))]
        self.run = self._run_with_reports if self.reports else self._runner()

    def _step(self, index: int, sizes: Mapping[str, int]) -> Step:
        launch = self.loaded.program.launches[index]
        grid, block, shared = launch.configuration(sizes)
        grid, block = _three(grid), _three(block)
        configuration = None
        if all(grid):
            self._check(launch.name, grid, block)
            self.loaded.allow_shared(index, shared)
            configuration = (*grid, *block, shared)
        report = self.loaded.program.reports[index] if launch.report else None
        return Step(self.loaded.functions[index], index, configuration, report)

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

    def _runner(self) -> Callable[[Sequence[Any], int], Shown]:
        """`run(values, stream)`: put the launches into a stream; values in the order of `order`.

        DriverError: the driver refuses.  struct.error, OverflowError: a number does not fit its type.
        What a call needs is in local variables: this is most of what the host does for it.
        """
        layout, device = self.layout, self.device
        driver, activate, number = device.devices.driver, device.devices.activate, device.number
        pack_into, free, new_block, stream_of = layout.pack_into, layout.free, layout.block, driver.stream
        launch, one_device, again = driver.raw_launch, device.devices.count == 1, self._again
        steps = [(step.function, *step.configuration, step.index) for step in self.steps if step.configuration]

        def run(values: Sequence[Any], stream: int) -> Shown:
            block = free.pop() if free else new_block()
            pack_into(block.memory, 0, *values)
            handle, addresses = stream_of(stream), block.addresses
            if not one_device:
                activate(number)
            for function, gx, gy, gz, bx, by, bz, shared, index in steps:
                result = launch(function, gx, gy, gz, bx, by, bz, shared, handle, addresses[index], 0)[0]
                if result:
                    again(result, (function, gx, gy, gz, bx, by, bz, shared, handle, addresses[index], 0))
            free.append(block)
            return NOTHING_SHOWN

        return run

    def _again(self, result: Any, arguments: tuple[Any, ...]) -> None:
        """A launch failed: a thread that did nothing on the device yet has no context; it gets one, once."""
        devices = self.device.devices
        error = devices.driver.error_of(result, "launching")
        if error.result not in NO_CONTEXT:
            raise error
        devices.activate(self.device.number)
        result = devices.driver.raw_launch(*arguments)[0]
        if result:
            raise devices.driver.error_of(result, "launching")

    def _run_with_reports(self, values: Sequence[Any], stream: int) -> Shown:
        """Launch by launch, so that what one says stands before what the next does; none follows a failed assertion."""
        on = self.device
        driver = on.devices.driver
        printed: list[str] = []
        with on.lock:
            on.devices.activate(on.number)
            block = self.layout.block()
            self.layout.pack_into(block.memory, 0, *values)
            for step in self.steps:
                if step.configuration is None:
                    continue
                silent = step.report is None or driver.is_capturing(stream)
                if not silent:
                    on.reports.clear(stream)
                self._launch(step, block.addresses[step.index], stream)
                if silent:
                    continue
                grid, threads = step.configuration[:3], step.configuration[3:6]
                try:
                    words = on.reports.read(stream)
                except DriverError as error:
                    error.ran = True
                    raise
                content = step.report.read(words, grid, threads)
                printed += content.printed
                if content.failures:
                    return Shown(tuple(printed), content.failures)
            self.layout.free.append(block)
            return Shown(tuple(printed))

    def _launch(self, step: Step, address: int, stream: int) -> None:
        driver = self.device.devices.driver
        assert step.configuration is not None
        arguments = (step.function, *step.configuration, driver.stream(stream), address, 0)
        result = driver.raw_launch(*arguments)[0]
        if result:
            self._again(result, arguments)

    def launcher(self, values: Sequence[Any], stream: int) -> Callable[[], None]:
        """The launches for these values and nothing else: for timing, where what a kernel says is not read."""
        block = self.layout.block()
        self.layout.pack_into(block.memory, 0, *values)
        if self.reports:
            self.device.reports.clear(stream)
        steps = [step for step in self.steps if step.configuration is not None]

        def launch() -> None:
            for step in steps:
                self._launch(step, block.addresses[step.index], stream)

        return launch


NOTHING_SHOWN = Shown()


def _three(extents: Sequence[int]) -> tuple[int, int, int]:
    x, y, z = (*extents, 1, 1)[:3]
    return int(x), int(y), int(z)
