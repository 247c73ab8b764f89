"""The latest launches on the simulated device, and the warning of what it found in one."""

from __future__ import annotations

import sys
import warnings
from collections import deque
from dataclasses import dataclass
from typing import Any

from ..source.diagnostic import Diagnostic
from .errors import PACKAGE


class SimulatorFindings(UserWarning):
    """The simulated device found faults in a launch that ran to its end.  diagnostics: the findings."""

    def __init__(self, text: str, diagnostics: tuple[Diagnostic, ...]):
        super().__init__(text)
        self.diagnostics = diagnostics


@dataclass(frozen=True)
class Launch:
    """A call of a kernel on the simulated device, as kept in `launches`."""

    kernel: Any
    findings: tuple[Diagnostic, ...]
    printed: tuple[str, ...]


# The latest launches, oldest first; a notebook shows the findings of those that a cell made.
launches: deque[Launch] = deque(maxlen=1000)


def warn_of(name: str, findings: tuple[Diagnostic, ...]) -> None:
    """Warn of what was found in a launch of the kernel, at the user's line that called it."""
    if not findings:
        return
    said = "; ".join(str(finding) for finding in findings[:3])
    more = f"; and {len(findings) - 3} more" if len(findings) > 3 else ""
    text = f"the simulated device found faults in kernel {name}: {said}{more}"
    warnings.warn(SimulatorFindings(text, findings), stacklevel=_calling_level())


def _calling_level() -> int:
    """How many frames lie between a warning of the function at hand and the user's code that called the kernel."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(PACKAGE):
        level, frame = level + 1, frame.f_back
    return level
