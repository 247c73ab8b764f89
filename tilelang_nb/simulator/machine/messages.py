"""What a kernel says while it runs: printed values, failed assertions, and where a finding happened."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = Any
PRINT_LIMIT = 4096  # lines of one launch


class Messages:
    """Part of a strand."""

    def coordinates(self, code: int) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
        """(block, thread) as x, y, z of a thread's number over the grid."""
        block, thread = divmod(int(code) - 1, self.machine.threads)
        return _coordinates(block, self.machine.grid), _coordinates(thread, self.machine.block)

    def first_lane(self, lanes: Array, *others: Array) -> tuple[int, tuple[int, ...]]:
        """(number of the thread, position) of the first lane of a mask; others: arrays that the position is for too."""
        shape = self.shape_of(lanes, *others)
        position = tuple(int(axis[0]) for axis in np.nonzero(np.broadcast_to(lanes, shape)))
        return int(self.codes[position[-2], position[-1]]), position

    def outside_memory(self, site: int, bad: Array, bounds: Any) -> None:
        # An index that is always inside may run along an axis that those outside do not have.
        parts = [part for part, _ in bounds.indices if part is not None]
        code, position = self.first_lane(bad, *parts)
        shape = self.shape_of(bad, *parts)
        index = [
            int(offset) if part is None else int(np.broadcast_to(part, shape)[position]) + int(offset)
            for part, offset in bounds.indices
        ]
        storage = self.machine.details[site].storage
        shape = [self.machine.extent(extent) for extent in storage.shape]
        self.findings.outside(site, self.coordinates(code), index, shape, int(np.count_nonzero(bad)))

    def outside_registers(self, index: Array, count: int, lanes: Array, site: int) -> None:
        code, position = self.first_lane(True if lanes is None else lanes)
        shown = int(np.broadcast_to(index, self.shape_of(index, True if lanes is None else lanes))[position])
        self.findings.outside(site, self.coordinates(code), [shown], [count], 1)

    def outside_copy(self, site: int, lanes: Array, size: int) -> None:
        """An asynchronous copy reads beyond the last element."""
        code, _ = self.first_lane(lanes)
        self.findings.outside_copy(site, self.coordinates(code), size, int(np.count_nonzero(lanes)))

    def misaligned(self, site: int, size: int, lanes: Array) -> None:
        """An access of `size` bytes at an address that is no multiple of them."""
        code, _ = self.first_lane(lanes)
        self.findings.misaligned(site, self.coordinates(code), size, int(np.count_nonzero(lanes)))

    def uninitialised(self, site: int, lanes: Array) -> None:
        code, _ = self.first_lane(lanes)
        self.findings.uninitialised(site, self.coordinates(code), int(np.count_nonzero(lanes)))

    def unfinished(self, site: int, lanes: Array) -> None:
        """A read of accumulators before the product is over."""
        code, _ = self.first_lane(lanes)
        self.findings.unfinished(site, self.coordinates(code), int(np.count_nonzero(lanes)))

    def print_values(
        self, message: str, value: Array, description: str, indices: tuple[Array, ...], mask: Array
    ) -> None:
        """One line for each lane: message, block, thread, and the value under its description."""
        lanes = np.broadcast_to(True if mask is None else mask, self.shape_of(*(() if mask is None else (mask,))))
        parts = [] if value is None else [value, *indices]
        shape = np.broadcast_shapes(lanes.shape, *(np.shape(part) for part in parts))
        positions = np.argwhere(np.broadcast_to(lanes, shape))
        room = max(PRINT_LIMIT - len(self.machine.printed), 0)
        shown = [np.broadcast_to(part, shape) for part in parts]
        for position in positions[:room]:
            block, thread = self.coordinates(self.codes[position[-2], position[-1]])
            text = f"{message} " if message else ""
            text += f"BLOCK={block}, THREAD={thread}"
            if shown:
                numbers = [part[tuple(position)] for part in shown]
                name = description.format(*numbers[1:]) if indices else description
                text += f": {name + ' = ' if name else ''}{numbers[0]}"
            self.machine.printed.append(text)
        if len(positions) > room > 0:
            self.machine.printed.append(f"... lines after the first {PRINT_LIMIT} are left out")

    def device_assert(self, condition: Array, message: str, mask: Array, site: int) -> None:
        failed = np.logical_not(condition)
        if mask is not None:
            failed = failed & mask
        if np.any(failed):
            code, _ = self.first_lane(failed)
            count = int(np.count_nonzero(np.broadcast_to(failed, self.shape_of(failed))))
            self.findings.assertion(site, self.coordinates(code), message, count)
            raise self.machine.stopped


def _coordinates(number: int, extents: dict[str, int]) -> tuple[int, int, int]:
    x, y = extents.get("x", 1), extents.get("y", 1)
    return number % x, number // x % y, number // (x * y)
