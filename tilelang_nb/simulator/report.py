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
class KeptOut:
    """Accesses of one line beyond the edge of one buffer, which its guard kept from happening.

    access: "read" (which gave 0), "safe read" (the buffer's safe value), "write" or "atomic".  count: of single
    threads.
    """

    line: int | None
    buffer: str
    access: str
    count: int

    def said(self, of: str = "") -> str:
        """`24 loads beyond its edge gave 0`; of: what stands behind the number of them."""
        what = {"read": "load", "safe read": "load", "write": "store", "atomic": "update"}[self.access]
        skipped = "were skipped" if self.count > 1 else "was skipped"
        end = {"read": "gave 0", "safe read": "gave its safe value"}.get(self.access, skipped)
        return f"{self.count:,} {what}{'s' * (self.count > 1)}{of} beyond its edge {end}"

    def __str__(self) -> str:
        return self.said(f" of `{self.buffer}`")


@dataclass(frozen=True)
class Counters:
    """operations: kind -> how often, over all threads.  Empty for a run without checks.

    kept_out: accesses that guards kept out, by line, buffer and kind.
    """

    operations: Mapping[str, int]
    shared_banks: tuple[Traffic, ...]
    global_sectors: tuple[Traffic, ...]
    kept_out: tuple[KeptOut, ...] = ()

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
        for kept in self.kept_out:
            result.append(f"{kept} (line {kept.line})" if kept.line is not None else str(kept))
        return tuple(result)


@dataclass(frozen=True)
class Report:
    """findings: TL401 to TL406, grouped and sorted by line.  printed: what the kernel printed, in order."""

    findings: tuple[Diagnostic, ...]
    counters: Counters
    printed: tuple[str, ...]
