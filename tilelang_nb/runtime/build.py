"""One tile program lowered for one architecture, and what is made from that: translated launches for the simulated
device, code for a GPU.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from ..language.tile_effects import written_parameters
from ..lowering import lower
from ..simulator import Program
from ..source.diagnostic import Diagnostic
from ..source.uncopied import Uncopied
from . import disk_cache
from .device_launch import Loaded
from .internal import internal_error


class Build(Uncopied):
    """A lowered program.  Its parts are made when first asked for, and never change.

    program: the tile program that was lowered; the shape variables of the launches are those of its parameters.
    diagnostics: what lowering found; a fault of lowering itself is TL900.
    lowered: the result of `lowering.lower`; None after a fault.
    """

    def __init__(self, program: Any, arch: str, options: Mapping[str, Any]):
        self.program, self.arch, self.options = program, arch, options
        self.lowered: Any = None
        self._loaded: dict[Any, Loaded] = {}
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
    def device(self) -> Any:
        """The device code for the architecture; its parts are made when asked for."""
        from ..device import generate

        program = generate(self.lowered, arch=self.arch, options=self.options)
        program.store = disk_cache.store()
        return program

    @property
    def warnings(self) -> tuple[Diagnostic, ...]:
        """What the compiler of the device code says of it, as far as it was compiled."""
        device = self.__dict__.get("device")
        return device.warnings if device is not None else ()

    def loaded(self, on: Any) -> Loaded:
        """The device code in the context of a device.  Errors as `Loaded`."""
        found = self._loaded.get(on)
        if found is None:
            found = self._loaded[on] = Loaded(self.device, on)
        return found

    @cached_property
    def simulated(self) -> tuple[Any, ...]:
        """The launches, translated for the simulated device with all checks."""
        launches = zip(self.lowered.launches, self.lowered.guards)
        return tuple(Program(launch, guards=guards) for launch, guards in launches)
