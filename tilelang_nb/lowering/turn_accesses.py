"""Which version of its tiles each statement of a pipelined loop, and in front of it, reads and copies.

Versions are named by turns: `(turn + n) % stages` in the loop, numbers in front of it, where the copies of the first
turns stand.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import tvm
import tvm_ffi
from tvm import tirx as tir
from tvm.sym import Analyzer

from .accesses import pointed, starts_copy
from .rewrite import Load, constant, scope, variables


@dataclass(frozen=True)
class Part:
    """A statement.  reads, copies: of which turns, by tile; in the loop as distances from the turn that runs.

    early: it starts asynchronous copies into other tiles.  shared: all tiles that it mentions.
    """

    node: Any
    reads: dict[Any, set[int]]
    copies: dict[Any, set[int]]
    early: set[Any]
    shared: set[Any]


def parts_of(
    nodes: list[Any], tiles: tuple[Any, ...], loop: Any, stages: int, analyzer: Analyzer, within: bool
) -> list[Part] | None:
    """What statements within a loop, or in front of it, do; None where an access says its version in another way, or a
    thread stores into a tile.
    """
    turn = turn_of(loop)
    bound: dict[Any, Any] = {}

    def distance(version: Any) -> int | None:
        known = constant(version)
        if known is not None:
            return known
        version = bound.get(version, version) if isinstance(version, tvm.ir.Var) else version
        if not isinstance(version, tir.FloorMod) or constant(version.b) != stages:
            return None
        return constant(analyzer.simplify(version.a - turn))

    found = []
    for node in nodes:
        if isinstance(node, tir.Bind):
            bound[node.var] = node.value
        part = _part(node, tiles, distance, stages if within else 0)
        if part is None:
            return None
        found.append(part)
    return found


def turn_of(loop: Any) -> Any:
    """The number of the turn, from 0."""
    return loop.loop_var if constant(loop.min) == 0 else loop.loop_var - loop.min


def _part(node: Any, tiles: tuple[Any, ...], distance: Any, stages: int) -> Part | None:
    """stages: of a loop that the statement is in, 0 for one in front of it."""
    targets: list[Any] = []
    loads: list[Any] = []
    stored: list[Any] = []

    def call(one: Any) -> None:
        if starts_copy(one):
            targets.append(pointed(one.args[0]))

    tvm_ffi.structural_walk(
        node,
        [(tvm.ir.Call, call), (Load, loads.append), (tir.BufferStore, lambda one: stored.append(one.buffer))],
        order="pre",
    )
    if any(one in tiles for one in stored):
        return None
    reads: dict[Any, set[int]] = {}
    copies: dict[Any, set[int]] = {}
    for load in loads:
        if load.source not in tiles:
            continue
        at = distance(load.indices[0])
        if at is None:
            return None
        kind = copies if any(load.same_as(target) for target in targets) else reads
        kind.setdefault(load.source, set()).add(at)
    if stages:
        # A copy is for a later turn, and its version says which up to the number of versions.
        copies = {tile: {(at - 1) % stages + 1 for at in turns} for tile, turns in copies.items()}
    early = {target.source for target in targets if target.source not in tiles}
    shared = {var for var in variables(node) if isinstance(var.ty, tir.BufferType) and scope(var).startswith("shared")}
    return Part(node, reads, copies, early, shared)


@dataclass(frozen=True)
class Turns:
    """A loop and what stands in front of it.  shared: tiles that are copied at one place have barriers together."""

    node: Any
    stages: int
    inside: list[Part]
    outside: list[Part]
    shared: bool = False

    @property
    def number(self) -> Any:
        return turn_of(self.node)

    def groups(self, tiles: tuple[Any, ...]) -> list[tuple[Any, ...]] | None:
        """The tiles that are copied together and used together, those used first at the beginning; None where the order
        of a turn is not that of a ring.
        """
        if any(part.early for part in self.inside):
            return None
        if not all(map(self._is_ring, tiles)):
            return None
        groups: list[tuple[Any, ...]] = []
        for tile in sorted(tiles, key=lambda tile: self.first_read((tile,), False)):
            if groups and self._together(groups[-1], (tile,)):
                groups[-1] = (*groups[-1], tile)
            else:
                groups.append((tile,))
        if len({self.read_ahead(group) for group in groups}) != 1 or not self._waits_for_early(groups[0]):
            return None
        return groups

    def _together(self, one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
        """Are they copied at one place, and read without anything between?"""

        def between(a: int, b: int) -> bool:
            return self.shared or all(self.inside[at].reads for at in range(min(a, b), max(a, b)))

        return (
            self.copies(one) == self.copies(other)
            and self.read_ahead(one) == self.read_ahead(other)
            and between(self.first_read(one, False), self.first_read(other, False))
            and between(self.last_read(one), self.last_read(other))
        )

    def _is_ring(self, tile: Any) -> bool:
        """Is every version copied, read by its turn and by that alone, and then copied into again?"""
        one = (tile,)
        reads = {at for part in self.inside for at in part.reads.get(tile, ())}
        copies = {at for part in self.inside for at in part.copies.get(tile, ())}
        if 0 not in reads or not reads <= {0, 1} or len(copies) != 1:
            return False
        ahead, (distance,) = max(reads), copies
        first, _, _ = self.copies(one)
        if distance <= ahead or distance > self.stages:
            return False
        if distance == self.stages and self.last_read(one) >= first:
            return False
        begun = self.first_copies(one)
        loaded = {at for part in self.outside for at in part.reads.get(tile, ())}
        # In front of the loop stand the copies of all turns before the first that a turn starts.
        return set(begun) == set(range(distance)) and loaded == ({0} if ahead else set())

    def _waits_for_early(self, group: tuple[Any, ...]) -> bool:
        """Do other copies in front of the loop start before those of the first turn, which bring them along?"""
        early = [at for at, part in enumerate(self.outside) if part.early]
        return not early or early[-1] <= self.first_copies(group)[0][-1]

    def read_ahead(self, group: tuple[Any, ...]) -> int:
        """How many turns ahead a turn reads."""
        return max(at for part in self.inside for tile in group for at in part.reads.get(tile, ()))

    def first_read(self, group: tuple[Any, ...], leads: bool) -> int:
        """The position in the turn where it first reads the last of its versions.

        leads: or a tile that was copied in front of the loop.
        """
        ahead = self.read_ahead(group)
        early = {tile for part in self.outside for tile in part.early} if leads and not ahead else set()
        return next(
            at
            for at, part in enumerate(self.inside)
            if any(ahead in part.reads.get(tile, ()) for tile in group) or not early.isdisjoint(part.shared)
        )

    def last_read(self, group: tuple[Any, ...]) -> int:
        """The position of the last statement that reads the version of the turn that runs."""
        return max(at for at, part in enumerate(self.inside) if any(0 in part.reads.get(tile, ()) for tile in group))

    def first_load(self, group: tuple[Any, ...]) -> int:
        """The position in front of the loop of the first statement that reads."""
        return next(at for at, part in enumerate(self.outside) if any(tile in part.reads for tile in group))

    def copies(self, group: tuple[Any, ...]) -> tuple[int, int, int]:
        """(position of the first, of the last, distance) of the copies that a turn starts."""
        at = [at for at, part in enumerate(self.inside) if any(tile in part.copies for tile in group)]
        distance = {one for part in self.inside for tile in group for one in part.copies.get(tile, ())}
        return min(at), max(at), max(distance)

    def first_copies(self, group: tuple[Any, ...]) -> dict[int, list[int]]:
        """The positions of the copies in front of the loop, by turn."""
        found: dict[int, list[int]] = {}
        for at, part in enumerate(self.outside):
            for turn in sorted({turn for tile in group for turn in part.copies.get(tile, ())}):
                found.setdefault(turn, []).append(at)
        return found
