"""Calls of a kernel for a device: arguments of every kind to a plan of launches, and a short way for calls that are
like an earlier one.

The short way looks up a call by the types, shapes, strides and devices of its arguments and goes straight to the
filled parameter block; it takes device arrays that can be used where they are, and numbers.  Everything else, every
refusal among it, goes the long way, which binds the call anew.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakSet

from ..device import DeviceError
from ..device.counting import count
from ..source import catalogue as say
from ..source.diagnostic import Refusal
from . import numba_device
from .arguments import Binding, bind, uninitialised
from .device_arrays import DeviceArray, Reader, new_array, stream_handle
from .device_faults import Faults
from .device_launch import NOTHING_SHOWN, Device, Loaded, Plan, Shown, device
from .device_transfer import Transfers
from .driver import DriverError
from .errors import LaunchError
from .host_arrays import PLACEHOLDER, as_callers_kind, host_dtype
from .parameter_block import POINTER, packed_number
from .short_way import LAUNCHED as LAUNCHED
from .short_way import Call, Outputs, maker, pointer_of, short_way
from .target import ON_SIM

KEPT = 512  # plans of a kernel: sizes that come once each must not fill the memory
IN_GRAPHS: dict[int, Any] = {}  # what graphs that were recorded may launch, and the memory for it
WAYS = 32  # short ways, the one used last first


# The calls of every kernel that was launched on a device.
EVERY: WeakSet[DeviceCalls] = WeakSet()


@dataclass
class Workspaces:
    """Memory of `T.alloc_global` for the calls of a plan.

    Calls in one stream follow each other, so they use the same memory; each stream has its own.
    """

    sizes: tuple[int, ...]
    _memory: dict[int, list[Any]] = field(default_factory=dict)

    def pointers(self, devices: Any, stream: int) -> tuple[int, ...]:
        if not self.sizes:
            return ()
        found = self._memory.get(stream)
        if found is None:
            found = self._memory[stream] = [devices.allocate(size) for size in self.sizes]
        return tuple(memory.pointer for memory in found)


@dataclass(frozen=True)
class Prepared:
    """A bound call, ready to be launched on its device.  capturing: into a stream that records a graph."""

    binding: Binding
    on: Device
    plan: Plan
    workspaces: Workspaces
    stream: int
    others: tuple[int, ...]
    capturing: bool


class DeviceCalls:
    """The calls of one kernel on the devices of this machine.

    kernel: its name, text, place, target, outputs.  build: its code.  devices: those of the machine unless given.
    first: the short way of the latest call, to be tried before `short`.  launches: calls so far; a notebook begins anew
    with each cell.
    Refusal TL302: there are none.
    """

    def __init__(self, kernel: Any, build: Any, devices: Any = None):
        self.kernel, self.build = kernel, build
        self.devices = devices = _devices(kernel) if devices is None else devices
        self._read = Reader(devices)
        parameters = build.program.parameters
        self._names = [parameter.name for parameter in parameters]
        self._numbers = [parameter for parameter in parameters if parameter.kind == "scalar"]
        self._order = dict.fromkeys(self._names, POINTER)
        self._order |= {parameter.name: parameter.dtype for parameter in self._numbers}
        self._order |= {workspace.name: POINTER for workspace in build.lowered.workspaces}
        self._plans: dict[Any, tuple[Plan, Workspaces]] = {}
        self._ways: list[Call] = []
        self.first: Call = _no_way
        self.launches = 0
        EVERY.add(self)
        self._numbers_decide: bool | None = None

    # -- the short way

    def short(self, args: tuple[Any, ...], stream: int | None = None) -> tuple[Any, Shown] | None:
        """Launch a call like an earlier one: (result, what was shown); None: it has to go the long way."""
        ways = self._ways
        for at, way in enumerate(ways):
            done = way(args, stream)
            if done is not None:
                if at:
                    ways.insert(0, ways.pop(at))
                    self.first = way
                return done
        return None

    def _shorten(self, args: tuple[Any, ...], prepared: Prepared) -> None:
        """Let later calls like this one go the short way, where they can."""
        binding, workspaces = prepared.binding, prepared.workspaces
        taken = [parameter for parameter in self.build.program.parameters if parameter.name in binding.values]
        if len(args) != len(taken):
            return
        like = next((value for value in binding.values.values() if isinstance(value, DeviceArray)), None)
        outputs = Outputs(
            [maker(like, *outline, self.devices) for outline in binding.outputs.values()],
            [self._names.index(name) for name in binding.outputs],
            len(workspaces.sizes),
            functools.partial(workspaces.pointers, self.devices),
        )
        way = short_way(
            self.kernel,
            prepared.plan,
            taken,
            args,
            binding.values,
            self.build.written,
            outputs,
            numbers_decide=bool(self._numbers_decide),
            one_device=self.devices.count == 1,
        )
        if way is not None:
            self._ways = [way, *self._ways[: WAYS - 1]]
            self.first = way

    # -- the long way

    def __call__(self, args: tuple[Any, ...], kwargs: Mapping[str, Any], stream: Any = None) -> tuple[Any, Shown]:
        """Bind and launch: (result, what was shown).

        stream: an int, or a stream of numba, torch or cupy; None for the one that the arrays' library works on.
        Refusal TL301, TL302, TL208, TL209: the call cannot be launched.  LaunchError: the device failed.
        """
        if stream is not None:
            stream = _handle(stream)
            done = self.short(args, stream) if not kwargs else None
            if done is not None:
                self.launches += 1
                return done
        on = None
        try:
            on, binding = self._bound(args, kwargs)
            with on.current():
                prepared = self._prepare(on, binding, stream)
                result, shown = self._launch(prepared, (*args, *kwargs.values()))
        except DriverError as error:
            raise (self.faults() if on is None else on.faults).error(error, self.kernel) from None
        except DeviceError as error:
            raise LaunchError(error.diagnostic, self.kernel.text) from None
        self.launches += 1
        if stream is None and not kwargs and not prepared.capturing:
            self._shorten(args, prepared)
        return result, shown

    def _bound(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[Device, Binding]:
        build = self.build
        binding = bind(
            build.program.parameters, build.written, args, kwargs, outputs=self.kernel.outputs, read=self._read
        )
        arrays = {name: value for name, value in binding.values.items() if isinstance(value, DeviceArray)}
        on = device(self.devices, self._number(arrays))
        on.faults.refuse_if_lost(self.kernel)
        return on, binding

    def _prepare(self, on: Device, binding: Binding, stream: int | None) -> Prepared:
        plan, workspaces = self._plan(on, binding)
        chosen, others = _streams(binding.values.values(), stream)
        return Prepared(binding, on, plan, workspaces, chosen, others, self.devices.driver.is_capturing(chosen))

    def _number(self, arrays: Mapping[str, DeviceArray]) -> int:
        """The device of the arrays; the current one where all are of the host.  Refusal TL301: they are on several."""
        found: dict[int, str] = {}
        for name, array in arrays.items():
            found.setdefault(array.device, name)
        if len(found) > 1:
            (first, at), (other, name) = list(found.items())[:2]
            raise Refusal(
                say.ArgumentMismatch(
                    argument=name,
                    expected=f"memory of device {first}, where {at} is",
                    given=f"memory of device {other}",
                    remedy=f"copy `{PLACEHOLDER}` to device {first}",
                    about=at,
                )
            )
        return next(iter(found), None) if found else self.devices.current()  # type: ignore[return-value]

    def _plan(self, on: Device, binding: Binding) -> tuple[Plan, Workspaces]:
        sizes = {var.name: value for var, value in binding.symbols.values.items()}
        if self._numbers_decide is None:
            pointed = any(parameter.pointed for parameter in self.build.program.parameters)
            self._numbers_decide = bool(self._numbers) and (pointed or _lack_sizes(self.build.device.launches, sizes))
        numbers = {}
        if self._numbers_decide:
            numbers = {parameter.name: binding.values[parameter.name] for parameter in self._numbers}
        key = (on.number, tuple(sorted(sizes.items())), tuple(numbers.items()))
        found = self._plans.get(key)
        if found is None:
            workspaces = self.build.lowered.workspaces
            loaded: Loaded = self.build.loaded(on)
            try:
                plan = Plan(loaded, self._order, {**sizes, **numbers})
            except struct.error:
                raise _too_large(binding) from None
            if len(self._plans) >= KEPT:
                self._plans.clear()
            found = self._plans[key] = (plan, Workspaces(tuple(_bytes(w, binding) for w in workspaces)))
        return found

    def values(self, prepared: Prepared, transfers: Transfers) -> tuple[list[Any], dict[str, Any]]:
        """What fills the parameter blocks, in the order of the plan; and the tensors that the call returns."""
        binding, written = prepared.binding, self.build.written
        like = next((value for value in binding.values.values() if isinstance(value, DeviceArray)), None)
        made: dict[str, Any] = {}
        values: list[Any] = []
        kinds = {parameter.name: parameter for parameter in self.build.program.parameters}
        for name in self._names:
            if name in binding.outputs:
                shape, dtype = binding.outputs[name]
                if like is None:
                    made[name] = uninitialised(shape, dtype)
                    values.append(transfers.result(made[name]))
                else:
                    made[name] = new_array(like, shape, dtype, self.devices)
                    values.append(pointer_of(made[name]))
            elif kinds[name].kind == "scalar":
                values.append(packed_number(kinds[name].dtype, binding.values[name]))
            else:
                values.append(transfers.pointer(name, binding.values[name], name in written))
        values += prepared.workspaces.pointers(self.devices, prepared.stream)
        return values, made

    def _launch(self, prepared: Prepared, given: tuple[Any, ...]) -> tuple[Any, Shown]:
        driver, stream = self.devices.driver, prepared.stream
        for other in prepared.others:
            driver.order(other, stream)
        transfers = Transfers(self.devices, stream)
        values, made = self.values(prepared, transfers)
        shown = NOTHING_SHOWN
        faults = prepared.on.faults
        if prepared.capturing:
            # A graph may be replayed as long as it lives, which no one tells.
            IN_GRAPHS[id(prepared.plan)] = (prepared.plan, prepared.workspaces)
            shown = prepared.plan.run(values, stream)
        else:
            if not transfers.empty and faults.is_running:
                driver.synchronise(stream)  # a fault of an earlier launch must not look like one of this
                faults.idle(stream)
            faults.launching(self.kernel, stream)
            shown = prepared.plan.run(values, stream)
            faults.launched(self.kernel, stream)
        if not transfers.empty:
            transfers.finish()
        if not transfers.empty or shown is not NOTHING_SHOWN:
            faults.idle(stream)
        for other in prepared.others:
            driver.order(stream, other)
        prepared.binding.write_back()
        results = [as_callers_kind(made[name], given) for name in prepared.binding.outputs]
        return (results[0] if len(results) == 1 else results or None), shown

    def faults(self) -> Faults:
        """Those of the device at hand."""
        return device(self.devices, self.devices.current()).faults

    def counted(self, prepared: Prepared) -> Any:
        """What the program computes and which tensors it touches, for the sizes of a call."""
        numbers = {parameter.name: prepared.binding.values[parameter.name] for parameter in self._numbers}
        sizes = {var.name: value for var, value in prepared.binding.symbols.values.items()}
        return count(self.build.lowered.launches, {**sizes, **numbers})

    def launcher(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any], stream: Any = None
    ) -> tuple[Callable[[], None], Prepared, Any]:
        """The launches of a call and nothing else, for timing: (launch, the bound call, what keeps its memory).

        Leaves the device of the call the calling thread's.
        """
        try:
            on, binding = self._bound(args, kwargs)
            self.devices.activate(on.number)
            prepared = self._prepare(on, binding, None if stream is None else _handle(stream))
        except DeviceError as error:
            raise LaunchError(error.diagnostic, self.kernel.text) from None
        transfers = Transfers(self.devices, prepared.stream)
        values, made = self.values(prepared, transfers)
        return prepared.plan.launcher(values, prepared.stream), prepared, (transfers, made)


def _no_way(args: tuple[Any, ...], stream: int | None) -> None:
    return None


def _devices(kernel: Any) -> Any:
    """The devices of this machine.  Refusal TL302: there are none."""
    reason = numba_device.missing()
    if reason is not None:
        problem = f"kernel `{kernel.name}` for {kernel.target}: {reason}"
        raise Refusal(say.TargetUnavailable(problem=problem, remedy=ON_SIM))
    return numba_device.devices()


def _handle(stream: Any) -> int:
    try:
        return stream_handle(stream)
    except TypeError as error:
        remedy = "pass a stream of numba, torch or cupy, or its handle"
        expected = "a stream"
        raise Refusal(
            say.ArgumentMismatch(argument="stream", expected=expected, given=str(error), remedy=remedy)
        ) from None


def _streams(arrays: Any, given: Any) -> tuple[int, tuple[int, ...]]:
    """(the stream to launch in, other streams whose work the launch must follow and precede)."""
    arrays = [array for array in arrays if isinstance(array, DeviceArray)]
    own = dict.fromkeys(array.stream for array in arrays if array.stream is not None)
    if given is None:
        chosen = next(iter(own), 0)
        return chosen, tuple(stream for stream in own if stream != chosen)
    chosen = given
    # A stream that the caller chose is the caller's to order, but for arrays that say which stream they belong to.
    telling = [array for array in arrays if array.library in ("", "interface")]
    declared = dict.fromkeys(array.stream for array in telling if array.stream is not None)
    return chosen, tuple(stream for stream in declared if stream != chosen)


def _too_large(binding: Binding) -> Refusal:
    """TL301 of the largest size: its variable is of a type that does not hold it."""
    var = max(binding.symbols.values, key=lambda var: binding.symbols.values[var])
    value, origin = binding.symbols.values[var], binding.symbols.origins.get(var, "")
    name = origin.rpartition(" ")[2] or var.name
    remedy = f'write `T.dynamic("{var.name}", "int64")`'
    return Refusal(
        say.ArgumentMismatch(argument=name, expected="a size that int32 holds", given=f"{value}", remedy=remedy)
    )


def _lack_sizes(launches: Any, sizes: Mapping[str, int]) -> bool:
    """Do the configurations need more than the sizes that shapes give: numbers among the arguments?"""
    try:
        for launch in launches:
            launch.configuration(sizes)
    except KeyError:
        return True
    return False


def _bytes(workspace: Any, binding: Binding) -> int:
    dtype = host_dtype(workspace.dtype)
    assert dtype is not None  # the language has no tensor of a type that memory cannot hold
    size = dtype.itemsize
    for extent in workspace.shape:
        size *= binding.symbols.evaluate(extent) or 0
    return size
