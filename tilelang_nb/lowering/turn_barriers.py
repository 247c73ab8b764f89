"""order-turns: the turns of a pipelined loop are ordered by barriers in shared memory, not by one of the whole block.

Before: a turn waits for its copies (cp.async.wait_group) and starts those for a later turn; a barrier of the block has
to stand between the two, in every turn.  After: each version of the tiles that a turn uses together has two barriers.

    full     every thread arrives when its copies into the version have landed; all wait before they read it
    empty    one lane of each warp arrives when the warp has read it; all wait before they copy into it again

Warps then drift apart, by up to a turn, instead of meeting in each.  Turn t uses version t % stages; the phases of its
barriers alternate from lap to lap, and one register holds the parity of the lap of every version.  It counts on when
the loop runs again, so that a loop inside a loop needs no more.

It is done where `tl.turns_by_mbarriers` asks for it, the whole block runs the loop, and all that the loop writes to
shared memory are these copies: then no barrier of the block is left in a turn.  Other loops stay as they are.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import tvm
import tvm_ffi
from tvm import tirx as tir
from tvm.ir import StringImm
from tvm.script.tirx import cuda, ptx

from tilelang_nb.layout.matrix import WARP

from .accesses import starts_copy, waits_for_copies
from .architecture import capability
from .barriers import WARP_GROUPS, thread_axes
from .context import LaunchContext
from .memory_overlap import SELF_ORDERED
from .operands_ahead import arrays_in, commits
from .plan_pipelines import FIRST, VERSIONS, copies_together, ordered_by_barriers
from .rewrite import (
    as_int32,
    branch,
    constant,
    dtype_of,
    has,
    loop,
    map_children,
    nothing,
    scope,
    sequence,
    size,
    statements,
)
from .shared_memory import MBARRIER, TILES, needed_shared_memory, shared_memory_limit
from .signals import TURNS
from .turn_accesses import Turns, parts_of
from .uniformity import Uniformity, agreed_registers


def order_turns(function: Any, launch: LaunchContext) -> Any:
    """The stage.  `launch.facts[SELF_ORDERED]` gets the tiles, `launch.facts[TURNS]` the names of the barriers."""
    plans = {plan.loop.loop_var: plan for plan in launch.facts.get("pipelines", ()) if plan.stages > 1}
    if not ordered_by_barriers(launch) or capability(launch.arch) < FIRST or not plans or launch.threads == 1:
        return function
    threads = dict(thread_axes(function.body))
    rings = _Rings(plans, Uniformity(function.body, threads, agreed=agreed_registers(launch)), function.body, launch)
    body = rings.statement(function.body, False)
    if not rings.made:
        return function
    body, names = rings.begun(body), {buffer.name for ring in rings.made for buffer in (ring.full, ring.empty)}
    if needed_shared_memory(body, names) > shared_memory_limit(launch.arch):
        return function
    launch.facts[TURNS] = names
    launch.facts[SELF_ORDERED] = {tile for ring in rings.made for tile in ring.tiles}
    return function.with_body(body)


@dataclass(frozen=True)
class _Ring:
    """Tiles that are copied together and used together, and their barriers: one of each kind for a version.

    laps: a register of the loop, bit v of it is the parity of the lap of version v; None where the turn says that.
    """

    tiles: tuple[Any, ...]
    stages: int
    full: Any
    empty: Any
    laps: Any


@dataclass
class _Rings:
    """All loops of a launch that are changed."""

    plans: dict[Any, Any]
    uniformity: Uniformity
    whole: Any
    launch: LaunchContext
    made: list[_Ring] = field(default_factory=list)

    def statement(self, node: Any, again: bool) -> Any:
        """A statement that all threads of the block execute.  again: more than once."""
        if isinstance(node, tir.SeqStmt) or (isinstance(node, tir.For) and node.loop_var in self.plans):
            parts = statements(node)
            for at in range(len(parts) - 1, -1, -1):
                one = parts[at]
                if isinstance(one, tir.For) and one.loop_var in self.plans:
                    ordered = self._ordered(parts[:at], one, again)
                    if ordered is not None:
                        parts[: at + 1] = ordered
            changed = [one if self._is_pipelined(one) else self.statement(one, again) for one in parts]
            same = len(changed) == len(statements(node)) and all(a is b for a, b in zip(changed, statements(node)))
            return node if same else sequence(changed, node.span)
        if isinstance(node, tir.For | tir.While):
            return node if self.uniformity.divergent_loop(node) else self._within(node, True)
        if isinstance(node, tir.IfThenElse):
            return self._within(node, again) if self.uniformity.is_uniform(node.condition) else node
        if isinstance(node, tir.AttrStmt) and node.attr_key != WARP_GROUPS:
            return self._within(node, again)
        return node

    def _within(self, node: Any, again: bool) -> Any:
        return map_children(node, lambda one: self.statement(one, again))

    def _is_pipelined(self, node: Any) -> bool:
        return isinstance(node, tir.For) and node.loop_var in self.plans

    def begun(self, body: Any) -> Any:
        """The body of the launch with the barriers ready for use."""
        if isinstance(body, tir.AttrStmt) and body.attr_key == "thread_extent":
            return map_children(body, self.begun)
        span, zero = self.made[0].full.span, tir.const(0, "int32")
        warps = -(-self.launch.threads // WARP)
        allocated: list[Any] = []
        started: list[Any] = []
        for laps in dict.fromkeys(ring.laps for ring in self.made if ring.laps is not None):
            allocated += [tir.AllocBuffer(laps), tir.BufferStore(laps, zero, [zero])]
        for ring in self.made:
            allocated += [tir.AllocBuffer(one) for one in (ring.full, ring.empty)]
            for version in range(ring.stages):
                for barrier, count in ((ring.full, self.launch.threads), (ring.empty, warps)):
                    place = _place(barrier, tir.const(version, "int32"))
                    started.append(tir.Evaluate(ptx["mbarrier.init.shared.b64"](place, tir.const(count, "uint32"))))
        first = tir.IfThenElse(tir.EQ(self.launch.block_thread, zero), sequence(started), None)
        meet = tir.Evaluate(tir.call_intrin("void", "tirx.tvm_storage_sync", StringImm("shared")))
        return sequence([*allocated, first, meet, body], span)

    # ---- one loop ----

    def _ordered(self, before: list[Any], node: Any, again: bool) -> list[Any] | None:
        """The loop, with what stands before it, in the new order; None where it has to stay.  again: it may run more
        than once.
        """
        plan = self.plans[node.loop_var]
        versions = self.launch.facts.get(VERSIONS, {})
        tiles = tuple(versions[tile] for tile in plan.tiles if tile in versions)
        if len(tiles) != len(plan.tiles) or any(size(tile.shape[0]) != plan.stages for tile in tiles):
            return None
        # Products of warp groups read tiles at a time of their own.
        other = {*self.launch.orders, *self.launch.facts.get(TILES, ())}
        if plan.stages > 31 or plan.left_early or not other.isdisjoint(tiles):
            return None
        if self.uniformity.divergent_loop(node) or has(node.body, (tir.Continue, tir.Break)):
            return None
        if not _stores_registers_alone(node.body, tiles):
            return None
        inside = parts_of(statements(node.body), tiles, node, plan.stages, self.launch.analyzer, True)
        outside = parts_of(before, tiles, node, plan.stages, self.launch.analyzer, False)
        if inside is None or outside is None or not self._are_all(tiles, [*before, node]):
            return None
        turns = Turns(node, plan.stages, inside, outside, copies_together(self.launch))
        groups = turns.groups(tiles)
        if groups is None:
            return None
        # The number of the turn says the parity where the loop runs once.
        laps = self.launch.local(1, "int32", "laps") if again else None
        rings = [self._ring(group, plan.stages, laps) for group in groups]
        begin, body = list(before), statements(node.body)
        edits = _Edits(body), _Edits(begin)
        for number, (ring, group) in enumerate(zip(rings, groups)):
            _Order(ring, turns, group, number == 0, again, self.launch).write(*edits)
        if again:
            _Order(rings[0], turns, groups[0], True, again, self.launch).count(*edits)
        self.made += rings
        kept = [one for one in edits[0].result() if not _is_of_groups(one)]
        if not any(part.early for part in outside):  # those are waited for as a group where they are read at once
            start = min(at for at, part in enumerate(outside) if part.copies)
            for at in range(start, len(begin)):
                begin[at] = nothing(node.span) if _is_of_groups(begin[at]) else begin[at]
        return [*edits[1].result(), loop(node, body=sequence(kept, node.body.span))]

    def _are_all(self, tiles: tuple[Any, ...], parts: list[Any]) -> bool:
        """Are these statements all that use the tiles?"""
        return all(_mentions(self.whole, tile) == sum(_mentions(one, tile) for one in parts) for tile in tiles)

    def _ring(self, tiles: tuple[Any, ...], stages: int, laps: Any) -> _Ring:
        launch = self.launch
        full, empty = (
            tir.decl_buffer((stages,), "uint64", launch.fresh(name), scope=MBARRIER, layout=None)
            for name in ("full", "empty")
        )
        return _Ring(tiles, stages, full, empty, laps)


def _mentions(node: Any, tile: Any) -> int:
    found = 0

    def note(var: Any) -> None:
        nonlocal found
        found += var.same_as(tile)

    tvm_ffi.structural_walk(node, (tvm.ir.Var, note))
    allocated = []
    tvm_ffi.structural_walk(
        node, (tir.AllocBuffer, lambda one: allocated.append(one) if one.buffer.same_as(tile) else None)
    )
    return found - len(allocated)


def _stores_registers_alone(body: Any, tiles: tuple[Any, ...]) -> bool:
    """Does a turn write, beside its copies, no shared memory?  Then only its copies and loads need an order."""
    stored: list[Any] = []
    tvm_ffi.structural_walk(body, (tir.BufferStore, lambda one: stored.append(one.buffer)))

    def call(one: Any) -> Any:
        name = getattr(one.op, "name", "")
        if name == "tirx.ptx.ldmatrix":
            return tvm_ffi.WalkResult.SKIP
        if starts_copy(one):
            stored.extend(arrays_in(one.args[0]))
            return tvm_ffi.WalkResult.SKIP
        if name in ("tirx.address_of", "tirx.tvm_access_ptr", "tirx.buffer_data", "tirx.tvm_storage_sync"):
            stored.extend(arrays_in(one) or [None])
        return None

    tvm_ffi.structural_walk(body, (tvm.ir.Call, call), order="pre")
    return all(one is not None and (one in tiles or not scope(one).startswith("shared")) for one in stored)


def _is_of_groups(node: Any) -> bool:
    """Does a statement count groups of copies?"""
    return isinstance(node, tir.Evaluate) and (waits_for_copies(node.value) or commits(node.value))


def _place(barrier: Any, version: Any) -> Any:
    return tir.address_of(tir.BufferLoad(barrier, [version]))


class _Edits:
    """Statements to be put in front of and behind those at positions of a sequence, or in their place."""

    def __init__(self, parts: list[Any]):
        self.parts = parts
        self.before: dict[int, list[Any]] = {}
        self.after: dict[int, list[Any]] = {}

    def put_before(self, position: int, *given: Any) -> None:
        self.before.setdefault(position, []).extend(given)

    def put_after(self, position: int, *given: Any) -> None:
        self.after.setdefault(position, []).extend(given)

    def result(self) -> list[Any]:
        found: list[Any] = []
        for at, one in enumerate(self.parts):
            found += [*self.before.get(at, ()), one, *self.after.get(at, ())]
        return found


@dataclass(frozen=True)
class _Order:
    """Where the barriers of one ring stand.  leads: it is the first of its loop that a turn waits for."""

    ring: _Ring
    turns: Turns
    group: tuple[Any, ...]
    leads: bool
    again: bool
    launch: LaunchContext

    def write(self, inside: _Edits, outside: _Edits) -> None:
        turns, group = self.turns, self.group
        span = turns.node.span
        ahead = turns.read_ahead(group)
        # ---- in front of the loop: copies of the first turns, and loads of the first one where they stand ahead
        for turn, positions in turns.first_copies(group).items():
            if self.again:
                outside.put_before(positions[0], *self._if_turn(turn, [self._wait_empty(turn, span)], span))
            outside.put_after(positions[-1], *self._if_turn(turn, [self._arrive_full(turn, span)], span))
        if ahead:
            outside.put_before(turns.first_load(group), *self._if_turn(0, [self._wait_full(0, span)], span))
        # ---- in a turn
        turn = turns.number
        read = turns.first_read(group, self.leads)
        waiting = [self._wait_full(turn + ahead if ahead else turn, span)]
        inside.put_before(read, *(self._if_turn(turn + ahead, waiting, span) if ahead else waiting))
        first, last, distance = turns.copies(group)
        copying = self._around_copies(inside, first, last, turn + distance)
        if copying is not None and distance == turns.stages and set(turns.inside[first].copies) <= set(group):
            # The version has been read a moment ago, perhaps not by all warps: the copies wait for that at the end.
            inside.parts[first] = nothing(span)
            inside.put_after(len(inside.parts) - 1, copying)
        elif copying is not None:
            inside.parts[first] = copying
        self._release(inside, turns.last_read(group), turn, span)

    def count(self, inside: _Edits, outside: _Edits) -> None:
        """The lap of a version that a turn has waited for is over, at its end."""
        ahead, span = self.turns.read_ahead(self.group), self.turns.node.span
        if ahead:
            outside.put_after(len(outside.parts) - 1, *self._if_turn(0, [self._next_lap(0, span)], span))
            inside.put_after(
                len(inside.parts) - 1,
                *self._if_turn(self.turns.number + ahead, [self._next_lap(self.turns.number + ahead, span)], span),
            )
        else:
            inside.put_after(len(inside.parts) - 1, self._next_lap(self.turns.number, span))

    # ---- the parts of the order ----

    def _next_lap(self, turn: Any, span: Any) -> Any:
        zero = tir.const(0, "int32")
        laps = tir.BufferLoad(self.ring.laps, [zero])
        flipped = tir.bitwise_xor(laps, tir.shift_left(tir.const(1, "int32"), self._bit(turn)))
        return tir.BufferStore(self.ring.laps, flipped, [zero], span)

    def _version(self, turn: Any) -> Any:
        """Of a turn, a number or an expression."""
        if isinstance(turn, int):
            return tir.const(turn % self.ring.stages, dtype_of(self.turns.node.loop_var))
        return tir.floormod(turn, self.ring.stages)

    def _lap(self, turn: Any) -> Any:
        """The parity of the lap of a turn, when its version has been waited for in all laps before."""
        stages, dtype = self.ring.stages, dtype_of(self.turns.node.loop_var)
        if self.ring.laps is None:
            number = tir.const(turn, dtype) if isinstance(turn, int) else turn
            return as_int32(tir.floormod(tir.floordiv(number, stages), 2))
        laps = tir.BufferLoad(self.ring.laps, [tir.const(0, "int32")])
        return tir.bitwise_and(tir.shift_right(laps, self._bit(turn)), tir.const(1, "int32"))

    def _bit(self, turn: Any) -> Any:
        return tir.bitwise_and(as_int32(self._version(turn)), tir.const(31, "int32"))

    def _wait_full(self, turn: Any, span: Any) -> Any:
        return tir.Evaluate(cuda.mbarrier_wait(_place(self.ring.full, self._version(turn)), self._lap(turn)), span)

    def _wait_empty(self, turn: Any, span: Any) -> Any:
        """Wait until the turn that had the version before this one has read it."""
        version = self._version(turn)
        if self.ring.laps is None:
            before = self._lap(turn - self.ring.stages)
        else:
            before = tir.bitwise_xor(self._lap(turn), tir.const(1, "int32"))
        return tir.Evaluate(cuda.mbarrier_wait(_place(self.ring.empty, version), before), span)

    def _arrive_full(self, turn: Any, span: Any) -> Any:
        place = _place(self.ring.full, self._version(turn))
        return tir.Evaluate(ptx["cp.async.mbarrier.arrive.noinc.shared.b64"](place), span)

    def _if_turn(self, turn: Any, parts: list[Any], span: Any) -> list[Any]:
        """Statements for a turn that there may not be."""
        extent = constant(self.turns.node.extent)
        if isinstance(turn, int) and extent is not None and turn < extent:
            return parts
        return [branch(self._exists(turn), sequence(parts, span), None, span)]

    def _exists(self, turn: Any) -> Any:
        extent = self.turns.node.extent
        given = tir.const(turn, dtype_of(extent)) if isinstance(turn, int) else turn
        return given < extent

    def _around_copies(self, inside: _Edits, first: int, last: int, turn: Any) -> Any:
        """The copies between their barriers, where they are one statement under the right condition; else puts the
        barriers around them, and None.
        """
        parts, span = inside.parts, inside.parts[first].span
        waiting, arriving = self._wait_empty(turn, span), self._arrive_full(turn, span)
        if first == last and self._is_under(parts[first], turn):
            node = parts[first]
            return branch(node.condition, sequence([waiting, node.then_case, arriving], span), None, node.span)
        inside.put_before(first, *self._if_turn(turn, [waiting], span))
        inside.put_after(last, *self._if_turn(turn, [arriving], span))
        return None

    def _is_under(self, node: Any, turn: Any) -> bool:
        """Is a statement an `if` whose condition is that the turn exists?"""
        if not isinstance(node, tir.IfThenElse) or node.else_case is not None or not isinstance(node.condition, tir.LT):
            return False
        mine, found = self._exists(turn), node.condition
        difference = (mine.b - mine.a) - (found.b - found.a)
        return bool(constant(self.launch.analyzer.simplify(difference)) == 0)

    def _release(self, inside: _Edits, position: int, turn: Any, span: Any) -> None:
        """One lane of each warp says that it has read a version."""
        lane = tir.EQ(tir.floormod(self.launch.block_thread, WARP), tir.const(0, "int32"))
        place = _place(self.ring.empty, self._version(turn))
        arrive = tir.Evaluate(ptx["mbarrier.arrive.shared::cta.b64"](place), span)
        meet = tir.Evaluate(tir.call_extern("void", "__syncwarp", tir.const(0xFFFFFFFF, "uint32")), span)
        done = sequence([meet, tir.IfThenElse(lane, arrive, None, span)], span)
        steps = inside.parts[position]
        if isinstance(steps, tir.For) and int(steps.kind) == tir.ForKind.UNROLLED and constant(steps.extent):
            # behind the last loads of the last step: its products need no tile
            within = statements(steps.body)
            reads = [at for at, one in enumerate(within) if not arrays_in(one).isdisjoint(self.ring.tiles)]
            if reads and reads[-1] + 1 < len(within):
                end = steps.min + tir.const(size(steps.extent) - 1, dtype_of(steps.loop_var))
                last = tir.EQ(steps.loop_var, end)
                within.insert(reads[-1] + 1, tir.IfThenElse(last, done, None, span))
                inside.parts[position] = loop(steps, body=sequence(within, steps.body.span))
                return
        inside.put_after(position, done)
