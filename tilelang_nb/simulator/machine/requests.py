"""Counters: operations, shared-memory wavefronts, global sectors, of each warp's requests.

Shared memory has 32 banks of 4 bytes; accesses of 8 and 16 bytes go in half and quarter warps.  A wavefront serves
each bank once.  Global memory moves in sectors of 32 bytes.
"""

from __future__ import annotations

import weakref
from collections import Counter
from typing import Any

import numpy as np

BANKS, BANK_BYTES, SECTOR_BYTES, WARP, WIDEST = 32, 4, 32, 32, 16
REMEMBERED = 512  # address patterns; more are simply counted again
Array = Any


class Counting:
    """What one launch counts.

    sites: site -> [requests, used, ideal]: for shared memory wavefronts and the least possible, for global memory
    sectors and the least possible.
    kept_out: site -> accesses that a guard at the edge of a buffer kept from happening.
    """

    def __init__(self) -> None:
        self.operations: Counter[str] = Counter()
        self.tallies: Counter[int] = Counter()
        self.sites: dict[int, list[int]] = {}
        self.kept_out: Counter[int] = Counter()
        self._patterns: dict[tuple[Any, ...], tuple[Any, tuple[int, int, int, int]]] = {}

    def count(self, name: str, number: int) -> None:
        self.operations[name] += number

    def requests_of(
        self, strand: Any, space: str, kind: str, index: Array, part: Array, start: int, ok: Array | None, mask: Array,
        site: int, itemsize: int,
    ) -> None:  # fmt: skip
        """Count an access at element `index` = part + start.

        An address pattern that is known is not looked at again.
        """
        if ok is not None and not ok.all():
            mask = ok if mask is None else mask & ok
        detail = strand.machine.details[site]
        unit = BANK_BYTES if space == "shared" else SECTOR_BYTES
        key = None
        if mask is None:
            key = (id(part), start * itemsize % unit, itemsize, detail.wide_extent, space, strand.B, strand.T)
            known = self._patterns.get(key)
            if known is not None and (part is None or known[0]() is part):
                self._add(site, f"{space} {kind}", known[1])
                return
        wide = _wide_axis(index, detail, itemsize)
        counts = (
            _accesses(strand, index, mask, wide),
            *count_requests(strand, space, index, mask, itemsize, wide),
        )
        self._add(site, f"{space} {kind}", counts)
        if key is not None:
            if len(self._patterns) >= REMEMBERED:
                self._patterns.clear()
            self._patterns[key] = None if part is None else weakref.ref(part), counts

    def matrix_requests(
        self, kind: str, address: Array, part: Array, start: int, active: Array | None, site: int
    ) -> None:
        """Count ldmatrix or stmatrix; address: bytes of the rows, (warps, 8 times the matrices)."""
        key = None
        if active is None and part is not None:
            key = (id(part), start % 64, "matrix", address.shape)
            known = self._patterns.get(key)
            if known is not None and known[0]() is part:
                self._add(site, f"shared {kind}", known[1])
                return
        if active is not None:
            address = address[active]
        counts = (address.size, *_wavefronts(address, None, WIDEST))
        self._add(site, f"shared {kind}", counts)
        if key is not None and len(self._patterns) < REMEMBERED:
            self._patterns[key] = weakref.ref(part), counts

    def copy_requests(self, strand: Any, space: str, address: Array, mask: Array, size: int, site: int) -> None:
        """Count one side of cp.async; address: bytes, (blocks, threads)."""
        if mask is not None and mask.all():
            mask = None
        counts = count_requests(strand, space, address // size, mask, size, (0, 1))
        lanes = strand.lane_count(mask)
        self._add(site, f"{space} {'load' if space == 'global' else 'store'}", (lanes, *counts))

    def _add(self, site: int, kind: str, counts: tuple[int, int, int, int]) -> None:
        self.operations[kind] += counts[0]
        total = self.sites.setdefault(site, [0, 0, 0])
        for position, number in enumerate(counts[1:]):
            total[position] += number


def _wide_axis(index: Array, detail: Any, itemsize: int) -> tuple[int, int]:
    """(position, extent) of the vector axis that forms one aligned access of up to 16 bytes; extent 1: none."""
    position, extent = detail.wide_position, detail.wide_extent
    axis = np.ndim(index) - 3 - position
    if extent == 1 or axis < 0 or index.shape[axis] != extent or extent * itemsize > WIDEST:
        return 0, 1
    first = index.take(0, axis=axis)
    together = (index.take(extent - 1, axis=axis) - first == extent - 1).all() and not (first % extent).any()
    return (position, extent) if together else (0, 1)


def _accesses(strand: Any, index: Array, mask: Array, wide: tuple[int, int]) -> int:
    """Accesses of single threads."""
    shape = strand.shape_of(index, *(() if mask is None else (mask,)))
    total = int(np.prod(shape))
    if mask is not None:
        total = int(np.count_nonzero(mask)) * (total // mask.size)
    return max(total // wide[1], 1) if total else 0


def count_requests(
    strand: Any, space: str, index: Array, mask: Array, itemsize: int, wide: tuple[int, int]
) -> tuple[int, int, int]:
    """(requests of warps, wavefronts or sectors, the least possible)."""
    index = np.asarray(index)
    position, extent = wide
    width = itemsize
    if extent > 1:
        index = index.take([0], axis=index.ndim - 3 - position)
        width = itemsize * extent
        if mask is not None and mask.ndim - 2 > position:
            mask = mask.any(axis=mask.ndim - 3 - position, keepdims=True)
    if mask is None and (not index.ndim or index.shape[-1] == 1) and strand.T > 1:
        warps = strand.B * len(np.unique(strand.threads // WARP))
        requests = warps * (index.size // max(index.shape[-2], 1) if index.ndim >= 2 else 1)
        return requests, requests, requests  # every thread of a block at one address
    shape = strand.shape_of(index, *(() if mask is None else (mask,)))
    address = strand.by_warp(np.broadcast_to(index, shape) * itemsize, -1).reshape(-1, WARP)
    partial = strand.T % WARP or int(strand.threads[0]) % WARP
    active = None
    if mask is not None or partial:
        lanes = strand.by_warp(np.broadcast_to(True if mask is None else mask, shape), False).reshape(-1, WARP)
        rows = lanes.any(1)
        if not rows.all():
            address, lanes = address[rows], lanes[rows]
        active = None if lanes.all() else lanes
    if not len(address):
        return 0, 0, 0
    return _wavefronts(address, active, width) if space == "shared" else _sectors(address, active, width)


def _distinct(units: Array, active: Array | None) -> tuple[Array, Array]:
    """(units sorted per row, which of them are the first of their kind); inactive ones are -1 and never first."""
    if active is not None:
        units = np.where(active, units, -1)
    if not (units[:, 1:] >= units[:, :-1]).all():
        units = np.sort(units, axis=1)
    fresh = np.empty(units.shape, np.bool_)
    fresh[:, 0] = units[:, 0] >= 0
    np.not_equal(units[:, 1:], units[:, :-1], out=fresh[:, 1:])
    if active is not None:
        fresh[:, 1:] &= units[:, 1:] >= 0
    return units, fresh


def _wavefronts(address: Array, active: Array | None, width: int) -> tuple[int, int, int]:
    requests = len(address)
    word = address >> 2
    if width > BANK_BYTES:
        lanes = max(128 // width, 1)  # threads of one pass
        words = width // BANK_BYTES
        word = (word.reshape(-1, lanes)[:, :, None] + np.arange(words)).reshape(-1, lanes * words)
        if active is not None:
            active = np.repeat(active.reshape(-1, lanes), words, axis=1)
    word, fresh = _distinct(word, active)
    rows = np.arange(len(word))[:, None] * BANKS + (word & (BANKS - 1))
    depth = np.bincount(rows[fresh], minlength=len(word) * BANKS).reshape(-1, BANKS)
    used = depth.max(1)
    ideal = -(-depth.sum(1) // BANKS)
    return requests, int(used.sum()), int(np.maximum(ideal, used > 0).sum())


def _sectors(address: Array, active: Array | None, width: int) -> tuple[int, int, int]:
    requests = len(address)
    sector = address // SECTOR_BYTES
    _, fresh = _distinct(sector, active)
    used = int(np.count_nonzero(fresh))
    _, distinct = _distinct(address // width, active)
    moved = distinct.sum(1) * width
    return requests, used, int((-(-moved // SECTOR_BYTES)).sum())
