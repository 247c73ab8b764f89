"""Warp-level operations: shuffles and votes, one NumPy operation over all warps in flight.

A strand may start in the middle of a warp: lanes are counted by the thread numbers inside the block.

What such an operation gives is defined only where every lane that its mask names takes part, and every lane that is
read.  Lanes that the block does not have need not come, but nothing can be read from them.  On the simulated device a
lane that reads from one that is not there gets its own value.
"""

from __future__ import annotations

from typing import Any

import numpy as np

WARP = 32
EVERY = 0xFFFFFFFF  # the mask of a whole warp
Array = Any


class Warps:
    """Part of a strand."""

    def full(self, value: Array) -> Array:
        """Broadcast to (..., blocks, threads)."""
        return np.broadcast_to(value, self.shape_of(value))

    def by_warp(self, lanes: Array, fill: Any) -> Array:
        """(..., threads) -> (..., warps, 32); lanes that are not in the strand hold `fill`."""
        front = int(self.threads[0]) % WARP
        back = -(front + self.T) % WARP
        if front or back:
            lanes = np.pad(lanes, [(0, 0)] * (lanes.ndim - 1) + [(front, back)], constant_values=fill)
        return lanes.reshape(*lanes.shape[:-1], -1, WARP)

    def shuffle(self, kind: str, value: Array, lane: Array, width: int, named: Array, mask: Array, site: int) -> Array:
        """The value of another lane; a lane that would look outside its segment gets its own.

        lane: only five bits of it count.  width: lanes of a segment.  named: the lanes that take part, as bits.
        """
        value = self.full(value)
        own, lane = self.threads % WARP, np.asarray(lane) % WARP
        first = own - own % width
        if kind == "index":
            source = first + lane % width
        elif kind == "up":
            source = np.where(own - lane >= first, own - lane, own)
        else:
            source = own ^ lane if kind == "xor" else own + lane
            source = np.where(source < first + width, source, own)
        position = self.thread_row + (source - own)
        if not self._all_here(named, mask):
            self._find_absent("shuffle", named, mask, site, source)
            position = np.where((position >= 0) & (position < self.T), position, self.thread_row)
        if self.machine.checks:
            self.counters.count("shuffle", value.size)
        if position.ndim == 1:
            return value[..., position]
        shape = np.broadcast_shapes(position.shape, value.shape)
        return np.take_along_axis(np.broadcast_to(value, shape), np.broadcast_to(position, shape), -1)

    def vote(self, kind: str, value: Array, named: Array, mask: Array, site: int) -> Array:
        """any and all give 0 or 1 (int32), ballot the bits (uint32) of the lanes that take part.

        named: these lanes, as bits; None for all that are here.
        """
        value = self.full(value).astype(np.bool_)
        taking = mask
        if named is not None:
            if not self._all_here(named, mask):
                self._find_absent("vote", named, mask, site)
            if not isinstance(named, int) or named != EVERY:
                chosen = (np.asarray(named, np.uint32) >> (self.threads % WARP).astype(np.uint32) & 1).astype(np.bool_)
                taking = chosen if mask is None else mask & chosen
        if taking is not None:
            value = value | ~taking if kind == "all" else value & taking
        warps = self.by_warp(value, kind == "all")
        if kind == "ballot":
            result = np.packbits(warps, -1, bitorder="little").view(np.uint32)
        else:
            result = (warps.any if kind == "any" else warps.all)(-1, keepdims=True).astype(np.int32)
        if self.machine.checks:
            self.counters.count("vote", value.size)
        lanes = np.broadcast_to(result, warps.shape).reshape(*warps.shape[:-2], -1)
        front = int(self.threads[0]) % WARP
        return np.ascontiguousarray(lanes[..., front : front + self.T])

    # ---- lanes that are not there ----
    def _all_here(self, named: Array, mask: Array) -> bool:
        """Is it plain that all lanes of all warps take part?"""
        whole = self.T % WARP == 0 and int(self.threads[0]) % WARP == 0
        return whole and mask is None and isinstance(named, int) and named == EVERY

    def _find_absent(self, what: str, named: Array, mask: Array, site: int, source: Array | None = None) -> None:
        """Report active lanes that read from one that does not take part, name one, or are not named themselves.

        source: the lane of the warp that each lane reads from.
        """
        parts = [part for part in (named, mask, source) if part is not None]
        shape = self.shape_of(*parts)
        active = np.broadcast_to(True if mask is None else mask, shape)
        bits = np.broadcast_to(np.asarray(named, np.uint32), shape)
        own = (self.threads % WARP).astype(np.uint32)
        here = np.ascontiguousarray(self.by_warp(active, False))
        coming = self._of_warps(np.packbits(here, -1, bitorder="little").view(np.uint32), here.shape)
        warps = int(self.threads[0]) // WARP + np.arange(here.shape[-2])
        exist = np.minimum(np.maximum(self.machine.threads - warps * WARP, 0), WARP)
        existing = self._of_warps(((1 << exist) - 1).astype(np.uint32)[:, None], here.shape[-2:])
        found = self.findings.absent_lane
        if source is not None:
            read = np.broadcast_to(source, shape).astype(np.uint32)
            wrong = active & ((coming & bits) >> read & 1 == 0) & (read != own)
            if wrong.any():
                code, position = self.first_lane(wrong)
                lane, warp = int(read[position]), int(self.threads[position[-1]]) // WARP
                missing = "exist" if warp * WARP + lane >= self.machine.threads else "come"
                missing = "named" if missing == "come" and int(coming[position]) >> lane & 1 else missing
                found(site, self.coordinates(code), what, "reads", missing, lane, int(wrong.sum()))
                return
        wrong = active & (bits >> own & 1 == 0)
        if wrong.any():
            code, position = self.first_lane(wrong)
            found(site, self.coordinates(code), what, "is", "named", int(own[position[-1]]), int(wrong.sum()))
            return
        absent = bits & existing & ~coming
        wrong = active & (absent != 0)
        if wrong.any():
            code, position = self.first_lane(wrong)
            lanes = int(absent[position])
            lane = (lanes & -lanes).bit_length() - 1
            found(site, self.coordinates(code), what, "names", "come", lane, int(wrong.sum()))

    def _of_warps(self, values: Array, shape: tuple[int, ...]) -> Array:
        """One value for each warp, (..., warps, 1), for each thread of the strand."""
        lanes = np.broadcast_to(values, shape).reshape(*shape[:-2], -1)
        front = int(self.threads[0]) % WARP
        return lanes[..., front : front + self.T]

    def block_vote(self, kind: str, value: Array, mask: Array) -> Array:
        """__syncthreads_and, _or, _count over the block."""
        value = self.full(value).astype(np.bool_)
        if mask is not None:
            value = value | ~mask if kind == "and" else value & mask
        reduced = {"and": value.all, "or": value.any, "count": value.sum}[kind](-1, keepdims=True)
        return np.broadcast_to(reduced.astype(np.int32), value.shape)
