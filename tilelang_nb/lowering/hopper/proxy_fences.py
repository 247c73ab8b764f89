"""Fences between ordinary accesses of a tile and bulk copies that overwrite it.

Before: a thread program with its barriers.  After: where threads loaded from such a tile, or stored to it, a
fence.proxy.async stands before the barrier or arrival that gives the tile back: barriers alone order ordinary accesses
with each other, not with bulk copies.  On an H200 a copy overwrote what loads with bank conflicts were still reading.

What products of warp groups and bulk stores read needs none: it is over when they have been waited for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import tvm
import tvm_ffi
from tvm import tirx as tir
from tvm.script.tirx import ptx
from tvm_ffi import WalkResult

from ..accesses import BULK_COPY, pointed, starts_bulk_load, starts_copy, waits_for_copies
from ..context import LaunchContext
from ..index_sums import identity
from ..memory_overlap import Memory, tracked_memory
from ..rewrite import constant, has, map_children, sequence
from ..uniformity import Uniformity, agreed_registers
from .tensor_maps import MOVED

BLOCK_COPY = "tl_copy_to_block"
# Calls whose pointers are for asynchronous operations; mbarriers are no tiles.
_ASYNCHRONOUS = (BULK_COPY, BLOCK_COPY, "tl_wgmma_descriptor", "tirx.ptx.mbarrier", "tirx.cuda.mbarrier")
_BLOCK_BARRIERS = ("tirx.tvm_storage_sync", "__syncthreads")
# Calls after which other threads may know what these have done.
_TELLING = (
    *(*_BLOCK_BARRIERS, "tirx.ptx.bar_sync", "tirx.ptx.bar_arrive", "tirx.ptx.barrier_cluster_arrive"),
    *("tirx.ptx.mbarrier_arrive", "tirx.ptx.cp_async_mbarrier_arrive", "tl_arrive_at_block", "tl_expect_at_block"),
)
_FENCE = "tirx.ptx.fence_proxy"
_WARP_BARRIER = "__syncwarp"


def fence_bulk_copies(func: Any, launch: LaunchContext) -> Any:
    """The program with the fences that it needs; the program itself where there are none."""
    if not any(moved.loading for moved in launch.facts.get(MOVED, ())) and launch.cluster == (1, 1, 1):
        return func
    reader = _Reader(tracked_memory(func, set()))
    program = _Program(reader, lambda _: True)
    program.part(func.body)
    if not program.both_ways():
        return func
    threads: list[Any] = []
    tvm_ffi.structural_walk(func.body, (tir.AttrStmt, lambda node: threads.extend(_thread_axis(node))))
    uniformity = Uniformity(func.body, threads, agreed=agreed_registers(launch))
    program = _Program(reader, uniformity.is_uniform)
    whole = program.part(func.body)
    if launch.cluster == (1, 1, 1):  # copies of other blocks do not wait for the barriers of this one
        program.guards = {copy: _guard(copy) for copy in program.copies}
    program.flow(whole, frozenset())
    return func.with_body(_Rebuilt(program.fenced).statement(whole)) if program.fenced else func


def _thread_axis(node: Any) -> list[Any]:
    is_thread = node.attr_key == "thread_extent" and str(node.node.thread_tag).startswith("threadIdx")
    return [node.node.var] if is_thread else []


@dataclass(eq=False)
class _Part:
    """A statement.  touched: memory that it accesses in the ordinary way, without the statements inside it.

    copied: what bulk copies that it starts write.
    tells: other threads may know afterwards what was done before.
    fence, block, warp: is it a fence, a barrier of the block, or one of a warp?
    lands: does it wait for cp.async?  apart: is it an `if` that only some of the threads enter?
    turns, jumps: is it a loop of several turns, and one that may leave a turn early?
    loops, branches: around it; of branches those of an `if` that is apart, with the side.
    """

    node: Any
    position: int
    around: _Part | None
    loops: tuple[Any, ...]
    branches: tuple[tuple[Any, int], ...]
    touched: frozenset[Memory] = frozenset()
    copied: frozenset[Memory] = frozenset()
    tells: bool = False
    fence: bool = False
    block: bool = False
    warp: bool = False
    lands: bool = False
    apart: bool = False
    turns: bool = False
    jumps: bool = False
    parts: list[_Part] = field(default_factory=list)

    @cached_property
    def every(self) -> tuple[_Part, ...]:
        """It and all inside it that do anything of what is asked here."""
        inside = tuple(one for part in self.parts for one in part.every)
        mine = self.touched or self.copied or self.tells or self.fence or self.lands
        return (self, *inside) if mine else inside


class _Reader:
    """What expressions do."""

    def __init__(self, memory: dict[Any, Memory]):
        self.memory = {identity(buffer): found for buffer, found in memory.items() if found.is_shared}

    def note(self, part: _Part, *expressions: Any) -> None:
        touched: set[Memory] = set()
        copied: set[Memory] = set()

        def load(node: Any) -> None:
            found = self.memory.get(identity(node.source))
            if found is not None:
                touched.add(found)

        def call(node: Any) -> Any:
            name = getattr(node.op, "name", "")
            if name in ("tirx.call_extern", "tirx.call_pure_extern"):
                name = str(node.args[0].value)
            part.fence |= name.startswith(_FENCE)
            part.warp |= name.startswith(_WARP_BARRIER)
            part.tells |= name.startswith(_TELLING)
            part.block |= name.startswith(_BLOCK_BARRIERS)
            part.lands |= waits_for_copies(node)
            if starts_bulk_load(node) or name == BLOCK_COPY:
                target = pointed(node.args[name == BLOCK_COPY])  # of a call by name the first operand is its name
                found = self.memory.get(identity(target.source)) if target is not None else None
                copied.update([] if found is None else [found])
            return WalkResult.SKIP if name.startswith(_ASYNCHRONOUS) else None

        for expression in expressions:
            handlers = [(tvm.ir.Call, call), (tvm.ir.TensorLoad, load)]
            tvm_ffi.structural_walk(expression, handlers, order="pre")
        part.touched, part.copied = part.touched | touched, frozenset(copied)

    def store(self, part: _Part, node: Any) -> None:
        self.note(part, node.value, *node.indices)
        found = self.memory.get(identity(node.buffer))
        if found is not None:
            part.touched |= {found}


def _guard(copy: _Part) -> _Part | None:
    """The barrier of the block that all threads come to before the copy starts, in every turn of the loop around."""
    inner = copy
    while inner.around is not None and not inner.around.turns:
        if isinstance(inner.around.node, tir.SeqStmt):
            before = inner.around.parts[: inner.around.parts.index(inner)]
            found = next((one for one in reversed(before) if one.block), None)
            if found is not None:
                return found
        inner = inner.around
    return None


class _Program:
    """parts: in the order of the text.  copies: those of them that start bulk copies into shared memory.

    guards: of the copies, where these need to wait for no more.  fenced: parts that a fence goes before.
    """

    def __init__(self, reader: _Reader, is_uniform: Callable[[Any], bool]):
        self.reader, self.is_uniform = reader, is_uniform
        self.parts: list[_Part] = []
        self.copies: list[_Part] = []
        self.guards: dict[_Part, _Part | None] = {}
        self.fenced: set[_Part] = set()
        self.landing: frozenset[Memory] = frozenset()  # what cp.async writes

    def part(
        self, node: Any, around: _Part | None = None, loops: tuple[Any, ...] = (), branches: tuple[Any, ...] = ()
    ) -> _Part:
        """A statement with those inside it.  around, loops, branches: as of `_Part`."""
        part = _Part(node, len(self.parts), around, loops, branches)
        self.parts.append(part)
        if isinstance(node, tir.SeqStmt):
            part.parts = [self.part(one, part, loops, branches) for one in node.seq]
        elif isinstance(node, tir.For | tir.While):
            bounds = (node.min, node.extent) if isinstance(node, tir.For) else (node.condition,)
            self.reader.note(part, *bounds)
            part.jumps = has(node.body, tir.Break) or has(node.body, tir.Continue)
            part.turns = not (isinstance(node, tir.For) and constant(node.extent) == 1)
            part.parts = [self.part(node.body, part, (*loops, part) if part.turns else loops, branches)]
        elif isinstance(node, tir.IfThenElse):
            self.reader.note(part, node.condition)
            part.apart = not self.is_uniform(node.condition)
            for side, body in enumerate((node.then_case, node.else_case)):
                if body is not None:
                    inside = (*branches, (part, side)) if part.apart else branches
                    part.parts.append(self.part(body, part, loops, inside))
        elif isinstance(node, tir.AttrStmt):
            part.parts = [self.part(node.body, part, loops, branches)]
        elif isinstance(node, tir.BufferStore):
            self.reader.store(part, node)
        elif isinstance(node, tir.Evaluate | tir.Bind):
            self.reader.note(part, node.value)
            if starts_copy(node.value):
                self.landing |= part.touched
        if part.copied:
            self.copies.append(part)
        return part

    def both_ways(self) -> bool:
        """Is there memory that bulk copies write, and threads access in the ordinary way?"""
        targets = {target for copy in self.copies for target in copy.copied}
        touched = {memory for part in self.parts for memory in part.touched} if targets else set()
        return any(memory.overlaps(target) for memory in touched for target in targets)

    # ---- which fences ----
    def flow(self, part: _Part, pending: frozenset[Memory]) -> frozenset[Memory]:
        """Decide on the fences in a part.  pending: what was accessed since the last fence; the same after it."""
        if part.turns:
            return self._loop(part, pending)
        if isinstance(part.node, tir.IfThenElse):
            pending |= part.touched
            if part.apart and self._needs(part, pending):
                self.fenced.add(part)
                pending = frozenset()
            after = [self.flow(one, pending) for one in part.parts]
            return frozenset().union(*after, *([pending] if len(after) == 1 else []))
        if part.parts:
            pending |= part.touched
            for one in part.parts:
                pending = self.flow(one, pending)
            return pending
        if part.fence:
            return frozenset()
        if self._needs(part, pending):
            self.fenced.add(part)
            pending = frozenset()
        return pending | part.touched | (self.landing if part.lands else frozenset())

    def _loop(self, part: _Part, pending: frozenset[Memory]) -> frozenset[Memory]:
        pending |= part.touched
        touched = frozenset().union(*(one.touched for one in part.every))
        if not any(one.tells or one.fence or one.lands or one.copied for one in part.every):
            return pending | touched
        (body,) = part.parts
        left = self.flow(body, frozenset()) | part.touched | (touched if part.jumps else frozenset())
        self.flow(body, left)  # of the turn before
        fenced = set(self.fenced)
        after = self.flow(body, pending | left)
        if self.fenced != fenced:  # for what was before the loop: once in front of it, not in every turn
            self.fenced, pending = fenced | {part}, part.touched
            after = self.flow(body, left)
        at_least_once = isinstance(part.node, tir.For) and (constant(part.node.extent) or 0) > 0
        return after | (left if part.jumps else frozenset()) | (frozenset() if at_least_once else pending)

    def _needs(self, part: _Part, pending: frozenset[Memory]) -> bool:
        """Would a copy, or somebody who then starts one, come behind what is pending without a fence?"""
        if not pending:
            return False
        events = [one for one in part.every if one.tells or one.copied]
        return any(
            any(memory.overlaps(target) for memory in pending for target in copy.copied)
            and any(one is copy or (one.tells and self._follows(copy, one)) for one in events)
            for copy in self.copies
        )

    def _follows(self, copy: _Part, part: _Part) -> bool:
        """May the copy start after the part, with no better place for a fence between them?"""
        guard = self.guards.get(copy)
        if guard is not None and set(guard.branches) <= set(part.branches):
            return guard.position <= part.position < copy.position
        if copy.position > part.position or set(copy.loops) & set(part.loops):
            return True
        sides = dict(part.branches)
        beside = any(sides.get(one, side) != side for one, side in copy.branches)  # threads of another role
        return beside and (bool(copy.loops) or self._many(copy))

    def _many(self, copy: _Part) -> bool:
        """Do several copies fill its target?"""
        targets = [one for other in self.copies for one in other.copied]
        return sum(any(mine.overlaps(one) for mine in copy.copied) for one in targets) > len(copy.copied)


class _Rebuilt:
    """The program with its fences."""

    def __init__(self, fenced: set[_Part]):
        self.fenced = fenced

    def statement(self, part: _Part) -> Any:
        node = part.node
        if not isinstance(node, tir.SeqStmt):
            made = self._inside(part)
            return sequence([_fence(node.span), made], node.span) if part in self.fenced else made
        every: list[Any] = []
        for at, one in enumerate(part.parts):
            if one in self.fenced:
                behind_warps = at > 0 and part.parts[at - 1].warp  # the lanes come to the fence first
                every.insert(len(every) - behind_warps, _fence(one.node.span))
            every.append(self._inside(one))
        return sequence(every, node.span)

    def _inside(self, part: _Part) -> Any:
        """A statement without the fence before it."""
        if isinstance(part.node, tir.SeqStmt):
            return self.statement(part)
        waiting = iter(part.parts)
        return map_children(part.node, lambda _: self.statement(next(waiting))) if part.parts else part.node


def _fence(span: Any) -> Any:
    return tir.Evaluate(ptx["fence.proxy.async.shared::cta"](), span)
