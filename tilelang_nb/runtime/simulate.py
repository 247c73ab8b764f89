"""The launches of a kernel on the simulated device: results in the arrays, findings, counters and printed lines
beside them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..source.diagnostic import Diagnostic
from .arguments import Binding, uninitialised
from .build import Build
from .host_arrays import host_dtype
from .progress import Progress, line_here

# A launch that ends with one of these has not done its work, so the ones after it are not begun.
STOPPING = ("TL404", "TL405")


@dataclass(frozen=True)
class Outcome:
    """What a simulated call gave besides the contents of its arrays.

    counters: one entry per launch, in order.
    """

    findings: tuple[Diagnostic, ...] = ()
    counters: tuple[Any, ...] = ()
    printed: tuple[str, ...] = ()

    @property
    def failed_assertion(self) -> Diagnostic | None:
        """The first failed `T.device_assert`."""
        return next((finding for finding in self.findings if finding.code == "TL404"), None)


def simulate(build: Build, binding: Binding, made: Mapping[str, Any]) -> Outcome:
    """Run every launch of the kernel in order.  Memory of `T.alloc_global` is new for each call and not initialised.

    made: the tensors by name that the call returns.
    """
    values = {**binding.values, **made}
    for workspace in build.lowered.workspaces:
        shape = tuple(binding.symbols.evaluate(extent) or 0 for extent in workspace.shape)
        dtype = host_dtype(workspace.dtype)
        assert dtype is not None  # the language has no tensor of a type that memory cannot hold
        values[workspace.name] = uninitialised(shape, dtype)
    findings: list[Diagnostic] = []
    counters: list[Any] = []
    printed: list[str] = []
    with Progress(build.program.name, len(build.simulated), line_here()) as progress:
        for number, program in enumerate(build.simulated):
            progress.launch = number
            report = program.run(values, binding.symbols.values, progress)
            findings += [finding for finding in report.findings if finding not in findings]
            counters.append(report.counters)
            printed += report.printed
            if any(finding.code in STOPPING for finding in report.findings):
                break
    return Outcome(tuple(sorted(findings, key=lambda finding: finding.order)), tuple(counters), tuple(printed))
