"""lower-tile-operations: threads, registers and plain statements in place of tiles.

Before: a legal launch with the layouts of its fragments and loops.  After: no tile operation (but `tl.assume`), no
PARALLEL loop and no fragment is left; loops over registers may be marked `tl.vector` (guard-accesses decides), the
outermost loop that remains of a T.Parallel carries `tl.parallel`, the bodies of `T.ws` stand in an `if` on the
thread index inside their `tl.warp_groups` attribute; scratch tiles are allocated at the start of the launch.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import tvm
import tvm_ffi
from tvm import tirx as tir
from tvm.ir import Range

from tilelang_nb.language.tile_program import RegionOperand, operation, operation_name, read
from tilelang_nb.layout.fragment import Fragment
from tilelang_nb.layout.indexing import decompose
from tilelang_nb.source import catalogue as say

from .architecture import capability
from .context import FRAGMENT, LaunchContext
from .gemm.wgmma import RUNNING, fences_in_scope
from .index_arithmetic import fold
from .launches import THREAD_EXTENT
from .loop_layouts import LoopLayouts
from .nests import WARP_GROUPS, thread_set
from .ops import parallel
from .ops.copy import ASYNCHRONOUS
from .ops.operations import OPERATIONS
from .plan_pipelines import FIRST
from .rewrite import (
    Load,
    branch,
    constant,
    dtype_of,
    has,
    map_children,
    nothing,
    scope,
    sequence,
    statements,
    with_body,
    with_span,
)
from .thread_parts import condition_of_part
from .vectors import widest


def lower_tile_operations(function: Any, launch: LaunchContext) -> Any:
    """The stage."""
    body = Bodies(launch).statement(function.body)
    if RUNNING in launch.facts:
        body = fences_in_scope(body)
    if launch.shared:
        body = _with_scratch(body, launch)
    return function.with_body(body)


def _with_scratch(node: Any, launch: LaunchContext) -> Any:
    """Allocate the compiler's shared tiles just inside the launch."""
    if isinstance(node, tir.AttrStmt) and node.attr_key == THREAD_EXTENT:
        return with_body(node, _with_scratch(node.body, launch))
    tiles = [tir.AllocBuffer(buffer, None, node.span) for buffer in launch.shared]
    return sequence([*tiles, node], node.span)


class Bodies:
    """Rewrites statements outside of T.Parallel; `inside` gives the one for the body of a loop nest."""

    def __init__(self, launch: LaunchContext, dealt: Any = None, replica: Any = None):
        self.launch, self.dealt, self.replica = launch, dealt, replica
        self.in_parallel = self.by_hand = False  # by_hand: in a copy that is one instruction
        self.values: dict[Any, Any] = {}  # bindings of the nest that are plain index arithmetic
        self.solver = LoopLayouts(launch)

    def inside(self, dealt: Any, replica: Any) -> Bodies:
        """For the body of a nest.  dealt: what became of the loop variables; replica: condition on memory writes."""
        bodies = Bodies.__new__(Bodies)
        bodies.launch, bodies.dealt, bodies.replica = self.launch, dealt, replica
        bodies.in_parallel, bodies.by_hand, bodies.values, bodies.solver = True, False, {}, self.solver
        return bodies

    # ---- statements ----

    def statement(self, node: Any) -> Any:
        kind = type(node)
        if kind is tir.BufferStore:
            return self._store(node) if self.in_parallel or self._touches_tiles(node) else node
        if kind is tir.Bind:
            return self._bind(node)
        if kind is tir.Evaluate:
            return self._evaluate(node)
        if kind is tir.For:
            return self._for(node)
        if kind is tir.IfThenElse:
            other = None if node.else_case is None else self.statement(node.else_case)
            return branch(self.expression(node.condition), self.statement(node.then_case), other, node.span)
        if kind is tir.While:
            return tir.While(self.expression(node.condition), self.statement(node.body), node.span)
        if kind is tir.AllocBuffer:
            return self._allocate(node)
        if kind is tir.AttrStmt and node.attr_key == WARP_GROUPS:
            return self._warp_groups(node)
        return map_children(node, self.statement)

    def _touches_tiles(self, node: Any) -> bool:
        if not self.launch.registers:
            return False
        if scope(node.buffer) == FRAGMENT:
            return True
        return any(scope(load.source) == FRAGMENT for load in _loads(node))

    def _store(self, node: Any) -> Any:
        value = self.expression(node.value)
        memory = scope(node.buffer)
        if memory == FRAGMENT:
            register = self._register(node.buffer, node.indices)
            store = tir.BufferStore(self.launch.registers[node.buffer], value, [register], node.span)
            private = node.buffer not in self.launch.facts["reducers"]
        else:
            indices = [self._index(index) for index in node.indices]
            store = tir.BufferStore(node.buffer, value, indices, node.span)
            private = memory in ("local", "local.var")
        return store if private or self.replica is None else branch(self.replica, store, None, node.span)

    def _bind(self, node: Any) -> Any:
        if operation_name(node.value) is not None:
            call = self._call(node)
            module: Any = OPERATIONS[call.name]
            value = module.value(call, self.launch)
            if self.replica is not None:
                value = tir.if_then_else(self.replica, value, tir.const(0, dtype_of(node.var)))
            return tir.Bind(node.var, value, node.span)
        value = self.expression(node.value)
        if self.dealt is not None and tvm_ffi.structural_walk(node.value, ((Load, tvm.ir.Call), _STOP)) is None:
            self.values[node.var] = self._expanded(node.value)
            value = fold(value, self.launch.analyzer)
        return tir.Bind(node.var, value, node.span)

    def _evaluate(self, node: Any) -> Any:
        name = operation_name(node.value)
        if name is None:
            return tir.Evaluate(self.expression(node.value), node.span)
        call = self._call(node)
        if name == "assume":
            return tir.Evaluate(operation("assume", call["condition"]), node.span)
        result = with_span(OPERATIONS[name].lower(call, self.launch), node.span)
        return result if self.replica is None else branch(self.replica, result, None, node.span)

    def _for(self, node: Any) -> Any:
        if int(node.kind) == tir.ForKind.PARALLEL and not self.in_parallel:
            return parallel.lower(node, self.launch, self)
        low, extent = self.expression(node.min), self.expression(node.extent)
        if constant(extent) is not None:
            self.launch.analyzer.bind(node.loop_var, Range(low, low + extent), True)
        kept = {ASYNCHRONOUS: 1} if ASYNCHRONOUS in node.annotations else {}
        before, self.by_hand = self.by_hand, self.by_hand or bool(kept)
        body = self.statement(node.body)
        self.by_hand = before
        kind = tir.ForKind(node.kind)
        if kind == tir.ForKind.VECTORIZED:
            return self._vectorized(node, low, extent, body)
        if kind == tir.ForKind.PARALLEL:
            kind = tir.ForKind.SERIAL
        return tir.For(node.loop_var, low, extent, kind, body, annotations=kept, step=node.step, span=node.span)

    def _vectorized(self, node: Any, low: Any, extent: Any, body: Any) -> Any:
        """T.vectorized: in vectors where that is provably the same as one after the other."""
        count, var = constant(extent), node.loop_var
        plain = tir.For(var, low, extent, tir.ForKind.SERIAL, body, annotations={}, span=node.span)
        if count is None or constant(low) != 0 or len(statements(body)) != 1:
            return plain
        stores = parallel.stores(body)
        if not all(isinstance(store, tir.BufferStore) for store in stores) or not all(map(_independent, stores)):
            return plain
        width = count if self._is_one_copy(stores, count) else widest(stores, var, count, self.launch)
        if width == 1:
            return plain
        return parallel.in_vectors(body, var, count, width, tir.ForKind.SERIAL, node.span, self.launch)

    def _is_one_copy(self, stores: list[Any], count: int) -> bool:
        """A copy that the text asks to be one instruction, which says itself that its places are multiples."""
        if not self.by_hand or capability(self.launch.arch) < FIRST:
            return False
        sides = [buffer for store in stores for buffer in (store.buffer, *(load.source for load in _loads(store)))]
        return all(
            self.launch.run(buffer, count) == count and (not buffer.strides or constant(buffer.strides[-1]) == 1)
            for buffer in sides
        )

    def _allocate(self, node: Any) -> Any:
        if scope(node.buffer) != FRAGMENT:
            return node
        layout = self.launch.layouts[node.buffer]
        count, dtype = layout.register_count, dtype_of(node.buffer)
        registers = tir.decl_buffer((count,), dtype, node.buffer.name, scope="local", layout=None)
        self.launch.registers[node.buffer] = registers
        return tir.AllocBuffer(registers, None, node.span)

    def _warp_groups(self, node: Any) -> Any:
        groups = str(getattr(node.value, "value", node.value))
        threads = thread_set(groups, self.launch.threads)
        if threads is None:
            self.launch.report(
                say.LaunchConfiguration(
                    problem=f"`T.ws({groups})` names no neighbouring warp groups of {self.launch.threads} threads",
                    remedy="a warp group is 128 threads, counted from 0",
                ),
                node.span,
            )
            return nothing(node.span)
        with self.launch.within(threads):
            body = self.statement(node.body)
        condition = condition_of_part(threads.base, threads.base + threads.count, self.launch)
        if condition is not None:
            body = branch(condition, body, None, node.span)
        return tir.AttrStmt(node.node, node.attr_key, node.value, body, node.span)

    # ---- expressions ----

    def expression(self, expr: Any) -> Any:
        """In terms of threads and registers; only index arithmetic is folded."""
        if isinstance(expr, tir.IntImm | tir.FloatImm):
            return expr
        if isinstance(expr, tvm.ir.Var):
            return self.dealt.values.get(expr, expr) if self.dealt is not None else expr
        if has(expr, Load):
            expr = tvm_ffi.structural_map(expr, (Load, self._fragment_load))
        if self.dealt is None:
            return expr
        values, analyzer = self.dealt.values, self.launch.analyzer
        return tvm_ffi.structural_map(
            expr,
            [
                (tvm.ir.Var, lambda var: values.get(var, var)),
                (Load, lambda load: tir.BufferLoad(load.source, [fold(index, analyzer) for index in load.indices])),
            ],
        )

    def _index(self, index: Any) -> Any:
        return fold(self.expression(index), self.launch.analyzer)

    def _fragment_load(self, load: Any) -> Any:
        if scope(load.source) != FRAGMENT:
            return load
        return tir.BufferLoad(self.launch.registers[load.source], [self._register(load.source, load.indices)])

    def _register(self, buffer: Any, indices: Any) -> Any:
        layout: Fragment = self.launch.layouts[buffer]
        if self.dealt is None:
            index = layout.forward([self.expression(index) for index in indices])[1]
            return fold(index, self.launch.analyzer) if not isinstance(index, int) else tir.const(index, "int32")
        sums = [self._sum(index) for index in indices]
        plain = [self.expression(index) for index in indices]
        return fold(self.dealt.register(layout, plain, sums), self.launch.analyzer)

    def _sum(self, index: Any) -> Any:
        return decompose(self._expanded(index), self.dealt.sums, self.solver.granule)

    def _expanded(self, expr: Any) -> Any:
        if not self.values or isinstance(expr, tir.IntImm):
            return expr
        return tvm_ffi.structural_map(expr, (tvm.ir.Var, lambda var: self.values.get(var, var)))

    def _call(self, node: Any) -> Any:
        """The operation with thread-level operands."""
        call = read(node.value, node.span)
        operands = {}
        for name, value in call.operands.items():
            if isinstance(value, RegionOperand):
                value = RegionOperand(
                    value.buffer,
                    tuple(self._index(begin) for begin in value.begin),
                    tuple(self.expression(extent) for extent in value.extent),
                )
            elif value is not None and not isinstance(value, str):
                value = self.expression(value)
            operands[name] = value
        return replace(call, operands=operands)


_STOP = tvm_ffi.VisitInterrupt


def _independent(store: Any) -> bool:
    """Does a store read its own buffer only where it writes?"""
    same = [load for load in _loads(store.value) if load.source.same_as(store.buffer)]
    return all(tvm_ffi.structural_equal(list(load.indices), list(store.indices)) for load in same)


def _loads(expr: Any) -> list[Any]:
    found: list[Any] = []
    tvm_ffi.structural_walk(expr, (Load, found.append))
    return found
