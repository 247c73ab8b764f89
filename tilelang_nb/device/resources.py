"""What a kernel takes of a multiprocessor, and how many of its blocks fit there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """A number and who says so: "ptxas" (the assembler's report), "machine code" (which says it where there is no
    report), "compiler" (this package), or "computed".
    """

    value: int | float | None
    origin: str

    def __str__(self) -> str:
        return "unknown" if self.value is None else str(self.value)


FIGURES = (
    "registers", "shared_bytes", "local_bytes", "spill_stores", "spill_loads", "threads", "blocks", "occupancy",
)  # fmt: skip


@dataclass(frozen=True)
class Resources:
    """Of one launch, for one architecture.

    registers: per thread.  shared_bytes: per block, static and dynamic.  local_bytes: of each thread's stack in memory.
    spill_stores, spill_loads: bytes of spill code.  threads: per block.  occupancy: the share of a multiprocessor's
    warps that can be resident, 0 to 1.  limit: what keeps it from being more.  blocks: resident per multiprocessor.
    None where arguments decide.
    """

    name: str
    registers: Figure
    shared_bytes: Figure
    local_bytes: Figure
    spill_stores: Figure
    spill_loads: Figure
    threads: Figure
    blocks: Figure
    occupancy: Figure
    limit: str

    def __iter__(self) -> Iterator[tuple[str, Figure]]:
        """Names and figures, in the order in which they are shown."""
        for name in FIGURES:
            yield name, getattr(self, name)


class KernelResources(tuple[Resources, ...]):
    """The resources of all launches of a kernel.  A figure of it is that of the launch that takes most of it."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Figure:
        if name not in FIGURES or not self:
            raise AttributeError(name)
        choose = min if name in ("blocks", "occupancy") else max
        figures = [getattr(one, name) for one in self]
        known = [figure for figure in figures if figure.value is not None]
        return choose(known, key=lambda figure: figure.value) if len(known) == len(figures) else figures[0]

    @property
    def limit(self) -> str:
        """What keeps the launch of the lowest occupancy from having more."""
        return min(self, key=lambda one: one.occupancy.value if one.occupancy.value is not None else 1.0).limit


@dataclass(frozen=True)
class Multiprocessor:
    """Limits of a multiprocessor of one architecture, from NVIDIA's tables of compute capabilities.

    shared_bytes: of all blocks together.  block_shared_bytes: of one block.  reserved: taken from each block by the
    system.
    """

    warps: int
    blocks: int
    shared_bytes: int
    block_shared_bytes: int
    reserved: int = 1024
    registers: int = 65536
    threads_of_block: int = 1024


KIB = 1024
MULTIPROCESSORS = {
    70: Multiprocessor(64, 32, 96 * KIB, 96 * KIB, 0),
    72: Multiprocessor(64, 32, 96 * KIB, 96 * KIB, 0),
    75: Multiprocessor(32, 16, 64 * KIB, 64 * KIB, 0),
    80: Multiprocessor(64, 32, 164 * KIB, 163 * KIB),
    86: Multiprocessor(48, 16, 100 * KIB, 99 * KIB),
    87: Multiprocessor(48, 16, 164 * KIB, 163 * KIB),
    88: Multiprocessor(48, 24, 100 * KIB, 99 * KIB),
    89: Multiprocessor(48, 24, 100 * KIB, 99 * KIB),
    90: Multiprocessor(64, 32, 228 * KIB, 227 * KIB),
    100: Multiprocessor(64, 32, 228 * KIB, 227 * KIB),
    103: Multiprocessor(64, 32, 228 * KIB, 227 * KIB),
    110: Multiprocessor(48, 24, 228 * KIB, 227 * KIB),
    120: Multiprocessor(48, 24, 100 * KIB, 99 * KIB),
    121: Multiprocessor(48, 24, 100 * KIB, 99 * KIB),
}
WARP = 32
UNLIMITED = 1 << 20
REGISTER_UNIT = 256  # registers are given to warps in this many
WARP_UNIT = 4  # a block takes registers as if its warps were a multiple of this
SHARED_UNITS = {70: 256, 72: 256, 75: 256}  # 128 bytes since
LEAST_SHARED_UNIT = 128


def number(arch: str) -> int:
    """90 of "sm_90a"."""
    found = re.search(r"\d+", arch)
    return int(found[0]) if found else 0


def multiprocessor(arch: str) -> Multiprocessor | None:
    """The limits for an architecture; None for one that this table lacks."""
    return MULTIPROCESSORS.get(number(arch))


def occupancy(arch: str, threads: int, registers: int, shared_bytes: int) -> tuple[int, float, str] | None:
    """Resident blocks per multiprocessor, the share of its warps that they are, and what limits them."""
    sm = multiprocessor(arch)
    if sm is None or threads <= 0:
        return None
    warps = -(-threads // WARP)
    of_warp = -(-registers * WARP // REGISTER_UNIT) * REGISTER_UNIT
    unit = SHARED_UNITS.get(number(arch), LEAST_SHARED_UNIT)
    shared = -(-(shared_bytes + sm.reserved) // unit) * unit
    limits = {
        "warps": sm.warps // warps,
        "registers": sm.registers // of_warp // WARP_UNIT * WARP_UNIT // warps if of_warp else UNLIMITED,
        "shared memory": sm.shared_bytes // shared if shared_bytes else UNLIMITED,
        "blocks": sm.blocks,
    }
    limit = min(limits, key=lambda name: limits[name])
    blocks = limits[limit]
    return blocks, blocks * warps / sm.warps, limit


_ENTRY = re.compile(r"Compiling entry function '([^']+)' for")
_SPILLS = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"Used (\d+) registers")
_SHARED = re.compile(r"(\d+) bytes smem")


def read_log(log: str) -> dict[str, dict[str, int]]:
    """Per kernel what ptxas says (`-v`): registers, static shared memory, stack frame, spills."""
    found: dict[str, dict[str, int]] = {}
    current: dict[str, int] = {}
    for line in log.splitlines():
        entry = _ENTRY.search(line)
        if entry:
            current = found.setdefault(entry[1], {"shared": 0, "stack": 0, "spill_stores": 0, "spill_loads": 0})
        spills = _SPILLS.search(line)
        if spills:
            current.update(zip(("stack", "spill_stores", "spill_loads"), map(int, spills.groups())))
        used = _USED.search(line)
        if used:
            current["registers"] = int(used[1])
            shared = _SHARED.search(line)
            current["shared"] = int(shared[1]) if shared else 0
    return found


def resources_of(
    name: str,
    arch: str,
    report: dict[str, int],
    threads: int | None,
    dynamic_shared: int | None,
    origin: str = "ptxas",
) -> Resources:
    """The figures of one kernel; `report` is its part of `read_log`, or of what else says the same (origin)."""
    registers = report.get("registers")
    shared = None if dynamic_shared is None else dynamic_shared + report.get("shared", 0)
    resident = None
    if None not in (threads, registers, shared):
        resident = occupancy(arch, threads, registers, shared)  # type: ignore[arg-type]
    blocks, share, limit = resident if resident is not None else (None, None, "")

    def said(key: str) -> Figure:
        return Figure(report.get(key), origin)

    return Resources(
        name=name,
        registers=said("registers"),
        shared_bytes=Figure(shared, "compiler"),
        local_bytes=said("stack"),
        spill_stores=said("spill_stores"),
        spill_loads=said("spill_loads"),
        threads=Figure(threads, "compiler"),
        blocks=Figure(blocks, "computed"),
        occupancy=Figure(share, "computed"),
        limit=limit,
    )
