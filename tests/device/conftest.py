"""Kernels for the tests of device code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tilelang_nb
from tilelang_nb import device


@pytest.fixture
def program_of() -> Callable[..., device.DeviceProgram]:
    """`program_of(cell, arch=..., options=...)`: the device code of the cell's last kernel."""

    def make(cell: str, arch: str = "sm_80", options: dict[str, Any] | None = None) -> device.DeviceProgram:
        compilation = tilelang_nb.compile_cell(cell, target="sim", arch=arch)
        assert compilation.ok, compilation.to_text()
        lowered = list(compilation.kernels.values())[-1].build().lowered
        program = device.generate(lowered, arch=arch, options=options)
        assert not program.diagnostics, program.diagnostics
        return program

    return make
