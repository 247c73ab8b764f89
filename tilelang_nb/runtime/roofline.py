"""The time that a device needs at least: for the bytes that a kernel has to move, and for what it computes.

Limits follow from the device's clocks and widths at their highest, so no kernel reaches them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

# Per multiprocessor and clock: float32 operations of CUDA cores, float16 operations of matrix units (dense, a
# multiplication and an addition count as two).  From the vendor's description of each architecture.
RATES = {
    (7, 0): (128, 1024),
    (7, 5): (128, 1024),
    (8, 0): (128, 2048),
    (8, 6): (256, 1024),
    (8, 7): (256, 2048),
    (8, 9): (256, 1024),
    (9, 0): (256, 4096),
    (10, 0): (256, 8192),
    (10, 3): (256, 8192),
    (12, 0): (256, 1024),
}
TRANSFERS = 2  # of the memory bus per clock that the driver tells


@dataclass(frozen=True)
class Limits:
    """Of a device, per second: bytes, operations of CUDA cores and of matrix units.  0 where not known."""

    bytes: float
    operations: float
    matrix_operations: float


def limits_of(facts: Any) -> Limits:
    """The limits of a device, from what its driver tells."""
    cores, matrix = RATES.get(facts.capability, (0, 0))
    per_second = facts.multiprocessors * facts.clock_hertz
    return Limits(TRANSFERS * facts.memory_hertz * facts.bus_bits / 8, cores * per_second, matrix * per_second)


@dataclass(frozen=True)
class Roofline:
    """milliseconds: the least time.  bound: what it is of, "memory", "CUDA cores" or "matrix units"."""

    milliseconds: float
    bound: str


def roofline(limits: Limits, size: float, operations: float | None, matrix: float | None) -> Roofline | None:
    """The least time for `size` bytes and these operations; None where nothing is known."""
    parts = []
    if limits.bytes and size:
        parts.append(Roofline(1e3 * size / limits.bytes, "memory"))
    if limits.operations and operations:
        parts.append(Roofline(1e3 * operations / limits.operations, "CUDA cores"))
    if limits.matrix_operations and matrix:
        parts.append(Roofline(1e3 * matrix / limits.matrix_operations, "matrix units"))
    return max(parts, key=lambda part: part.milliseconds, default=None)
