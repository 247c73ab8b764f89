"""The end of the work that launches put into streams: waited for, with what went wrong in it."""

from __future__ import annotations

from typing import Any

from .driver import DriverError
from .errors import LaunchError
from .numba_device import opened


def faults(devices: Any = None) -> list[LaunchError]:
    """Wait for the launches that may still run; the faults of devices that come up then.

    Where a graph is being recorded nothing is waited for: it would spoil the recording.
    """
    found = []
    devices = opened() if devices is None else devices
    for on in list(devices.opened.values()) if devices is not None else ():
        last = on.faults.last
        if on.faults.lost is not None or (last is None and not on.unused):
            continue
        try:
            with on.current():
                on.wait()
        except DriverError as error:
            if last is not None and "STREAM_CAPTURE" not in error.result:
                found.append(on.faults.error(error, last))
    return found
