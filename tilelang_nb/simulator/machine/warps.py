"""Warp-level operations: shuffles and votes, one NumPy operation over all warps in flight.

A strand may start in the middle of a warp: lanes are counted by the thread numbers inside the block.
"""

from __future__ import annotations

from typing import Any

import numpy as np

WARP = 32
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

    def shuffle(self, kind: str, value: Array, lane: Array, width: int) -> Array:
        """The value of another lane; a lane that would look outside its segment or the strand gets its own."""
        value = self.full(value)
        own = self.threads % WARP
        local, lane = own % width, np.asarray(lane)
        if kind == "xor":
            source = local ^ lane
        elif kind == "down":
            source = local + lane
        elif kind == "up":
            source = local - lane
        else:
            source = lane % width
        source = np.where((source >= 0) & (source < width), source, local)
        position = self.thread_row + (source - local)
        position = np.where((position >= 0) & (position < self.T), position, self.thread_row)
        if self.machine.checks:
            self.counters.count("shuffle", value.size)
        if position.ndim == 1:
            return value[..., position]
        shape = np.broadcast_shapes(position.shape, value.shape)
        return np.take_along_axis(np.broadcast_to(value, shape), np.broadcast_to(position, shape), -1)

    def vote(self, kind: str, value: Array, mask: Array) -> Array:
        """any and all give 0 or 1 (int32), ballot the bits (uint32) of the lanes that take part."""
        value = self.full(value).astype(np.bool_)
        if mask is not None:
            value = value | ~mask if kind == "all" else value & mask
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

    def block_vote(self, kind: str, value: Array, mask: Array) -> Array:
        """__syncthreads_and, _or, _count over the block."""
        value = self.full(value).astype(np.bool_)
        if mask is not None:
            value = value | ~mask if kind == "and" else value & mask
        reduced = {"and": value.all, "or": value.any, "count": value.sum}[kind](-1, keepdims=True)
        return np.broadcast_to(reduced.astype(np.int32), value.shape)
