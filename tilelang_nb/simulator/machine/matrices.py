"""Matrix instructions of a warp: ldmatrix, stmatrix and mma.sync, one NumPy operation over all warps in flight.

With lane = 4 * g + q and e elements in a 32-bit register (one in a 64-bit register of float64):

    A  register r, element p: row g + 8 * (r % 2), column 4 * e * (r // 2) + e * q + p     (r alone for 8 rows)
    B  register r, element p: row 4 * e * r + e * q + p, column g
    C  register 2 * h + p: row g + 8 * h, column 2 * q + p

Products are exact and summed in the type of the accumulator (float32 for 16-bit accumulators, which round once per
instruction).  A whole warp takes part, so a matrix access counts as one of several threads of the block.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .requests import WARP

Array = Any
ROW_BYTES = 16  # of an 8x8 matrix of 16-bit elements


class MatrixInstructions:
    """Part of a strand."""

    # ---- products ----
    def mma(
        self, rows: int, depth: int, types: tuple[Any, Any], a: Array, b: Array, c: Array, mask: Array = None
    ) -> Array:
        """c + a @ b for tiles (rows, depth) @ (depth, 8); registers as (register, blocks, threads).

        mask: the lanes that take part, None for all; what the others get is of no use.
        """
        left = _left(self._lanes_of(a), types[0], rows, depth)
        right = _right(self._lanes_of(b), types[1], depth)
        product = np.matmul(left, right)  # (warps, rows, 8)
        if self.machine.checks:
            warps = len(product) if mask is None else int(self._lanes_of(mask[None]).any(axis=-1).sum())
            self.counters.count(f"mma m{rows}n8k{depth}", warps)
        halves = rows // 8
        start = self._lanes_of(c)
        if start.dtype == np.uint32 and types[0] not in (np.int8, np.uint8):  # two float16 in a register
            old = start.reshape(halves, -1, 8, 4, 1).view(np.float16)
            new = (product.reshape(-1, halves, 8, 4, 2).transpose(1, 0, 2, 3, 4) + old).astype(np.float16)
            result = np.ascontiguousarray(new).view(np.uint32)[..., 0]
        else:
            product = product.reshape(-1, halves, 8, 4, 2).transpose(1, 4, 0, 2, 3).reshape(2 * halves, -1, 8, 4)
            if start.dtype == np.uint32:  # int8 products are exact in float32, sums of 32 of them too
                product = product.astype(np.int32).view(np.uint32)
            result = product + start.reshape(2 * halves, -1, 8, 4)
        return self._threads_of(result)

    def _lanes_of(self, registers: Array) -> Array:
        """(register, blocks, threads) -> (register, warps of all blocks, 32)."""
        registers = np.ascontiguousarray(np.broadcast_to(registers, (len(registers), self.B, self.T)))
        return self.by_warp(registers, 0).reshape(len(registers), -1, WARP)

    def _threads_of(self, lanes: Array) -> Array:
        """(register, warps, ...) -> (register, blocks, threads)."""
        front = int(self.threads[0]) % WARP
        return np.ascontiguousarray(lanes).reshape(len(lanes), self.B, -1)[..., front : front + self.T]

    def packed(self, high: Array, low: Array, dtype: Any) -> Array:
        """Two values in the halves of a 32-bit register."""
        bits = [np.broadcast_to(value, (self.B, self.T)).astype(dtype).view(np.uint16) for value in (low, high)]
        return bits[0].astype(np.uint32) | bits[1].astype(np.uint32) << 16

    # ---- matrices in shared memory ----
    def ldmatrix(
        self, dtype: Any, part: Array, start: int, bounds: Any, count: int, transpose: bool, mask: Array, site: int
    ) -> Array:
        """`count` 8x8 matrices of 16-bit elements as (count, blocks, threads) uint32.

        Lanes 8 * m to 8 * m + 7 give the addresses of the rows of matrix m.
        """
        rows = self._matrix_rows("load", dtype, part, start, bounds, count, mask, site)
        data = self.machine.view(np.complex128).take(rows).view(np.uint16).reshape(-1, count, 8, 8)
        if transpose:
            data = np.ascontiguousarray(data.swapaxes(2, 3))
        return self._threads_of(data.view(np.uint32).reshape(-1, count, WARP).swapaxes(0, 1))

    def stmatrix(
        self, dtype: Any, part: Array, start: int, bounds: Any, registers: Array, transpose: bool, mask: Array,
        site: int,
    ) -> None:  # fmt: skip
        """The opposite of `ldmatrix`."""
        count = len(registers)
        rows = self._matrix_rows("store", dtype, part, start, bounds, count, mask, site)
        data = np.ascontiguousarray(self._lanes_of(registers).reshape(count, -1, 8, 4).swapaxes(0, 1))
        data = data.view(np.uint16)
        if transpose:
            data = np.ascontiguousarray(data.swapaxes(2, 3))
        chunks = data.reshape(-1, count * 8, 8).view(np.complex128)[..., 0]
        memory = self.machine.view(np.complex128)
        active = self._active_warps(mask)
        if active is not None:
            rows, chunks = rows[active], chunks[active]
        memory[rows] = chunks

    def _active_warps(self, mask: Array) -> Array | None:
        """Which warps take part; None for all."""
        if mask is None:
            return None
        return self.by_warp(np.broadcast_to(mask, (self.B, self.T)), False).reshape(-1, WARP).any(1)

    def _matrix_rows(
        self, kind: str, dtype: Any, part: Array, start: int, bounds: Any, count: int, mask: Array, site: int
    ) -> Array:
        """The rows of the matrices of every warp, (warps, 8 * count), in units of 16 bytes of all shared memory."""
        index = start if part is None else part + start if start else part
        index, _ = self._safe(index, bounds, mask, site)
        address = np.broadcast_to(np.asarray(index) * np.dtype(dtype).itemsize, (self.B, self.T))
        if (address & (ROW_BYTES - 1)).any():
            self.misaligned(site, ROW_BYTES, (address & (ROW_BYTES - 1)) != 0)
            address = address & ~(ROW_BYTES - 1)
        address = self.by_warp(address, 0)[..., : 8 * count]
        rows = address + self.window_column[:, :, None] * self.machine.stride
        rows = rows.reshape(-1, 8 * count) >> 4
        if self.machine.checks:
            self._check_rows(kind, rows, address.reshape(-1, 8 * count), part, start, mask, site)
        return rows

    def _check_rows(
        self, kind: str, rows: Array, address: Array, part: Array, start: int, mask: Array, site: int
    ) -> None:
        shadow = self.machine.shared_shadow
        key = (id(part), start, self.epoch) if mask is None and part is not None else None
        self.counters.matrix_requests(kind, address, part, start, self._active_warps(mask), site)
        if kind == "load" and key is not None and shadow.known_read(site, key, part):
            return
        granules = ROW_BYTES // self.machine.granule
        codes = np.broadcast_to(shadow.many_of(self)[:, :, None], (self.B, len(rows) // self.B, rows.shape[1]))
        codes = codes.reshape(rows.shape)
        active = self._active_warps(mask)
        if active is not None:
            rows, codes = rows[active], codes[active]
        cells = (rows.reshape(-1, 1) * granules + np.arange(granules)).reshape(-1)
        codes = np.repeat(codes.reshape(-1), granules)
        if not len(cells):
            return
        if kind == "load":
            shadow.read(self, cells, codes, site)
            if key is not None:
                shadow.remember_read(site, key, part)
        else:
            shadow.before_write(self, cells, codes, site, lambda: np.zeros(len(cells), np.bool_))


def _left(registers: Array, dtype: Any, rows: int, depth: int) -> Array:
    """A as (warps, rows, depth) in the type that products are computed in."""
    halves = rows // 8
    count = len(registers) // halves
    tile = registers.reshape(count, halves, -1, 8, 4, 1).view(dtype)
    tile = np.ascontiguousarray(tile.transpose(2, 1, 3, 0, 4, 5)).reshape(-1, rows, depth)
    return _exact(tile, dtype)


def _right(registers: Array, dtype: Any, depth: int) -> Array:
    """B as (warps, depth, 8)."""
    tile = registers.reshape(len(registers), -1, 8, 4, 1).view(dtype)
    tile = np.ascontiguousarray(tile.transpose(1, 0, 3, 4, 2)).reshape(-1, depth, 8)
    return _exact(tile, dtype)


def _exact(tile: Array, dtype: Any) -> Array:
    if dtype is np.float64:
        return tile
    if dtype is np.float32:  # tf32: the low 13 bits take no part
        return (tile.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)
    return tile.astype(np.float32)
