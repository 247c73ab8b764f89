"""Which device a kernel is for: the names of targets and architectures, and what stands behind them on this machine."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from ..source import catalogue as say
from ..source.diagnostic import Refusal
from . import numba_device

ROLES = "tl.enable_auto_warp_specialization"
WHERE_FASTER = "where faster"  # as its value: the lowering judges; True divides whatever can be divided
TARGETS = ("auto", "cuda", "sim")
DEFAULT_ARCH = "sm_90a"
ARCHITECTURES = (
    *("sm_70", "sm_72", "sm_75", "sm_80", "sm_86", "sm_87", "sm_88", "sm_89", "sm_90", "sm_90a", "sm_100", "sm_100a"),
    *("sm_103", "sm_103a", "sm_110", "sm_110a", "sm_120", "sm_120a", "sm_121", "sm_121a"),
)


@dataclass(frozen=True)
class Target:
    """kind: "sim" or "cuda".  arch: the architecture whose limits and instructions the lowering uses.

    roles: products are divided into roles where the architecture has them.  The simulated device shows the simpler
    program unless its architecture is said.
    """

    kind: str
    arch: str
    roles: bool = False

    @property
    def options(self) -> dict[str, Any]:
        """Options of the lowering that hold where a compilation does not say otherwise."""
        return {ROLES: WHERE_FASTER} if self.roles else {}

    def __str__(self) -> str:
        return f"{self.kind} ({self.arch})"


def resolve(target: Any = "auto", arch: str | None = None) -> Target:
    """The target that the names mean here.  TL302: there is no such target or architecture.

    Upstream's spellings `cuda -arch=sm_80` and `{"kind": "cuda", "arch": "sm_80"}` are accepted.
    """
    name = target if target is not None else "auto"
    if isinstance(name, dict):
        arch, name = arch or name.get("arch"), name.get("kind", "auto")
    name = str(name)
    option = re.fullmatch(r"(\w+)\s+-arch=(\w+)", name)
    if option:
        name, arch = option[1], arch or option[2]
    if name not in TARGETS:
        raise Refusal(
            say.TargetUnavailable(
                problem=f"there is no target {name!r}", remedy="the targets are `auto`, `cuda` and `sim`"
            )
        )
    here = name != "sim" and numba_device.missing() is None
    if name == "auto":
        name = "cuda" if here else "sim"
    roles = name == "cuda" or arch is not None
    arch = arch or (arch_here() if here else DEFAULT_ARCH)
    if arch not in ARCHITECTURES:
        raise Refusal(
            say.TargetUnavailable(
                problem=f"there is no architecture {arch!r}", remedy=f"it is one of {', '.join(ARCHITECTURES)}"
            )
        )
    return Target(name, arch, roles and arch == DEFAULT_ARCH)


def arch_here() -> str:
    """The architecture of the device at hand: its own, else the newest of its generation that is known."""
    devices = numba_device.devices()
    facts = devices.facts(devices.current())
    major, minor = facts.capability
    if facts.arch in ARCHITECTURES:
        return str(facts.arch)
    older = [
        arch for arch in ARCHITECTURES if arch[3:-1] == str(major) and arch[-1].isdigit() and int(arch[-1]) <= minor
    ]
    return older[-1] if older else DEFAULT_ARCH


@dataclass(frozen=True)
class Device:
    """A device that kernels can run on here."""

    name: str
    description: str


def devices() -> tuple[Device, ...]:
    """What a kernel can run on here; the first is what `auto` means."""
    found = []
    reason = numba_device.missing()
    if reason is None:
        all_of_them = numba_device.devices()
        for number in range(all_of_them.count):
            facts = all_of_them.facts(number)
            memory = f"{facts.memory_bytes / 2**30:.0f} GiB"
            text = f"device {number}: {facts.name}, {facts.arch}, {facts.multiprocessors} multiprocessors, {memory}"
            found.append(Device("cuda", text))
    simulated = "the simulated device: NumPy, with checks for races, bounds and uninitialised reads; no timings"
    return (*found, Device("sim", simulated))


ON_SIM = 'run it on the simulated device with `target="sim"`'


def no_device_code(what: str, remedy: str = ON_SIM) -> say.TargetUnavailable:
    """Why CUDA code, and what is made from it, is not to be had."""
    return say.TargetUnavailable(
        problem=f"{what}: this version has no CUDA back end",
        remedy=remedy,
    )
