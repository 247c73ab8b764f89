"""Which version of its tiles each statement of a turn, and in front of the loop, reads and copies.

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
from .rewrite import Load, constant, scope


class BlockBarrier(Exception):
    """Why the barrier of the block stays in the turns of a loop."""


@dataclass(frozen=True)
class Part:
    """A statement.  reads, copies: of which turns, by tile; in the loop as distances from the turn that runs.

    early: it starts asynchronous copies into other tiles.  shared: all tiles that it mentions.
    """

    reads: dict[Any, set[int]]
    copies: dict[Any, set[int]]
    early: set[Any]
    shared: set[Any]


def parts_in_front(nodes: list[Any], tiles: tuple[Any, ...]) -> list[Part]:
    """What the statements in front of a loop do; BlockBarrier where a tile is used in another way."""
    return [_part(node, tiles, constant) for node in nodes]


def parts_of_turn(nodes: list[Any], tiles: tuple[Any, ...], loop: Any, stages: int, analyzer: Analyzer) -> list[Part]:
    """The same for the statements of a turn."""
    turn = turn_of(loop)
    bound: dict[Any, Any] = {}

    def distance(version: Any) -> int | None:
        version = bound.get(version, version) if isinstance(version, tvm.ir.Var) else version
        if not isinstance(version, tir.FloorMod) or constant(version.b) != stages:
            return None
        ahead = constant(analyzer.simplify(version.a - turn))
        return None if ahead is None else ahead % stages

    found = []
    for node in nodes:
        if isinstance(node, tir.Bind):
            bound[node.var] = node.value
        found.append(_part(node, tiles, distance))
    return found


def turn_of(loop: Any) -> Any:
    """The number of the turn, from 0."""
    return loop.loop_var if constant(loop.min) == 0 else loop.loop_var - loop.min


def _part(node: Any, tiles: tuple[Any, ...], distance: Any) -> Part:
    targets: list[Any] = []
    loads: list[Any] = []
    stored: list[Any] = []
    used: set[Any] = set()

    def call(one: Any) -> None:
        if starts_copy(one):
            targets.append(pointed(one.args[0]))

    def store(one: Any) -> None:
        stored.append(one.buffer)

    callbacks = [(tvm.ir.Call, call), (Load, loads.append), (tir.BufferStore, store), (tvm.ir.Var, used.add)]
    tvm_ffi.structural_walk(node, callbacks, order="pre")
    for tile in stored:
        if tile in tiles:
            raise BlockBarrier(f"not only copies fill `{tile.name}`")
    reads: dict[Any, set[int]] = {}
    copies: dict[Any, set[int]] = {}
    for load in loads:
        if load.source not in tiles:
            continue
        at = distance(load.indices[0])
        if at is None:
            raise BlockBarrier(f"`{load.source.name}` is used in several turns")
        kind = copies if any(load.same_as(target) for target in targets) else reads
        kind.setdefault(load.source, set()).add(at)
    early = {target.source for target in targets if target.source not in tiles}
    shared = {var for var in used if isinstance(var.ty, tir.BufferType) and scope(var).startswith("shared")}
    return Part(reads, copies, early, shared)


@dataclass(frozen=True)
class Turns:
    """A loop whose turns read versions of tiles that were copied `stages - 1` turns before.

    tiles: of these copies, with all versions.  inside, outside: the statements of a turn, and those in front of the
    loop.  copying: the position of the copies in the turn.
    """

    node: Any
    stages: int
    tiles: tuple[Any, ...]
    inside: list[Part]
    outside: list[Part]
    copying: int

    def check(self) -> None:
        """BlockBarrier, unless every version is copied, read by its turn and by that alone, and then copied again."""
        for tile in self.tiles:
            reads = {at for part in self.inside for at in part.reads.get(tile, ())}
            copied = [at for at, part in enumerate(self.inside) if tile in part.copies]
            loaded = any(tile in part.reads for part in self.outside)
            if reads != {0} or loaded:
                raise BlockBarrier(f"`{tile.name}` is not read in its turn alone")
            begun = {turn for part in self.outside for turn in part.copies.get(tile, ())}
            whole = copied == [self.copying] and self.inside[self.copying].copies[tile] == {self.stages - 1}
            # In front of the loop stand the copies of all turns before the first that a turn starts.
            if not whole or begun != set(range(self.stages - 1)):
                raise BlockBarrier(f"`{tile.name}` is not copied once for each turn")
        if any(part.early for part in self.inside):
            raise BlockBarrier("a turn starts other copies")
        # Other copies in front of the loop have to start before those of the first turn, which bring them along.
        early = [at for at, part in enumerate(self.outside) if not part.early.isdisjoint(self.early)]
        if early and early[-1] > self.first_copies()[0][-1]:
            raise BlockBarrier("other copies start behind those of the first turn")

    @property
    def early(self) -> set[Any]:
        """Other tiles whose asynchronous copies start in front of the loop, and that are used in it or right before."""
        start = self.first_copies()[0][0]
        used = {tile for part in (*self.outside[start:], *self.inside) for tile in part.shared}
        return {tile for part in self.outside for tile in part.early} & used

    def first_read(self) -> int:
        """The position in the turn where it first reads its version, or a tile of `early`."""
        early = self.early
        return next(at for at, part in enumerate(self.inside) if part.reads or not early.isdisjoint(part.shared))

    def last_read(self) -> int:
        """The position of the last statement that reads the version of the turn."""
        return max(at for at, part in enumerate(self.inside) if part.reads)

    def first_copies(self) -> dict[int, list[int]]:
        """The positions of the copies in front of the loop, by turn."""
        found: dict[int, list[int]] = {}
        for at, part in enumerate(self.outside):
            for turn in sorted({turn for turns in part.copies.values() for turn in turns}):
                found.setdefault(turn, []).append(at)
        return found
