"""The barriers of a loop whose turns they order (`turn_barriers.py`), and where in the program they stand.

Turn t uses version t % stages; the phases of its barriers alternate from lap to lap.  Where the loop runs again, or
laps are not to be had by shifts, a register holds the parity of the lap of every version, and counts on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tvm import tirx as tir
from tvm.ir import StringImm
from tvm.script.tirx import cuda, ptx

from tilelang_nb.layout.matrix import WARP

from .accesses import waits_for_copies
from .context import LaunchContext
from .operands_ahead import arrays_in, commits
from .place_copies import Turn, under
from .rewrite import as_int32, branch, constant, dtype_of, loop, map_children, sequence, size, statements
from .shared_memory import MBARRIER
from .turn_accesses import Turns, turn_of

MOST_VERSIONS = 31  # bits of the register of laps


@dataclass(frozen=True)
class Barriers:
    """The tiles of a loop, with all versions, and their barriers: one of each kind for a version.

    laps: a register, bit v of it is the parity of the lap of version v; None where the turn says that.
    """

    tiles: tuple[Any, ...]
    stages: int
    full: Any
    empty: Any
    laps: Any


def barriers_of(tiles: tuple[Any, ...], stages: int, again: bool, launch: LaunchContext) -> Barriers:
    """The barriers of a loop.  again: it may run more than once."""
    full, empty = (
        tir.decl_buffer((stages,), "uint64", launch.fresh(name), scope=MBARRIER, layout=None)
        for name in ("full", "empty")
    )
    laps = launch.local(1, "int32", "laps") if again or stages & (stages - 1) else None
    return Barriers(tiles, stages, full, empty, laps)


def begun(body: Any, rings: list[Barriers], launch: LaunchContext) -> Any:
    """The body of the launch with the barriers ready for use."""
    if isinstance(body, tir.AttrStmt) and body.attr_key == "thread_extent":
        return map_children(body, lambda one: begun(one, rings, launch))
    span, zero = rings[0].full.span, tir.const(0, "int32")
    allocated: list[Any] = []
    started: list[Any] = []
    for ring in rings:
        if ring.laps is not None:
            allocated += [tir.AllocBuffer(ring.laps), tir.BufferStore(ring.laps, zero, [zero])]
        allocated += [tir.AllocBuffer(one) for one in (ring.full, ring.empty)]
        for version in range(ring.stages):
            arrivals = (ring.full, launch.threads), (ring.empty, launch.threads // WARP)
            for barrier, count in arrivals:
                place = _place(barrier, tir.const(version, "int32"))
                started.append(tir.Evaluate(ptx["mbarrier.init.shared.b64"](place, tir.const(count, "uint32"))))
    first = tir.IfThenElse(tir.EQ(launch.block_thread, zero), sequence(started), None)
    meet = tir.Evaluate(tir.call_intrin("void", "tirx.tvm_storage_sync", StringImm("shared")))
    return sequence([*allocated, first, meet, body], span)


def _is_of_groups(node: Any) -> bool:
    """Does a statement count groups of copies?"""
    return isinstance(node, tir.Evaluate) and (waits_for_copies(node.value) or commits(node.value))


def _place(barrier: Any, version: Any) -> Any:
    return tir.address_of(tir.BufferLoad(barrier, [version]))


@dataclass(frozen=True)
class Order:
    """Where the barriers of a loop stand.  again: it may run more than once."""

    ring: Barriers
    turns: Turns
    again: bool
    launch: LaunchContext

    @property
    def span(self) -> Any:
        return self.turns.node.span

    def in_front(self, parts: list[Any]) -> list[Any]:
        """What stands in front of the loop; each of the first turns has its copies between its barriers."""
        copies = self.turns.first_copies()
        found: dict[int, list[Any]] = {at: [one] for at, one in enumerate(parts)}
        for turn, positions in copies.items():
            if self.again:
                found[positions[0]][:0] = self._if_exists(turn, self._wait_empty(turn))
            found[positions[-1]] += self._if_exists(turn, self._arrive_full(turn))
        if not self.turns.early:  # those are waited for as a group where they are read at once
            for at in range(copies[0][0], len(parts)):
                if _is_of_groups(parts[at]):
                    found[at] = []
        return [one for some in found.values() for one in some]

    def turns_of(self, turn: Turn) -> Any:
        """The loop; the barriers of the versions are those of its turns."""
        node, turns = self.turns.node, self.turns
        number = turn_of(node)
        ahead = number + (turns.stages - 1)
        first = turn.products[0]
        copies = [self._wait_empty(ahead), *turn.copies, self._arrive_full(ahead)]
        parts = [*turn.before, *turn.after[: first + 1], *under(turn.condition, copies), *turn.after[first + 1 :]]
        last = turns.last_read()
        parts[last : last + 1] = self._released(parts[last], number)
        parts.insert(turns.first_read(), self._wait_full(number))
        if self.ring.laps is not None:
            parts.append(self._next_lap(number))
        return loop(node, body=sequence(parts, node.body.span))

    # ---- the parts of the order

    def _next_lap(self, turn: Any) -> Any:
        """The lap of a version that a turn has waited for is over, at its end."""
        zero = tir.const(0, "int32")
        laps = tir.BufferLoad(self.ring.laps, [zero])
        flipped = tir.bitwise_xor(laps, tir.shift_left(tir.const(1, "int32"), self._bit(turn)))
        return tir.BufferStore(self.ring.laps, flipped, [zero], self.span)

    def _version(self, turn: Any) -> Any:
        """Of a turn, a number or an expression."""
        if isinstance(turn, int):
            return tir.const(turn % self.ring.stages, dtype_of(self.turns.node.loop_var))
        return tir.floormod(turn, self.ring.stages)

    def _bit(self, turn: Any) -> Any:
        return tir.bitwise_and(as_int32(self._version(turn)), tir.const(31, "int32"))

    def _lap(self, turn: Any) -> Any:
        """The parity of the lap of a turn, when its version has been waited for in all laps before."""
        if self.ring.laps is None:
            number = tir.const(turn, dtype_of(self.turns.node.loop_var)) if isinstance(turn, int) else turn
            return as_int32(tir.floormod(tir.floordiv(number, self.ring.stages), 2))
        laps = tir.BufferLoad(self.ring.laps, [tir.const(0, "int32")])
        return tir.bitwise_and(tir.shift_right(laps, self._bit(turn)), tir.const(1, "int32"))

    def _wait_full(self, turn: Any) -> Any:
        place = _place(self.ring.full, self._version(turn))
        return tir.Evaluate(cuda.mbarrier_wait(place, self._lap(turn)), self.span)

    def _wait_empty(self, turn: Any) -> Any:
        """Wait until the turn that had the version before this one has read it."""
        before = tir.bitwise_xor(self._lap(turn), tir.const(1, "int32"))
        place = _place(self.ring.empty, self._version(turn))
        return tir.Evaluate(cuda.mbarrier_wait(place, before), self.span)

    def _arrive_full(self, turn: Any) -> Any:
        place = _place(self.ring.full, self._version(turn))
        return tir.Evaluate(ptx["cp.async.mbarrier.arrive.noinc.shared.b64"](place), self.span)

    def _if_exists(self, turn: int, part: Any) -> list[Any]:
        """A statement for a turn that there may not be."""
        extent = self.turns.node.extent
        known = constant(extent)
        if known is not None and turn < known:
            return [part]
        return [branch(tir.const(turn, dtype_of(extent)) < extent, part, None, self.span)]

    def _released(self, steps: Any, turn: Any) -> list[Any]:
        """The last statement that reads a version; then one lane of each warp says that it has."""
        lane = tir.EQ(tir.floormod(self.launch.block_thread, WARP), tir.const(0, "int32"))
        place = _place(self.ring.empty, self._version(turn))
        arrive = tir.Evaluate(ptx["mbarrier.arrive.shared::cta.b64"](place), self.span)
        meet = tir.Evaluate(tir.call_extern("void", "__syncwarp", tir.const(0xFFFFFFFF, "uint32")), self.span)
        done = sequence([meet, tir.IfThenElse(lane, arrive, None, self.span)], self.span)
        if isinstance(steps, tir.For) and int(steps.kind) == tir.ForKind.UNROLLED and constant(steps.extent):
            # behind the last loads of the last step: its products need no tile
            within = statements(steps.body)
            reads = [at for at, one in enumerate(within) if not arrays_in(one).isdisjoint(self.ring.tiles)]
            if reads and reads[-1] + 1 < len(within):
                end = steps.min + tir.const(size(steps.extent) - 1, dtype_of(steps.loop_var))
                last = tir.EQ(steps.loop_var, end)
                within.insert(reads[-1] + 1, tir.IfThenElse(last, done, None, self.span))
                return [loop(steps, body=sequence(within, steps.body.span))]
        return [steps, done]
