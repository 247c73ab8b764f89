"""`tilelang.carver.arch.driver`: what host code asks of the device that kernels run on."""

from __future__ import annotations

from ..runtime import numba_device

SIMULATED_MULTIPROCESSORS = 132  # of an H100 or H200, whose limits the simulated device has


def get_num_sms(device_id: int = 0) -> int:
    """How many multiprocessors a device has; without one those of the device that is simulated.

    Source: upstream `tilelang/carver/arch/driver`.
    """
    if numba_device.missing() is not None:
        return SIMULATED_MULTIPROCESSORS
    return numba_device.devices().facts(device_id).multiprocessors
