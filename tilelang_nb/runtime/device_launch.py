"""Launches of a kernel on a device: its code in the context of the device, and for each set of sizes the
configurations and parameter blocks of its launches.
"""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..lowering.launches import check_clusters
from ..source import catalogue as say
from ..source.diagnostic import Diagnostic, Refusal
from ..source.wording import with_article
from .device_faults import Faults
from .device_reports import ReportBuffer
from .driver import DriverError, LaunchArguments
from .parameter_block import POINTER, SLOT, Block, Launch, Layout
from .tensor_maps import WORDS, EncodedMaps, MapPlace, outline, word_name

# Results that say that the calling thread has no context, or one of another device.
NO_CONTEXT = ("CUDA_ERROR_INVALID_CONTEXT", "CUDA_ERROR_NOT_INITIALIZED", "CUDA_ERROR_INVALID_HANDLE")
AXES = "xyz"
UNUSED = 64  # programs whose code may wait to be freed


@dataclass(eq=False)
class Device:
    """One device as the launches of this process share it.

    unused: libraries whose programs are gone; their code is freed when the device is known to be idle.
    """

    devices: Any
    number: int
    faults: Faults
    lock: threading.RLock = field(default_factory=threading.RLock)
    unused: deque[Any] = field(default_factory=deque)
    _reports: ReportBuffer | None = None

    @property
    def reports(self) -> ReportBuffer:
        """The buffer that kernels print to; made when one does.  Used under the lock."""
        if self._reports is None:
            self._reports = ReportBuffer(self.devices)
        return self._reports

    @contextlib.contextmanager
    def current(self) -> Iterator[None]:
        """The device is the calling thread's within."""
        before = self.devices.enter(self.number)
        try:
            yield
        finally:
            self.devices.leave(before)

    def wait(self) -> None:
        """Wait for the launches on the device, and free the code that no one can launch any more.

        The device is the calling thread's current one.  DriverError: a fault of the work.
        """
        driver, unused = self.devices.driver, len(self.unused)
        taken = self.faults.take()  # and with them the kernels, whose code is needed until the wait is over
        try:
            if list(taken.tracks) == [0]:
                driver.synchronise(0)
            elif taken.tracks:  # it is not certain that their owners have not destroyed them
                driver.synchronise_context()
        except DriverError:
            self.faults.give_back(taken)
            raise
        for _ in range(unused):
            driver.unload(self.unused.popleft())


def device(devices: Any, number: int) -> Device:
    """The device of a number."""
    opened: dict[int, Device] = devices.opened
    found = opened.get(number)
    if found is None:
        faults = Faults(number, devices.driver.marks, lambda: [one.faults for one in list(opened.values())])
        found = opened.setdefault(number, Device(devices, number, faults))
    return found


class Loaded:
    """A program in the context of one device.

    functions: for each launch, of the driver.  Who launches one holds this object; when it dies, no launch can follow.
    Refusal TL302: the device cannot run it.  DeviceError: it has no code.
    """

    def __init__(self, program: Any, on: Device):
        self.program, self.device = program, on
        devices = on.devices
        facts = devices.facts(on.number)
        check_architecture(program.arch, facts)
        if len(on.unused) > UNUSED:
            on.wait()
        library = devices.driver.load(program.cubin)
        # The finaliser runs in any thread and at any point, so it only takes a note.
        weakref.finalize(self, on.unused.append, library).atexit = False
        self.functions = [devices.driver.function(library, launch.name) for launch in program.launches]
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
    """One launch of a plan whose grid is not empty.  report: reads what it printed; None if it prints nothing."""

    launch: Launch
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
        multiprocessors = self.device.devices.facts(self.device.number).multiprocessors
        sizes = {**sizes, **{launch.multiprocessors: multiprocessors for launch in launches if launch.multiprocessors}}
        self.reports = any(launch.report for launch in launches)
        places = {name: at for at, name in enumerate(order)}
        constants: dict[str, tuple[str, Any]] = {}
        for parameter in (parameter for launch in launches for parameter in launch.parameters):
            if parameter.name in sizes and parameter.name not in places:
                constants[parameter.name] = (parameter.dtype, sizes[parameter.name])
        for launch in launches:
            if launch.report:
                constants[launch.report] = (POINTER, self.device.reports.pointer)
        for at, launch in enumerate(launches):
            for tensor in launch.tensor_maps:
                constants |= {word_name(at, tensor, word): ("uint64", 0) for word in range(WORDS)}
        places |= {name: len(order) + at for at, name in enumerate(constants)}
        self.steps: list[Step] = []
        for index, launch in enumerate(launches):
            grid, block, shared = launch.configuration(sizes)
            grid, block = _three(grid), _three(block)
            if not all(grid):
                continue
            self._check(launch.name, grid, block, launch.cluster)
            loaded.allow_shared(index, shared)
            maps = {tensor.variable.name: places[word_name(index, tensor, 0)] for tensor in launch.tensor_maps}
            slots = tuple({**places, **maps}[parameter.name] for parameter in launch.parameters)
            made = Launch(loaded.functions[index], (*grid, *block, shared), slots, launch.cluster)
            self.steps.append(Step(made, loaded.program.reports[index] if launch.report else None))
        self.layout = Layout(list(order.values()), list(constants.values()), [step.launch for step in self.steps])
        shown = [
            MapPlace(SLOT * places[tensor.buffer.name], SLOT * places[word_name(at, tensor, 0)], outline(tensor, sizes))
            for at, launch in enumerate(launches)
            for tensor in launch.tensor_maps
        ]
        self.layout.maps = EncodedMaps(self.device.devices.driver, shown) if shown else None
        self.run = self._run_with_reports if self.reports else self._run

    def _check(self, name: str, grid: tuple[int, ...], block: tuple[int, ...], cluster: tuple[int, int, int]) -> None:
        facts = self.device.devices.facts(self.device.number)
        check_clusters(name, grid, cluster)
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

    def _run(self, values: Sequence[Any], stream: int) -> Shown:
        """Put the launches into a stream; values in the order of `order`.

        DriverError: the driver refuses.  struct.error, OverflowError: a number does not fit its type.
        """
        block = self.layout.filled(values, stream)
        launch = self.device.devices.driver.launch
        for call in block.calls:
            result = launch(*call)
            if result:
                self.again(result, call, block)
        self.layout.free.append(block)
        return NOTHING_SHOWN

    def again(self, result: int, call: LaunchArguments, block: Block) -> None:
        """A launch failed: a thread that did nothing on the device yet has no context; it gets one, once."""
        devices = self.device.devices
        error = devices.driver.error_of(result, "launching")
        if error.result in NO_CONTEXT:
            devices.activate(self.device.number)
            result = devices.driver.launch(*call)
            error = devices.driver.error_of(result, "launching") if result else None
        if error is not None:
            error.ran = call is not block.calls[0]
            raise error

    def _run_with_reports(self, values: Sequence[Any], stream: int) -> Shown:
        """Launch by launch, so that what one says stands before what the next does; none follows a failed assertion."""
        on = self.device
        driver = on.devices.driver
        printed: list[str] = []
        with on.lock:
            block = self.layout.filled(values, stream)
            for step, call in zip(self.steps, block.calls):
                silent = step.report is None or driver.is_capturing(stream)
                if not silent:
                    on.reports.clear(stream)
                result = driver.launch(*call)
                if result:
                    self.again(result, call, block)
                if silent:
                    continue
                grid, threads = step.launch.configuration[:3], step.launch.configuration[3:6]
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

    def launcher(self, values: Sequence[Any], stream: int) -> Callable[[], None]:
        """The launches for these values and nothing else: for timing, where what a kernel says is not read."""
        block = self.layout.filled(values, stream)
        if self.reports:
            self.device.reports.clear(stream)
        driver = self.device.devices.driver

        def launch() -> None:
            for call in block.calls:
                result = driver.launch(*call)
                if result:
                    self.again(result, call, block)

        return launch


NOTHING_SHOWN = Shown()


def _three(extents: Sequence[int]) -> tuple[int, int, int]:
    x, y, z = (*extents, 1, 1)[:3]
    return int(x), int(y), int(z)
