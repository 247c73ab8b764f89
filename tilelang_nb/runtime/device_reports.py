"""The memory that kernels on a device report to: what `T.print` and `T.device_assert` wrote, read after a launch."""

from __future__ import annotations

from typing import Any

import numpy as np

WORDS = 1 << 18  # of 32 bits: room for some 30,000 printed values
HEADER = 4


class ReportBuffer:
    """The buffer of one device.  One launch at a time writes it; who launches holds the lock of the device."""

    def __init__(self, devices: Any):
        self.devices = devices
        self.memory = devices.allocate(4 * WORDS)
        self.host = np.zeros(WORDS, np.uint32)

    @property
    def pointer(self) -> int:
        return int(self.memory.pointer)

    def clear(self, stream: int) -> None:
        """Make it ready for a launch."""
        self.host[:HEADER] = (0, WORDS, 0, 0)
        # All of it: a record that found no room leaves a gap, in which an older one must not be read.
        self.devices.driver.fill(self.pointer, 0, 4 * WORDS, stream)
        self.devices.driver.copy_to_device(self.pointer, self.host.ctypes.data, 4 * HEADER, stream)

    def read(self, stream: int) -> np.ndarray:
        """The words that the launch left, after waiting for the stream; a view that the next `read` changes."""
        driver = self.devices.driver
        driver.copy_to_host(self.host.ctypes.data, self.pointer, 4 * HEADER, stream)
        driver.synchronise(stream)
        taken = min(HEADER + int(self.host[0]), WORDS)
        if taken > HEADER:
            driver.copy_to_host(self.host.ctypes.data, self.pointer, 4 * taken, stream)
            driver.synchronise(stream)
        return self.host if int(self.host[0]) > WORDS - HEADER else self.host[: max(taken, HEADER)]
