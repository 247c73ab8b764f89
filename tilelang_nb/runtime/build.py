"""One tile program lowered for one architecture, and what is made from that: translated launches, the memory they
need.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from ..language.tile_effects import written_parameters
from ..lowering import lower
from ..simulator import Program
from ..source.diagnostic import Diagnostic
from .internal import internal_error


class Build:
    """A lowered program.  Its parts are made when first asked for, and never change.

    program: the tile program that was lowered; the shape variables of the launches are those of its parameters.
    diagnostics: what lowering found; a fault of lowering itself is TL900.
    lowered: the result of `lowering.lower`; None after a fault.
    """

    def __init__(self, program: Any, arch: str, options: Mapping[str, Any]):
        self.program, self.arch, self.options = program, arch, options
        self.lowered: Any = None
        try:
            self.lowered = lower(program, arch=arch, options=options)
            self.diagnostics: tuple[Diagnostic, ...] = tuple(self.lowered.diagnostics)
        except Exception as error:
            self.diagnostics = (internal_error(error, f"lowering {program.name}", program.span),)

    @property
    def ok(self) -> bool:
        return all(diagnostic.severity != "error" for diagnostic in self.diagnostics)

    @cached_property
    def written(self) -> frozenset[str]:
        """Names of the parameters that the kernel writes."""
        return written_parameters(self.program.function)

    @cached_property
    def simulated(self) -> tuple[Any, ...]:
        """The launches, translated for the simulated device with all checks."""
        return tuple(Program(launch) for launch in self.lowered.launches)
