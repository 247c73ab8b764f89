"""Thread programs to device code: CUDA C, cubin, PTX, SASS, and what a launch needs.  No device is needed.

`generate(lowered, arch=..., options=...)` gives a `DeviceProgram`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .launch import DeviceLaunch as DeviceLaunch
    from .launch import DeviceParameter as DeviceParameter
    from .program import DeviceError as DeviceError
    from .program import DeviceProgram as DeviceProgram
    from .program import generate as generate

_PLACES = {
    "DeviceLaunch": "launch",
    "DeviceParameter": "launch",
    "DeviceError": "program",
    "DeviceProgram": "program",
    "generate": "program",
}
__all__ = list(_PLACES)


def __getattr__(name: str) -> Any:
    if name in _PLACES:
        from importlib import import_module

        return getattr(import_module(f".{_PLACES[name]}", __name__), name)
    raise AttributeError(name)
