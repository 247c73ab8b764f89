"""Registers: arrays (register, blocks, threads), read and written at indices that differ by lane."""

from __future__ import annotations

from typing import Any

import numpy as np

from .arithmetic import window

Array = Any


class Registers:
    """Part of a strand.

    Marks of initialisation are arrays like registers, accessed with site -1: nothing is reported twice, and what is
    outside counts as initialised.
    """

    B: int
    T: int

    def registers(self, count: int, dtype: Any) -> Array:
        return np.zeros((count, self.B, self.T), dtype)

    def register_state(self, registers: Array) -> Array:
        """Which registers hold a value."""
        return np.zeros(registers.shape, np.bool_)

    def stacked(self, values: tuple[Array, ...]) -> Array:
        """Values of all lanes as consecutive registers."""
        return np.stack([np.broadcast_to(value, (self.B, self.T)) for value in values])

    def put(self, target: Array, value: Array, mask: Array) -> None:
        if mask is None:
            target[...] = value
        else:
            np.copyto(target, value, where=mask, casting="unsafe")

    def window(self, registers: Array, base: int, shape: tuple[tuple[int, int], ...], mask: Array, site: int) -> Array:
        """As `arithmetic.window` where the base is not proven to fit: a window outside is reported and moved."""
        low = base + sum(min(0, (extent - 1) * factor) for extent, factor in shape)
        high = base + sum(max(0, (extent - 1) * factor) for extent, factor in shape)
        if low < 0 or high >= len(registers):
            if site >= 0:
                self.outside_registers(np.array([[low if low < 0 else high]]), len(registers), mask, site)
            if high - low >= len(registers):
                return np.full([extent for extent, _ in shape] + list(registers.shape[1:]), site < 0, registers.dtype)
            base += -low if low < 0 else len(registers) - 1 - high
        return window(registers, base, shape)

    def _inside_lanes(self, registers: Array, index: Array, mask: Array, site: int) -> tuple[Array, Array | None]:
        """(index made safe, lanes that may not be touched or None)."""
        outside = (index < 0) | (index >= len(registers))
        if not outside.any():
            return index, None
        bad = outside if mask is None else outside & mask
        if bad.any() and site >= 0:
            self.outside_registers(np.broadcast_to(index, bad.shape), len(registers), bad, site)
        return np.where(outside, 0, index), outside

    def gather(self, registers: Array, index: Array, mask: Array, site: int) -> Array:
        index, outside = self._inside_lanes(registers, np.asarray(index), mask, site)
        if index.shape[-2:] == (1, 1):
            value = registers[index[..., 0, 0]]
        else:
            value = registers[index, self.block_column, self.thread_row]
        return value if outside is None else np.where(outside, registers.dtype.type(site < 0), value)

    def scatter(self, registers: Array, index: Array, value: Array, mask: Array, site: int) -> None:
        index, outside = self._inside_lanes(registers, np.asarray(index), mask, site)
        if outside is not None:
            mask = ~outside if mask is None else mask & ~outside
        shape = self.shape_of(index, value, *(() if mask is None else (mask,)))
        index = np.broadcast_to(index, shape)
        if mask is None:
            registers[index, self.block_column, self.thread_row] = value
        else:
            lanes = np.broadcast_to(mask, shape).nonzero()
            registers[(index[lanes], *lanes[-2:])] = np.broadcast_to(value, shape)[lanes]

    def check_registers(self, value: Array, state: Array, mask: Array, site: int) -> Array:
        """Report lanes that read a register nobody has written."""
        if not state.all():
            missing = ~state if mask is None else ~state & mask
            if missing.any():
                if self.running_product(state):
                    self.unfinished(site, missing)
                else:
                    self.uninitialised(site, missing)
        return value
