"""TL3xx and TL4xx: launches and the simulated device; TL900."""

from __future__ import annotations

from dataclasses import dataclass

from ..diagnostic import Message, for_edits

__all__ = [
    "ArgumentMismatch",
    "PassedMismatch",
    "RepeatedArgument",
    "MissingArgument",
    "TooManyArguments",
    "NoLaunchConfiguration",
    "UnknownArgument",
    "TargetUnavailable",
    "SimulatedRace",
    "SimulatedOutOfBounds",
    "SimulatedUninitialisedRead",
    "DeviceAssertFailed",
    "EndlessLoop",
    "RegisterShare",
    "SimulatedDeadlock",
    "SimulatedUndefinedArithmetic",
    "UndefinedExchange",
    "MixedBarrier",
    "InternalError",
]


@dataclass(frozen=True)
class ArgumentMismatch(Message):
    """A launch argument of another dtype, rank, shape, stride or device.

    argument: the parameter.  about: another parameter that it does not agree with.
    """

    code, slug = "TL301", "argument-mismatch"
    text = "argument `{argument}`: expected {expected}, given {given}"
    label = "this argument does not fit"
    advice = "{remedy}"

    argument: str
    expected: str
    given: str
    remedy: str
    about: str = for_edits()


@dataclass(frozen=True)
class PassedMismatch(ArgumentMismatch):
    """The same, said with what the caller wrote."""

    text = "argument `{passed}` for `{argument}`: expected {expected}, given {given}"
    label = "does not fit `{argument}`"

    passed: str = ""


@dataclass(frozen=True)
class RepeatedArgument(ArgumentMismatch):
    """One parameter given by position and by name."""

    label = "`{argument}` has a value already"


@dataclass(frozen=True)
class MissingArgument(ArgumentMismatch):
    """A parameter that the call leaves out."""

    label = "`{argument}` is missing"


@dataclass(frozen=True)
class TooManyArguments(ArgumentMismatch):
    """More arguments than parameters; argument: "", for none of them is the wrong one."""

    text = "expected {expected}, given {given}"
    label = "takes fewer arguments"


@dataclass(frozen=True)
class NoLaunchConfiguration(ArgumentMismatch):
    """`k[blocks, threads](...)`; argument: "", for it is none."""

    text = "a kernel takes no launch configuration in brackets"
    label = "is called like a function"


@dataclass(frozen=True)
class UnknownArgument(ArgumentMismatch):
    """An argument by a name that no parameter has."""

    text = "there is no parameter `{argument}`"
    label = "has no parameter of that name"


@dataclass(frozen=True)
class TargetUnavailable(Message):
    """No such device, or the operation needs a newer architecture."""

    code, slug = "TL302", "target-unavailable"
    text = "{problem}"
    label = "not available here"
    advice = "{remedy}"

    problem: str
    remedy: str


@dataclass(frozen=True)
class SimulatedRace(Message):
    """Conflicting accesses without a barrier."""

    code, slug = "TL401", "simulated-race"
    text = "{problem}"
    label = "no barrier orders these accesses"
    advice = "{remedy}"

    problem: str
    remedy: str


@dataclass(frozen=True)
class SimulatedOutOfBounds(Message):
    """An access outside a buffer."""

    code, slug = "TL402", "simulated-out-of-bounds"
    text = "{problem}"
    label = "outside the buffer"
    advice = "{remedy}"

    problem: str
    remedy: str


@dataclass(frozen=True)
class SimulatedUninitialisedRead(Message):
    """Memory read before it is written."""

    code, slug = "TL403", "simulated-uninitialised-read"
    text = "{problem}"
    label = "nothing wrote this element"
    advice = "{remedy}"

    problem: str
    remedy: str


@dataclass(frozen=True)
class DeviceAssertFailed(Message):
    """T.device_assert failed."""

    code, slug = "TL404", "device-assert"
    text = "{problem}"
    label = "false for this thread"
    advice = "{remedy}"

    problem: str
    remedy: str


@dataclass(frozen=True)
class SimulatedDeadlock(Message):
    """Threads wait at a barrier that cannot complete."""

    code, slug = "TL405", "simulated-deadlock"
    text = "{problem}"
    label = "this wait never ends"
    advice = "{remedy}"

    problem: str
    remedy: str


@dataclass(frozen=True)
class EndlessLoop(SimulatedDeadlock):
    """A loop that does not end, or not before the simulated device stops it."""

    label = "the simulated device stops this loop"


@dataclass(frozen=True)
class RegisterShare(SimulatedDeadlock):
    """A warp group asks for registers in a way that the device does not carry out."""

    label = "registers are not divided so"


@dataclass(frozen=True)
class MixedBarrier(SimulatedDeadlock):
    """A named barrier at which threads meet that do not belong together, or not in the number that it counts."""

    label = "not those meet here who should"


@dataclass(frozen=True)
class SimulatedUndefinedArithmetic(Message):
    """A division of integers by 0, or a shift by a number of bits that the type does not have."""

    code, slug = "TL406", "simulated-undefined-arithmetic"
    text = "{problem}"
    label = "no result is defined for this on a device"
    advice = "{remedy}"

    problem: str
    remedy: str


@dataclass(frozen=True)
class UndefinedExchange(SimulatedUndefinedArithmetic):
    """A shuffle or vote with lanes that are not there."""

    label = "its result is undefined on a device"


@dataclass(frozen=True)
class InternalError(Message):
    """A fault of this program."""

    code, slug = "TL900", "internal-error"
    text = "{problem}"
    label = "a fault of tilelang_nb, not of the cell"
    advice = "please report it with this text:\n{report}"

    problem: str
    report: str
