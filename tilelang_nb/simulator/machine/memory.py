"""Loads, stores and atomic operations on shared and global memory.

An address is an array part (or None) plus a uniform part; bounds are None where all lanes are inside.  Shared
addresses count elements inside the window of a block.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .arithmetic import Bounds
from .atomics import update

Array = Any


class MemoryAccess:
    """Part of a strand."""

    # ---- addresses ----
    def _safe(self, index: Array, bounds: Bounds | None, mask: Array, site: int) -> tuple[Array, Array | None]:
        """(index with lanes outside moved to 0, lanes inside or None).  Reports active lanes outside."""
        if bounds is None:
            return index, None
        outside = ~bounds.ok
        bad = outside if mask is None else outside & mask
        if bad.any():
            self.outside_memory(site, bad, bounds)
        return np.where(bounds.ok, index, 0), bounds.ok

    def _flat(self, index: Array, itemsize: int) -> Array:
        """Element index in the window of its block -> index into all shared memory."""
        return index + self.window_column * (self.machine.stride // itemsize)

    @staticmethod
    def _zero_outside(value: Array, ok: Array | None) -> Array:
        if ok is None or ok.all():
            return value
        return np.where(ok, value, np.asarray(value).dtype.type(0))

    def view_global(self, array: Any, dtype: Any, offset: int) -> Any:
        """A global array seen as another type from a byte on; one of the same element size shares its shadow."""
        size = np.dtype(dtype).itemsize
        raw = array.data.view(np.uint8)[offset:]
        data = raw[: len(raw) // size * size].view(dtype)
        shadow = array.shadow if size == array.data.itemsize and offset % size == 0 else None
        return type(array)(array.name, data, shadow, array.first + offset // size)

    # ---- loads ----
    def load_global(self, array: Any, part: Array, start: int, bounds: Any, mask: Array, site: int) -> Array:
        index = start if part is None else part + start if start else part
        index, ok = self._safe(index, bounds, mask, site)
        if part is None and ok is not None:  # a uniform index outside: the value stays a number
            return array.data.dtype.type(0) if array.data.dtype.kind not in "iub" else array.data.dtype.type(0).item()
        if self.noted is not None:
            self.note(array.data, index)
        if self.machine.checks:
            self._check_global(array, index, part, start, ok, mask, site)
        if part is None:
            return array.data[index].item() if array.data.dtype.kind in "iub" else array.data[index]
        if not array.data.size:
            return np.zeros(index.shape, array.data.dtype)
        return self._zero_outside(array.data[index], ok)

    def load_shared(self, dtype: Any, part: Array, start: int, bounds: Any, mask: Array, site: int) -> Array:
        index = start if part is None else part + start if start else part
        index, ok = self._safe(index, bounds, mask, site)
        itemsize = np.dtype(dtype).itemsize
        flat = self._flat(index, itemsize)
        if self.noted is not None:
            self.note(self.machine.view(dtype), flat)
        if self.machine.checks:
            self._check_shared(index, flat, itemsize, part, start, ok, mask, site)
        return self._zero_outside(self.machine.view(dtype)[flat], ok)

    # ---- stores ----
    def _storing_lanes(
        self, index: Array, value: Array, ok: Array | None, mask: Array
    ) -> tuple[Array, Array, Array | None]:
        """(index, value, mask) of the lanes that store, over the full shape of the lanes."""
        if ok is not None and not ok.all():
            mask = ok if mask is None else mask & ok
        shape = self.shape_of(index, value, *(() if mask is None else (mask,)))
        index, value = np.broadcast_to(index, shape), np.broadcast_to(value, shape)
        if mask is None:
            return index.reshape(-1), value.reshape(-1), None
        mask = np.broadcast_to(mask, shape)
        return index[mask], value[mask], mask

    def store_global(
        self, array: Any, part: Array, start: int, bounds: Any, value: Array, mask: Array, site: int
    ) -> None:
        index = start if part is None else part + start if start else part
        index, ok = self._safe(index, bounds, mask, site)
        at, values, lanes = self._storing_lanes(index, value, ok, mask)
        if self.machine.watched:
            self._watch(array.data, at, values)
        if not self.machine.checks:
            array.data[at] = values
            return
        self.counters.requests_of(self, "global", "store", index, part, start, ok, mask, site, array.data.itemsize)
        if array.shadow is None:
            array.data[at] = values
            return
        codes = self._codes(lanes, at, value, index)
        self._write(array.shadow, array.data, at, at + array.first if array.first else at, values, codes, site, 1)

    def store_shared(
        self, dtype: Any, part: Array, start: int, bounds: Any, value: Array, mask: Array, site: int
    ) -> None:
        index = start if part is None else part + start if start else part
        index, ok = self._safe(index, bounds, mask, site)
        itemsize = np.dtype(dtype).itemsize
        at, values, lanes = self._storing_lanes(self._flat(index, itemsize), value, ok, mask)
        memory = self.machine.view(dtype)
        if self.machine.watched:
            self._watch(memory, at, values)
        if not self.machine.checks:
            memory[at] = values
            return
        self.counters.requests_of(self, "shared", "store", index, part, start, ok, mask, site, itemsize)
        codes = self._codes(lanes, at, value, index)
        granules = itemsize // self.machine.granule
        self._write(self.machine.shared_shadow, memory, at, at, values, codes, site, granules)

    def _watch(self, memory: Array, at: Array, values: Array) -> None:
        """Tell a store that changes something."""
        changed = _bits(memory[at]) != _bits(np.asarray(values, memory.dtype))
        if changed.any():
            self.machine.changed(memory, at[changed])

    def _codes(self, lanes: Array | None, at: Array, value: Array, index: Array) -> Array:
        shape = self.shape_of(index, value) if lanes is None else lanes.shape
        codes = np.broadcast_to(self.codes, shape)
        return codes.reshape(-1) if lanes is None else codes[lanes]

    def _write(
        self, shadow: Any, memory: Array, at: Array, cells: Array, values: Array, codes: Array, site: int, granules: int
    ) -> None:
        """Store, and tell the shadow: it may ask which lanes change nothing, and which lost against another lane."""
        if not len(at):
            return
        values = np.asarray(values, memory.dtype)

        def unchanged() -> Array:
            return _bits(memory[at]) == _bits(values)

        cells, codes = _spread(cells, codes, granules)
        stamp = shadow.before_write(self, cells, codes, site, lambda: np.repeat(unchanged(), granules))
        memory[at] = values
        shadow.after_write(self, cells, codes, stamp, site, lambda: np.repeat(unchanged(), granules))

    # ---- atomic operations ----
    def atomic_global(
        self, kind: str, array: Any, part: Array, start: int, bounds: Any, value: Array, mask: Array, site: int
    ) -> Array:
        index = start if part is None else part + start if start else part
        index, ok = self._safe(index, bounds, mask, site)
        return self._atomic(kind, array.data, index, array.shadow, array.first, value, ok, mask, site, 1)

    def atomic_shared(
        self, kind: str, dtype: Any, part: Array, start: int, bounds: Any, value: Array, mask: Array, site: int
    ) -> Array:
        index = start if part is None else part + start if start else part
        index, ok = self._safe(index, bounds, mask, site)
        memory, itemsize = self.machine.view(dtype), np.dtype(dtype).itemsize
        granules = itemsize // self.machine.granule
        shadow = self.machine.shared_shadow
        return self._atomic(kind, memory, self._flat(index, itemsize), shadow, 0, value, ok, mask, site, granules)

    def _atomic(
        self, kind: str, memory: Array, index: Array, shadow: Any, first: int, value: Array, ok: Array | None,
        mask: Array, site: int, granules: int,
    ) -> Array:  # fmt: skip
        """Old values over the full shape of the lanes; 0 for lanes that take no part."""
        at, values, lanes = self._storing_lanes(index, value, ok, mask)
        shape = self.shape_of(index, value) if lanes is None else lanes.shape
        old = update(memory, at, np.asarray(values, memory.dtype), kind)
        if self.noted is not None:
            self.note(memory, index)
        if self.machine.watched:
            changed = _bits(memory[at]) != _bits(old)
            if changed.any():
                self.machine.changed(memory, at[changed])
        if self.machine.checks:
            self.counters.count(f"{self.machine.sites[site].space} atomic", len(at))
            if shadow is not None and len(at):
                codes = np.broadcast_to(self.codes, shape)
                cells, codes = _spread(at + first, codes.reshape(-1) if lanes is None else codes[lanes], granules)
                shadow.atomic(self, cells, codes, site)
        if lanes is None:
            return old.reshape(shape)
        result = np.zeros(shape, memory.dtype)
        result[lanes] = old
        return result

    # ---- checks of reads ----
    def _check_global(
        self, array: Any, index: Array, part: Array, start: int, ok: Array | None, mask: Array, site: int
    ) -> None:
        self.counters.requests_of(self, "global", "load", index, part, start, ok, mask, site, array.data.itemsize)
        if array.shadow is not None and array.shadow.reads_matter:
            self._read(array.shadow, index, array.first, part, start, ok, mask, site, 1)

    def _check_shared(
        self,
        index: Array,
        flat: Array,
        itemsize: int,
        part: Array,
        start: int,
        ok: Array | None,
        mask: Array,
        site: int,
    ) -> None:
        self.counters.requests_of(self, "shared", "load", index, part, start, ok, mask, site, itemsize)
        shadow = self.machine.shared_shadow
        self._read(shadow, flat, 0, part, start, ok, mask, site, itemsize // self.machine.granule)

    def _read(
        self, shadow: Any, index: Array, first: int, part: Array, start: int, ok: Array | None, mask: Array, site: int,
        granules: int,
    ) -> None:  # fmt: skip
        if ok is not None and not ok.all():
            mask = ok if mask is None else mask & ok
        key = (id(part), start, self.epoch) if mask is None and part is not None else None
        if key is not None and shadow.known_read(site, key, part):
            return
        if mask is None and np.ndim(index) and index.shape[-1] == 1 and self.T > 1:
            codes = np.broadcast_to(shadow.many_of(self), index.shape).reshape(-1)  # all threads of the block
            cells = index.reshape(-1)
        else:
            shape = self.shape_of(index, *(() if mask is None else (mask,)))
            cells, codes = np.broadcast_to(index, shape), np.broadcast_to(self.codes, shape)
            if mask is None:
                cells, codes = cells.reshape(-1), codes.reshape(-1)
            else:
                lanes = np.broadcast_to(mask, shape)
                cells, codes = cells[lanes], codes[lanes]
        if not len(cells):
            return
        cells, codes = _spread(cells + first if first else cells, codes, granules)
        shadow.read(self, cells, codes, site)
        if key is not None:
            shadow.remember_read(site, key, part)


def _bits(array: Array) -> Array:
    return array if array.dtype == np.bool_ else array.view(f"u{array.dtype.itemsize}")


def _spread(cells: Array, codes: Array, granules: int) -> tuple[Array, Array]:
    """Elements -> their granules."""
    if granules == 1:
        return cells, codes
    wide = cells[:, None] * granules + np.arange(granules)
    return wide.reshape(-1), np.repeat(codes, granules)
