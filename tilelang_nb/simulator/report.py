"""What a launch on the simulated device reports: findings, counters, printed lines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..source.diagnostic import Diagnostic


@dataclass(frozen=True)
class Traffic:
    """Memory requests of one line to one buffer.

    line: of the user's text, None if unknown.  access: "read", "write" or "atomic".
    requests: of warps.  used: shared-memory wavefronts or global sectors of 32 bytes.  ideal: the least possible.
    """

    line: int | None
    buffer: str
    access: str
    requests: int
    used: int
    ideal: int

    @property
    def ratio(self) -> float:
        """1.0 is as good as can be."""
        return self.used / max(self.ideal, 1)


@dataclass(frozen=True)
class Counters:
    """operations: kind -> how often, over all threads.  Empty for a run without checks."""

    operations: Mapping[str, int]
    shared_banks: tuple[Traffic, ...]
    global_sectors: tuple[Traffic, ...]

    def lines(self) -> tuple[str, ...]:
        """For people to read."""
        result = [f"{kind}: {number:,}" for kind, number in sorted(self.operations.items())]
        for title, table, unit in (
            ("shared memory", self.shared_banks, "wavefronts"),
            ("global memory", self.global_sectors, "sectors"),
        ):
            for row in table:
                where = f"line {row.line}, " if row.line is not None else ""
                result.append(
                    f"{title}, {where}{row.access} {row.buffer}: {row.used} {unit} in {row.requests} requests,"
                    f" {row.ratio:.2f} per ideal {unit[:-1]}"
                )
        return tuple(result)


@dataclass(frozen=True)
class Report:
    """findings: TL401 to TL406, grouped and sorted by line.  printed: what the kernel printed, in order."""

    findings: tuple[Diagnostic, ...]
    counters: Counters
    printed: tuple[str, ...]
