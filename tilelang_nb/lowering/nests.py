"""The places of a legal launch where threads divide work: loop nests, operations, and plain statements that use
fragments.

A *nest* is a T.Parallel loop with all its dimensions.  A plain statement that touches a fragment is a nest without
loops: every thread executes it.  `collect` finds them in program order with everything that layout inference asks
for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import tvm
import tvm_ffi
from tvm import tirx as tir
from tvm.ir import Range

from tilelang_nb.language.tile_program import RegionOperand, TileCall, operation_name, read

from .context import FRAGMENT, LaunchContext, ThreadSet
from .ops.elementwise import TILE
from .provenance import Provenance
from .rewrite import Load, constant, has, scope, variables, walk
from .uniformity import Uniformity
from .vectors import lane_by_lane

LOOP_LAYOUT = "tl.loop_layout"
WARP_GROUPS = "tl.warp_groups"  # attribute around the body of T.ws
WARP_GROUP = 128  # threads


@dataclass
class Access:
    """One load or store of a buffer inside a nest.

    indices: with bindings of the nest expanded.
    depends: everything that the stored value and the conditions around it depend on; reads: the buffers it reads.
    conditional: a condition inside the nest decides whether it happens.
    """

    buffer: Any
    indices: tuple[Any, ...]
    write: bool
    span: Any
    depends: frozenset[Any] = frozenset()
    reads: frozenset[Any] = frozenset()
    conditional: bool = False


@dataclass
class Nest:
    """A T.Parallel loop (with its dimensions) or a plain statement.

    key: the variable of the outermost loop, None for a plain statement. divergent: only some of the threads may get
    here.  varying: they do not agree on the extents, or on the operands of the tile operation that this was. extents:
    None for an extent known only at run time. accesses: of fragments; memory: of shared and global memory.
    outer_arrays: a per-thread array from outside is written at an index that moves with the loop. simple: nothing but
    stores, perhaps under conditions: what a vector can do. once: something that must happen once per iteration and
    cannot be a guarded statement (an atomic whose result is used). under: the conditions around it on which threads do
    not agree, and whether they hold here.
    """

    loops: tuple[Any, ...]
    threads: ThreadSet
    span: Any
    divergent: bool
    varying: bool = False
    accesses: list[Access] = field(default_factory=list)
    memory: list[Access] = field(default_factory=list)
    outer_arrays: bool = False
    simple: bool = True
    once: bool = False
    recorded: bool = True
    under: tuple[tuple[Any, bool], ...] = ()

    @property
    def key(self) -> Any:
        return self.loops[0].loop_var if self.loops else None

    @property
    def wanted(self) -> Any:
        """The key of the layout that the text gives to the loop; None for none."""
        key = self.loops[0].annotations.get(LOOP_LAYOUT) if self.loops and self.loops[0].annotations else None
        return None if key is None else str(key)

    @property
    def variables(self) -> tuple[Any, ...]:
        return tuple(loop.loop_var for loop in self.loops)

    @property
    def extents(self) -> tuple[int | None, ...]:
        return tuple(constant(loop.extent) for loop in self.loops)

    @property
    def size(self) -> int:
        result = 1
        for extent in self.extents:
            result *= 1 << 20 if extent is None else extent
        return result

    @property
    def fragments(self) -> list[Any]:
        return list(dict.fromkeys(access.buffer for access in self.accesses))


@dataclass
class Site:
    """A tile operation and the threads that execute it together.  under: as for a nest."""

    call: TileCall
    threads: ThreadSet
    divergent: bool
    varying: bool = False
    under: tuple[tuple[Any, bool], ...] = ()


@dataclass
class Sites:
    """What layout inference looks at in a launch: its parallel nests, its operations on whole tiles, its fragments."""

    nests: list[Nest] = field(default_factory=list)
    operations: list[Site] = field(default_factory=list)
    fragments: list[Any] = field(default_factory=list)
    misplaced: list[Any] = field(default_factory=list)  # allocations of fragments inside a nest


def perfect_nest(outer: Any) -> tuple[tuple[Any, ...], Any]:
    """The directly nested PARALLEL loops from `outer` on, and the body of the innermost."""
    loops = [outer]
    while isinstance(loops[-1].body, tir.For) and int(loops[-1].body.kind) == tir.ForKind.PARALLEL:
        loops.append(loops[-1].body)
    return tuple(loops), loops[-1].body


def thread_set(groups: str, threads: int) -> ThreadSet | None:
    """The threads of `T.ws(...)`; None where they are not neighbours or not in the block."""
    numbers = sorted(int(part) for part in groups.split(",") if part.strip())
    first, count = numbers[0], len(numbers)
    if numbers != list(range(first, first + count)) or (first + count) * WARP_GROUP > threads:
        return None
    return ThreadSet(first * WARP_GROUP, count * WARP_GROUP, first)


def is_part(node: Any) -> bool:
    """Is a statement a `T.ws`?"""
    return isinstance(node, tir.AttrStmt) and node.attr_key == WARP_GROUPS


def threads_of_part(node: Any, launch: LaunchContext) -> ThreadSet | None:
    """The threads of a `T.ws`; None as for `thread_set`."""
    return thread_set(str(getattr(node.value, "value", node.value)), launch.threads)


def collect(function: Any, launch: LaunchContext) -> Sites:
    """All sites in program order."""
    return _Collector(function.body, launch).sites


class _Collector:
    def __init__(self, body: Any, launch: LaunchContext):
        self.launch = launch
        self.sites = Sites()
        self.set = launch.set
        self.under: tuple[tuple[Any, bool], ...] = ()
        if not _divides_work(body):
            return
        self.uniformity = Uniformity(body, launch.axes, alone=launch.threads == 1)
        self._statement(body, False)

    # ---- outside of nests ----

    def _statement(self, node: Any, divergent: bool) -> None:
        kind = type(node)
        if kind is tir.SeqStmt:
            for one in node.seq:
                self._statement(one, divergent)
        elif kind is tir.AttrStmt:
            threads = self.set
            if node.attr_key == WARP_GROUPS:
                self.set = threads_of_part(node, self.launch) or threads
            self._statement(node.body, divergent)
            self.set = threads
        elif kind is tir.AllocBuffer:
            if scope(node.buffer) == FRAGMENT:
                self.sites.fragments.append(node.buffer)
        elif kind is tir.For:
            if int(node.kind) == tir.ForKind.PARALLEL:
                self._nest(node, divergent)
                return
            self._plain(node, [node.min, node.extent], divergent)
            self._statement(node.body, divergent or self.uniformity.divergent_loop(node))
        elif kind is tir.While:
            self._plain(node, [node.condition], divergent)
            self._statement(node.body, divergent or self.uniformity.divergent_loop(node))
        elif kind is tir.IfThenElse:
            self._plain(node, [node.condition], divergent)
            apart = not self.uniformity.is_uniform(node.condition)
            before = self.under
            for case, holds in ((node.then_case, True), (node.else_case, False)):
                if case is not None:
                    self.under = (*before, (node.condition, holds)) if apart else before
                    self._statement(case, divergent or apart)
            self.under = before
        elif kind is tir.BufferStore:
            self._plain(node, [node.value, *node.indices], divergent)
        elif kind is tir.Evaluate or kind is tir.Bind:
            if operation_name(node.value) is not None:
                varying = not self.uniformity.is_uniform(node.value) or self._varying_region(node.value)
                self.sites.operations.append(
                    Site(read(node.value, node.span), self.set, divergent, varying, self.under)
                )
            self._plain(node, [node.value], divergent)

    def _plain(self, node: Any, expressions: list[Any], divergent: bool) -> None:
        """A statement outside of T.Parallel, if it touches a fragment."""
        nest = Nest((), self.set, node.span, divergent)
        for expr in expressions:
            if isinstance(expr, tir.IntImm | tir.FloatImm | tvm.ir.Var):
                continue
            for load in _loads(expr):
                if scope(load.source) == FRAGMENT:
                    nest.accesses.append(Access(load.source, tuple(load.indices), False, node.span))
        if isinstance(node, tir.BufferStore) and scope(node.buffer) == FRAGMENT:
            same = not divergent and self.uniformity.is_uniform(node.value)
            # What differs between threads is written as a dependence on the thread index.
            depends = frozenset() if same else frozenset(self.launch.axes)
            nest.accesses.append(
                Access(node.buffer, tuple(node.indices), True, node.span, depends, conditional=divergent)
            )
        if nest.accesses:
            self.sites.nests.append(nest)

    def _varying_region(self, call: Any) -> bool:
        """Do threads disagree on the place of a region operand?"""
        regions = [value for value in read(call).operands.values() if isinstance(value, RegionOperand)]
        return any(not self.uniformity.is_uniform(begin) for value in regions for begin in value.begin)

    def _varying(self, loops: tuple[Any, ...], body: Any) -> bool:
        bounds = [part for loop in loops for part in (loop.min, loop.extent)]
        if not all(self.uniformity.is_uniform(part) for part in bounds):
            return True
        if TILE not in loops[0].annotations:
            return False
        inside = {loop.loop_var for loop in loops}
        walk(body, (tir.Bind, lambda node: inside.add(node.var)), (tir.For, lambda node: inside.add(node.loop_var)))
        used = variables(body) - inside
        return not all(self.uniformity.is_uniform(var) for var in used)

    # ---- inside a nest ----

    def _nest(self, outer: Any, divergent: bool) -> None:
        loops, body = perfect_nest(outer)
        nest = Nest(loops, self.set, outer.span, divergent, self._varying(loops, body), under=self.under)
        for loop in loops:
            if constant(loop.extent) is not None and constant(loop.min) is not None:
                self.launch.analyzer.bind(loop.loop_var, Range.from_min_extent(loop.min, loop.extent), True)
        for loop in loops:
            for load in [*_loads(loop.min), *_loads(loop.extent)]:
                if scope(load.source) == FRAGMENT:
                    nest.accesses.append(Access(load.source, tuple(load.indices), False, loop.span))
        self._inside(body, nest, Provenance({}, {}, frozenset(), False, set(), set(nest.variables)))
        self.sites.nests.append(nest)

    def _inside(self, node: Any, nest: Nest, around: Provenance) -> None:
        kind = type(node)
        nest.simple &= (
            kind is tir.SeqStmt
            or (kind is tir.BufferStore and lane_by_lane(node.value))
            or (kind is tir.IfThenElse and node.else_case is None)
        )
        if kind is tir.SeqStmt:
            for one in node.seq:
                self._inside(one, nest, around)
        elif kind is tir.BufferStore:
            self._reads(node.value, nest, around, node.span)
            for index in node.indices:
                self._reads(index, nest, around, node.span)
            depends, reads = around.origin(node.value)
            memory = scope(node.buffer)
            if memory in ("local", "local.var"):
                around.taint(node.buffer, depends | around.conditions, reads)
                moves = any(around.origin(index)[0] & set(nest.variables) for index in node.indices)
                nest.outer_arrays |= node.buffer not in around.own and moves
            indices = tuple(around.expanded(index) for index in node.indices)
            access = Access(
                node.buffer, indices, True, node.span, depends | around.conditions, reads, around.conditional
            )
            self._note(access, nest)
        elif kind is tir.Bind:
            if operation_name(node.value) is not None:
                self._call(node, nest, around)
                around.depends[node.var] = frozenset(around.loops), frozenset()
                nest.once = True
                return
            self._reads(node.value, nest, around, node.span)
            around.depends[node.var] = around.origin(node.value)
            if not _reads_memory(node.value):
                around.values[node.var] = around.expanded(node.value)
        elif kind is tir.Evaluate:
            if operation_name(node.value) is not None:
                self._call(node, nest, around)
            else:
                self._reads(node.value, nest, around, node.span)
        elif kind is tir.IfThenElse:
            self._reads(node.condition, nest, around, node.span)
            inner = around.under(node.condition)
            self._inside(node.then_case, nest, inner)
            if node.else_case is not None:
                self._inside(node.else_case, nest, inner)
        elif kind is tir.For or kind is tir.While:
            parts = (node.min, node.extent) if kind is tir.For else (node.condition,)
            inner = around
            for part in parts:
                self._reads(part, nest, around, node.span)
                if constant(part) is None:
                    inner = inner.under(part)
            # Twice: a value may be carried from one turn to the next.
            silent = Nest(nest.loops, nest.threads, nest.span, nest.divergent, recorded=False)
            self._inside(node.body, silent, inner)
            self._inside(node.body, nest, inner)
        elif kind is tir.AttrStmt:
            self._inside(node.body, nest, around)
        elif kind is tir.AllocBuffer:
            around.own.add(node.buffer)
            if scope(node.buffer) == FRAGMENT:
                self.sites.misplaced.append(node)

    def _reads(self, expr: Any, nest: Nest, around: Provenance, span: Any) -> None:
        if isinstance(expr, tir.IntImm | tir.FloatImm | tvm.ir.Var):
            return
        found = list(_loads(expr))
        lazy = around.conditional or (bool(found) and has(expr, (tir.And, tir.Or, tir.Select, tvm.ir.Call)))
        for load in found:
            indices = tuple(around.expanded(index) for index in load.indices)
            self._note(Access(load.source, indices, False, span, conditional=lazy), nest)

    def _note(self, access: Access, nest: Nest) -> None:
        memory = scope(access.buffer)
        if memory == FRAGMENT:
            nest.accesses.append(access)
        elif memory not in ("local", "local.var"):
            nest.memory.append(access)

    def _call(self, node: Any, nest: Nest, around: Provenance) -> None:
        """An operation per iteration: atomics on elements, print, assert."""
        call = read(node.value, node.span)
        site = Site(call, nest.threads, True)
        if nest.recorded:
            self.sites.operations.append(site)
        for name, value in call.operands.items():
            if isinstance(value, RegionOperand):
                for begin in value.begin:
                    self._reads(begin, nest, around, node.span)
                write = name in ("target", "buffer")
                indices = tuple(around.expanded(begin) for begin in value.begin)
                access = Access(value.buffer, indices, write, node.span, frozenset(nest.variables))
                if scope(value.buffer) != FRAGMENT:
                    nest.memory.append(access)
            elif value is not None and not isinstance(value, str):
                self._reads(value, nest, around, node.span)


def _divides_work(body: Any) -> bool:
    """Is there anything to find?"""

    def see(node: Any) -> Any:
        if isinstance(node, tir.For):
            found = int(node.kind) == tir.ForKind.PARALLEL
        elif isinstance(node, tir.AllocBuffer):
            found = scope(node.buffer) == FRAGMENT
        else:
            found = operation_name(node) is not None
        return tvm_ffi.VisitInterrupt(node) if found else None

    return tvm_ffi.structural_walk(body, ((tir.For, tir.AllocBuffer, tvm.ir.Call), see), order="pre") is not None


def _loads(expr: Any) -> Iterator[Any]:
    found: list[Any] = []

    def call(node: Any) -> Any:
        return tvm_ffi.WalkResult.SKIP if operation_name(node) == "region" else None

    tvm_ffi.structural_walk(expr, [(tvm.ir.Call, call), (Load, found.append)], order="pre")
    return iter(found)


def _reads_memory(expr: Any) -> bool:
    return tvm_ffi.structural_walk(expr, ((Load, tvm.ir.Call), tvm_ffi.VisitInterrupt)) is not None
