"""The end of the work that launches put into streams: waited for, with what went wrong in it."""

from __future__ import annotations

from typing import Any

from .driver import DriverError
from .errors import LaunchError
from .numba_device import opened


def faults(devices: Any = None) -> list[LaunchError]:
    """Wait for the streams that launches may still run in; the faults of devices that come up then.

    Streams that record a graph are left alone: waiting would spoil it.
    """
    found = []
    devices = opened() if devices is None else devices
    for on in list(devices.opened.values()) if devices is not None else ():
        kernels = {stream: kernel for kernel, stream in on.faults.running}
        if not kernels:
            continue
        last = on.faults.running[-1][0]
        try:
            devices.activate(on.number)
            for stream in kernels:
                if not devices.driver.is_capturing(stream):
                    devices.driver.synchronise(stream)
                on.faults.idle(stream)
        except DriverError as error:
            found.append(on.faults.error(error, last))
    return found
