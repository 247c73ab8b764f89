"""Matrix multiplication by warp groups (wgmma), and the division of registers between them (setmaxnreg).

A product runs until the threads wait for its group.  It reads its operands in shared memory then, as late as the
program allows, and until then its accumulators hold nothing: a program that forgets a wait, or frees a tile too early,
computes with the wrong data every time.

With lane = 4 * g + q and warp w of the group, register 4 * j + 2 * h + p of an accumulator is row 16 * w + g + 8 * h,
column 8 * j + 2 * q + p.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .barriers import WARPGROUP
from .tensor_copies import CHUNK, swizzled
from .waits import REGISTERS, Lack, Wait

Array = Any
ROWS = 64
SPANS = {0: 0, 1: 128, 2: 64, 3: 32}  # layout of a descriptor -> bytes of its swizzle


@dataclass(frozen=True)
class Descriptor:
    """A matrix in shared memory.

    start: byte addresses, (warp groups of the strand,).  leading, stride: bytes.  span: of the swizzle.
    """

    start: Array
    leading: int
    stride: int
    span: int


@dataclass
class Operand:
    """One operand of a product under way: registers, or where it lies in shared memory.

    chunks: (groups, ...) of 16 bytes.  cells, codes: of the shadow; records: who had written them at the start.
    """

    registers: Array | None
    chunks: Array | None
    turned: bool  # rows of memory run along the depth
    cells: Array | None
    codes: Array | None
    records: Array | None
    site: int

    def of(self, kept: Array) -> Operand:
        """Of some of the warp groups that take part."""
        if self.cells is None or self.codes is None or self.records is None:
            return self
        parts = [one.reshape(len(kept), -1)[kept].reshape(-1) for one in (self.cells, self.codes, self.records)]
        return replace(self, cells=parts[0], codes=parts[1], records=parts[2])


@dataclass
class Product:
    """A wgmma under way.

    target, state: registers of the accumulator and which of them hold a value (None without checks).
    keep: bool per warp group, whether the old accumulator is added.  active: warp groups that take part.
    """

    columns: int
    depth: int
    types: tuple[Any, Any]
    a: Operand
    b: Operand
    target: Array
    state: Array | None
    keep: Array
    active: Array

    def of(self, chosen: Array) -> Product | None:
        """The part of some warp groups; None if there is none."""
        active = self.active & chosen
        if not active.any():
            return None
        if (active == self.active).all():
            return self
        kept = chosen[self.active]
        return replace(self, a=self.a.of(kept), b=self.b.of(kept), active=active)


@dataclass
class ProductGroup:
    """Products that were committed together, and by which warp groups of all blocks."""

    products: list[Product]
    active: Array


def _divided(products: list[Product], chosen: Array) -> tuple[list[Product], list[Product]]:
    """The parts of some warp groups, and of the others."""
    mine = [part for product in products if (part := product.of(chosen)) is not None]
    rest = [part for product in products if (part := product.of(~chosen)) is not None]
    return mine, rest


class WarpGroups:
    """Part of a strand.

    open_products: since the last commit.  product_groups: committed, oldest first.  parent: the strand that this one is
    a part of, whose products it may wait for; cut: which lanes.  children: parts that have ended with products running.
    """

    open_products: list[Product]
    product_groups: list[ProductGroup]
    parent: Any
    cut: slice
    children: list[Any]

    # ---- operands ----
    def matrix_descriptor(self, address: Array, leading: int, stride: int, layout: int) -> Descriptor:
        """address: bytes in the window of the block, equal in each warp group.  leading, stride: in 16 bytes."""
        starts = np.broadcast_to(np.asarray(address), (self.B, self.T))[:, ::WARPGROUP].reshape(-1)
        return Descriptor(starts, leading * CHUNK, stride * CHUNK, SPANS[layout])

    def _in_shared(self, descriptor: Descriptor, lines: int, depth: int, turned: bool, itemsize: int, site: int,
                   active: Array) -> Operand:  # fmt: skip
        span = max(descriptor.span, CHUNK)
        if turned:  # 64 columns at `leading`, 8 rows along the depth at `stride`
            row, chunk = np.arange(depth)[:, None], np.arange(lines * itemsize // CHUNK)[None, :]
            wide = span // CHUNK
            place = chunk // wide * descriptor.leading + row // 8 * descriptor.stride
            place = place + row % 8 * span + chunk % wide * CHUNK
        else:  # 8 lines at `stride`
            row, chunk = np.arange(lines)[:, None], np.arange(depth * itemsize // CHUNK)[None, :]
            place = row // 8 * descriptor.stride + row % 8 * span + chunk * CHUNK
        addresses = swizzled(descriptor.start[:, None, None] + place, descriptor.span) % self.machine.stride
        window = np.repeat(self.window_column[:, 0], self.T // WARPGROUP) * self.machine.stride
        operand = Operand(None, (addresses + window[:, None, None]) >> 4, turned, None, None, None, site)
        if self.machine.checks:
            self._started(operand, active)
        return operand

    def _started(self, operand: Operand, active: Array) -> None:
        """The operand is read from now on."""
        machine, groups = self.machine, self.T // WARPGROUP
        shadow = machine.shared_shadow
        granules = CHUNK // machine.granule
        assert operand.chunks is not None
        chunks = operand.chunks.reshape(len(operand.chunks), -1)[active]
        cells = (chunks[:, :, None] * granules + np.arange(granules)).reshape(-1)
        codes = np.repeat(shadow.many_of(self)[:, 0], groups)[active]
        codes = np.repeat(codes, chunks.shape[1] * granules)
        if len(cells):
            shadow.read(self, cells, codes, operand.site, True)
            self.check_proxy(cells, operand.site)
        operand.cells, operand.codes, operand.records = cells, codes, shadow.writes[cells]

    def _tile(self, operand: Operand, lines: int, depth: int, dtype: Any, by: Any) -> Array:
        """(groups, lines, depth) in the type that products are computed in.  by: the strand that has waited."""
        if operand.registers is not None:
            return self._from_registers(operand.registers, depth, dtype)
        if operand.cells is not None and len(operand.cells):
            self.check_unchanged(operand.cells, operand.records, operand.site, "a matrix product")
            shadow = self.machine.shared_shadow
            shadow.note_bulk_read(by, operand.cells, operand.codes, operand.site)
        assert operand.chunks is not None
        raw = self.machine.view(np.complex128).take(operand.chunks)
        tile = np.ascontiguousarray(raw).view(np.uint8).view(dtype)
        return exact(tile.swapaxes(1, 2) if operand.turned else tile, dtype)

    def _from_registers(self, registers: Array, depth: int, dtype: Any) -> Array:
        """Register 2 * c + h holds row g + 8 * h of each warp, from column 4 * e * c + e * q on."""
        packed = np.ascontiguousarray(np.broadcast_to(registers, (len(registers), self.B, self.T)))
        groups = self.B * (self.T // WARPGROUP)
        tile = packed.reshape(len(registers) // 2, 2, groups, 4, 8, 4, 1).view(dtype)
        tile = np.ascontiguousarray(tile.transpose(2, 3, 1, 4, 0, 5, 6)).reshape(groups, ROWS, depth)
        return exact(tile, dtype)

    # ---- products ----
    def wgmma(
        self, columns: int, depth: int, types: tuple[Any, Any], turned: tuple[bool, bool], target: Array, state: Array,
        a: Any, b: Descriptor, keep: Array, mask: Array, sites: tuple[int, int, int],
    ) -> None:  # fmt: skip
        """Start target = target * keep + a @ b for tiles (64, depth) and (depth, columns).

        a: registers or a descriptor.  turned: of A and B, whether their rows in memory run along the depth.
        sites: of A, B and the product.
        """
        groups = self.T // WARPGROUP
        if self.T % WARPGROUP or int(self.threads[0]) % WARPGROUP:
            self.findings.part_of_warp_group(sites[2], self.coordinates(int(self.codes[0, 0])))
            raise self.machine.stopped
        lanes = np.broadcast_to(True if mask is None else mask, (self.B, self.T)).reshape(-1, WARPGROUP)
        active, whole = lanes.any(1), lanes.all(1)
        if (active & ~whole).any():
            missing = ~lanes & active[:, None]
            code = int(self.codes.reshape(-1, WARPGROUP)[missing][0])
            self.findings.part_of_warp_group(sites[2], self.coordinates(code))
            raise self.machine.stopped
        size = np.dtype(types[0]).itemsize
        if isinstance(a, Descriptor):
            left = self._in_shared(a, ROWS, depth, turned[0], size, sites[0], active)
        else:
            left = Operand(a, None, False, None, None, None, sites[0])
        right = self._in_shared(b, columns, depth, turned[1], np.dtype(types[1]).itemsize, sites[1], active)
        kept = np.broadcast_to(np.asarray(keep, np.bool_), (self.B, self.T)).reshape(-1, WARPGROUP)[:, 0]
        product = Product(columns, depth, types, left, right, target, state, kept, active)
        if self.machine.checks:
            self.counters.count(f"wgmma m{ROWS}n{columns}k{depth}", int(active.sum()))
            # What runs already adds to the accumulator in order; anything else has to hold a value to be kept.
            running = self._running()
            mine = any(np.shares_memory(p.target, target) for p in running)
            if not mine and not np.all(state):
                missing = ~np.asarray(state) & self._lanes(kept & active, groups)
                if missing.any():
                    self.uninitialised(sites[2], missing)
            self._mark(product, False)
        self.open_products.append(product)

    def _lanes(self, chosen: Array, groups: int) -> Array:
        return np.repeat(chosen.reshape(self.B, groups), WARPGROUP, axis=1)

    def _mark(self, product: Product, holds: bool) -> None:
        lanes = self._lanes(product.active, self.T // WARPGROUP)
        np.copyto(product.state, holds, where=lanes)

    def _groups_of(self, mask: Array) -> Array:
        """Which warp groups of all blocks take part as a whole."""
        lanes = np.broadcast_to(True if mask is None else mask, (self.B, self.T))
        chosen: Array = lanes.reshape(-1, WARPGROUP).all(1)
        return chosen

    def commit_products(self, mask: Array = None) -> None:
        """wgmma.commit_group"""
        if self.T % WARPGROUP:
            return
        chosen = self._groups_of(mask)
        mine, self.open_products = _divided(self.open_products, chosen)
        self.product_groups.append(ProductGroup(mine, chosen))

    def wait_products(self, allowed: int, mask: Array, by: Any = None) -> None:
        """wgmma.wait_group: of each warp group, all but the last `allowed` groups of products are finished.

        Where only some warps of a warp group wait, the others go on: nothing counts as finished then.  by: the part of
        the strand that waits.
        """
        if self.T % WARPGROUP:
            return
        by = by or self
        for child in self.children:
            child.wait_products(
                allowed, None if mask is None else np.broadcast_to(mask, (self.B, self.T))[:, child.cut], by
            )
        self.children = [child for child in self.children if child.product_groups or child.open_products]
        waiting = self._groups_of(mask)
        newer, landing, kept = np.zeros(len(waiting), np.int64), [], []
        for group in reversed(self.product_groups):
            reaching = group.active & waiting & (newer >= allowed)
            newer += group.active
            if reaching.any():
                mine, rest = _divided(group.products, reaching)
                landing[:0] = mine
                group = ProductGroup(rest, group.active & ~reaching)
            if group.active.any():
                kept.append(group)
        self.product_groups = kept[::-1]
        for product in landing:
            self._finish_product(product, by)
        later = self._running()
        for product in landing:
            if product.state is not None and not any(
                np.shares_memory(p.target, product.target) and (p.active & product.active).any()
                for p in later
                if len(p.active) == len(product.active)
            ):
                self._mark(product, True)
        if self.parent is not None and self.parent.T % WARPGROUP == 0:
            wide = np.zeros((self.B, self.parent.T), np.bool_)
            wide[:, self.cut] = True if mask is None else mask
            own = int(newer[waiting].min(initial=0)) if waiting.any() else 0
            self.parent.wait_products(max(allowed - own, 0), wide, by)

    def take_products(self, child: Any) -> None:
        """A part of the threads is back."""
        if child.product_groups or child.open_products or child.children:
            self.children.append(child)
        child.parent = None

    def _running(self) -> list[Product]:
        own = [*(p for group in self.product_groups for p in group.products), *self.open_products]
        return own + [p for child in self.children for p in child._running()]

    def running_product(self, state: Array) -> bool:
        """Is an accumulator with these marks still being computed?"""
        running = self._running() + (self.parent._running() if self.parent is not None else [])
        return any(p.state is not None and np.shares_memory(p.state, state) for p in running)

    def _finish_product(self, product: Product, by: Any) -> None:
        columns, groups = product.columns, self.T // WARPGROUP
        left = self._tile(product.a, ROWS, product.depth, product.types[0], by)
        right = self._tile(product.b, columns, product.depth, product.types[1], by)
        total = np.matmul(left, right.swapaxes(1, 2))  # (groups of all blocks, 64, columns)
        total = total.reshape(self.B, groups, 4, 2, 8, columns // 8, 4, 2)
        total = total.transpose(5, 3, 7, 0, 1, 2, 4, 6).reshape(columns // 2, self.B, self.T)
        kept = self._lanes(product.keep, groups)
        if product.target.dtype.kind == "u" and np.dtype(product.types[0]).itemsize == 2:  # two float16 in a register
            old = np.ascontiguousarray(product.target).reshape(columns // 4, self.B, self.T, 1).view(np.float16)
            halves = total.reshape(columns // 4, 2, self.B, self.T).transpose(0, 2, 3, 1)
            summed = np.where(kept[..., None], old + halves, halves).astype(np.float16)
            result = np.ascontiguousarray(summed).view(product.target.dtype).reshape(product.target.shape)
        elif product.target.dtype.kind in "iu":
            total = total.astype(np.int64)
            summed = (np.where(kept, product.target.view(np.int32), 0) + total).astype(np.int32)
            result = summed.view(product.target.dtype)
        elif kept.all():
            result = product.target + total
        else:
            result = np.where(kept, product.target + total, total)
        if product.active.all():
            product.target[...] = result
        else:
            np.copyto(product.target, result, where=self._lanes(product.active, groups), casting="unsafe")

    # ---- registers ----
    def _one_missing(self, groups: Array, lanes: Array) -> Any:
        """A thread of the warp groups that does not take part, with its block."""
        block = int(np.flatnonzero(lanes.any(1))[0])
        here = {int(thread) for thread in self.threads[lanes[block]]}
        every = [int(group) * WARPGROUP + at for group in groups for at in range(WARPGROUP)]
        thread = next(one for one in every if one not in here)
        return self.coordinates(int(self.block_ids[block]) * self.machine.threads + thread + 1)

    def set_registers(self, increase: bool, count: int, mask: Array, site: int) -> Generator[Wait, None, None]:
        """setmaxnreg: give registers of each thread back, or wait until there are enough to take."""
        machine = self.machine
        lanes = np.broadcast_to(True if mask is None else mask, (self.B, self.T))
        groups, members = np.unique(self.threads // WARPGROUP, return_counts=True)
        part = (members != WARPGROUP).any() or (lanes.any(1) & ~lanes.all(1)).any()
        if part and machine.threads % WARPGROUP == 0:
            self.findings.part_of_warp_group(site, self._one_missing(groups, lanes), "change of registers")
            raise machine.stopped
        for block in self.block_ids if mask is None else self.block_ids[np.broadcast_to(mask, (self.B, self.T)).any(1)]:
            held = machine.registers_of(int(block))
            for group in groups:
                before = held[int(group)]
                if increase and count < before == machine.registers_at_first and machine.registers_to_spare:
                    # the device compiler gave them so many to begin with
                    held[int(group)] = count
                    continue
                if (count > before) != increase and count != before:
                    self.findings.register_direction(site, increase, count, before)
                    continue

                def ready(held: Any = held, before: int = before) -> bool:
                    return (sum(held.values()) - before + count) * WARPGROUP <= machine.register_pool

                def said(held: Any = held, before: int = before) -> Lack:
                    free = machine.register_pool // WARPGROUP - sum(held.values()) + before
                    text = f"{count} registers for each thread; {free} are free for its warp group"
                    return Lack(text, frozenset((REGISTERS,)))

                while not ready():
                    yield Wait(ready, said, site)
                held[int(group)] = count


def exact(tile: Array, dtype: Any) -> Array:
    """The values in the type that products are computed in."""
    if dtype is np.float32:  # tf32: the low 13 bits take no part
        return (np.ascontiguousarray(tile).view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)
    if dtype in (np.int8, np.uint8):
        return tile.astype(np.float64)
    return tile.astype(np.float32)
