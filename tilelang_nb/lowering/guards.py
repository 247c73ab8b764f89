"""guard-accesses: what runs over the edge of a global buffer reads 0 and is not written.

Before: thread-level statements; loops that may become vectors are marked `tl.vector`.  After: every access of global
memory whose index is arithmetic over loop, block and thread variables is provably inside its buffer or stands under
a condition: loads give 0 or the buffer's safe value, stores and atomics are skipped.  Indices that come from memory
are the user's own and are left alone, but for where a tile operation begins: what a tile reaches over the edge from
there is guarded too.  `launch.facts["guards"]` holds which statements got conditions, for the counters of the simulated
device.  `tl.vector` loops are VECTORIZED where their conditions are the same for all
lanes, else UNROLLED; `tl.assume` has been used and is gone; views of global memory are index arithmetic.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import tvm
import tvm_ffi
from tvm import tirx as tir
from tvm.ir import Range

from tilelang_nb.language.tile_program import operation_name, read, statement_name

from .context import LaunchContext
from .index_arithmetic import fold
from .launches import THREAD_EXTENT
from .ops.parallel import VECTOR
from .rewrite import (
    Load,
    branch,
    constant,
    dtype_of,
    elements,
    loads,
    loop,
    manageable,
    map_children,
    nothing,
    scope,
    sequence,
    variables,
    with_body,
)
from .vector_loops import hoisted
from .views import flat_index, root, unflatten, views

LARGEST = 2**31 - 1  # bounds from here on say nothing
GUARDS = "guards"  # among the facts of a launch: (kind of access, buffer, place of the statement)


def guard_accesses(function: Any, launch: LaunchContext) -> Any:
    """The stage."""
    body = _Guards(function, launch).statement(function.body)
    body = _resolve_global_views(body)
    return function if body.same_as(function.body) else function.with_body(body)


class _Guards:
    def __init__(self, function: Any, launch: LaunchContext):
        self.launch, self.analyzer = launch, launch.analyzer
        self.moving: set[Any] = set()  # loop, block and thread variables
        self.data: set[Any] = set()  # bindings that come from memory
        self.origins: set[Any] = launch.facts.get("tile origins", set())
        self.bound: dict[Any, Any] = {}  # bindings that are plain arithmetic
        self.shapes: dict[Any, list[tuple[Any, int | None]]] = {}  # of global buffers; [] for all others
        self.sources = views(function.body)
        self.span: Any = None  # of the statement at hand
        self.guards: set[tuple[str, str, tuple[int, int, int, int]]] = launch.facts.setdefault(GUARDS, set())

    def _record(self, kind: str, buffer: Any, span: Any) -> None:
        """An access gets a condition."""
        if span is not None:
            place = (int(span.line), int(span.end_line), int(span.column), int(span.end_column))
            self.guards.add((kind, str(root(buffer, self.sources).name), place))

    # ---- statements ----

    def statement(self, node: Any) -> Any:
        kind = type(node)
        span = node.span
        if span is not None:
            self.span = span
        if kind is tir.SeqStmt:
            return self._sequence(node)
        if kind is tir.BufferStore:
            return self._store(node)
        if kind is tir.Evaluate:
            return self._evaluate(node)
        if kind is tir.Bind:
            return self._bind(node)
        if kind is tir.For:
            return self._for(node)
        if kind is tir.IfThenElse:
            return self._if(node)
        if kind is tir.While:
            return tir.While(self.expression(node.condition), self.statement(node.body), node.span)
        if kind is tir.AttrStmt and node.attr_key == THREAD_EXTENT:
            self.moving.add(node.node.var)
        return map_children(node, self.statement)

    def _sequence(self, node: Any) -> Any:
        done, changed = [], False
        with ExitStack() as facts:
            for one in elements(node.seq):
                if statement_name(one) == "assume":
                    facts.enter_context(self.analyzer.constraint_scope(read(one.value)["condition"]))
                    changed = True
                    continue
                after = self.statement(one)
                changed |= after is not one and not after.same_as(one)
                done.append(after)
        return sequence(done, node.span) if changed else node

    def _store(self, node: Any) -> Any:
        before = elements(node.indices)
        condition = self._needed(node.buffer, before)
        read = [load for part in (node.value, *before) for load in loads(part)]
        if condition is None and all(self._needed(load.source, load.indices) is None for load in read):
            return node
        if condition is not None:
            self._record("write", node.buffer, node.span)
        with ExitStack() if condition is None else self.analyzer.constraint_scope(condition):
            value, indices = self.expression(node.value), [self.expression(index) for index in before]
        if not value.same_as(node.value) or any(a is not b and not a.same_as(b) for a, b in zip(indices, before)):
            node = tir.BufferStore(node.buffer, value, indices, node.span)
        return node if condition is None else branch(condition, node, None, node.span)

    def _evaluate(self, node: Any) -> Any:
        if operation_name(node.value) == "assume":
            return nothing(node.span)
        condition = self._addressed(node.value)
        if condition is None:
            value = self.expression(node.value)
            return node if value.same_as(node.value) else tir.Evaluate(value, node.span)
        with self.analyzer.constraint_scope(condition):
            value = self.expression(node.value)
        return branch(condition, tir.Evaluate(value, node.span), None, node.span)

    def _bind(self, node: Any) -> Any:
        if self._from_memory(node.value):
            self.data.add(node.var)
        else:
            value = self._expanded(node.value)
            if manageable(value):
                self.bound[node.var] = value
            elif any(var in self.moving for var in variables(node.value)):
                self.moving.add(node.var)  # nothing is known of it but that it differs from turn to turn
        condition = self._addressed(node.value)
        if condition is not None:
            with self.analyzer.constraint_scope(condition):
                value = self.expression(node.value)
            value = tir.if_then_else(condition, value, tir.const(0, dtype_of(node.value)))
        else:
            value = self.expression(node.value)
        return node if value.same_as(node.value) else tir.Bind(node.var, value, node.span)

    def _for(self, node: Any) -> Any:
        low, extent = self.expression(node.min), self.expression(node.extent)
        self.moving.add(node.loop_var)
        # The extent may read memory: then nothing is known of the variable but that it starts at `low`.
        if not self._from_memory(low) and not self._from_memory(extent):
            expanded = self._expanded(extent)
            known = expanded if manageable(expanded) else extent
            self.analyzer.bind(node.loop_var, Range.from_min_extent(low, known), True)
        body = self.statement(node.body)
        if VECTOR in node.annotations:
            return hoisted(node, body, self.analyzer)
        if low.same_as(node.min) and extent.same_as(node.extent):
            return with_body(node, body)
        return loop(node, min=low, extent=extent, body=body)

    def _if(self, node: Any) -> Any:
        condition = self.expression(node.condition)
        with self._assuming(node.condition):
            then = self.statement(node.then_case)
        other = None
        if node.else_case is not None:
            with self._assuming(tir.Not(node.condition)):
                other = self.statement(node.else_case)
        same = condition.same_as(node.condition) and then.same_as(node.then_case)
        if same and (other is None or other.same_as(node.else_case)):
            return node
        return branch(condition, then, other, node.span)

    def _assuming(self, condition: Any) -> Any:
        """The condition as a fact, where it is a fact about variables (what memory holds may change)."""
        if self._from_memory(condition):
            return ExitStack()
        facts = ExitStack()
        condition = self._expanded(condition)
        if manageable(condition):
            facts.enter_context(self.analyzer.constraint_scope(condition))
            bounded = self._bounded(condition)
            if bounded is not None:
                facts.enter_context(self.analyzer.constraint_scope(bounded))
        return facts

    def _bounded(self, condition: Any) -> Any | None:
        """`k + 1 < 64` for `k + 1 < min(n, 64)`: the analyzer bounds variables by constants alone."""
        if not isinstance(condition, tir.LT) or not dtype_of(condition.a).startswith("int"):
            return None
        most = self.analyzer.const_int_bound(condition.b).max_value
        if constant(condition.b) is not None or most >= LARGEST:
            return None
        return self.analyzer.simplify(condition.a < tir.const(most, dtype_of(condition.a)))

    # ---- expressions ----

    def expression(self, expr: Any) -> Any:
        """With guards around the loads that need one."""
        if isinstance(expr, tir.IntImm | tir.FloatImm | tvm.ir.Var):
            return expr
        if all(self._needed(load.source, load.indices) is None for load in loads(expr)):
            return expr
        return _GuardedExpression(self).visit(expr)

    def guarded(self, load: Any) -> Any:
        """A load, under its condition where it needs one."""
        condition = self._needed(load.source, load.indices)
        if condition is None:
            return load
        dtype = dtype_of(load.source)
        safe = self.launch.safe_values.get(root(load.source, self.sources))
        self._record("read" if safe is None else "safe read", load.source, self.span)
        if safe is None:
            safe = tir.const(False, "bool") if dtype == "bool" else tir.const(0, dtype)
        elif dtype_of(safe) != dtype:
            safe = tir.Cast(dtype, safe)
        return tir.if_then_else(condition, load, safe)

    def _addressed(self, expr: Any) -> Any | None:
        """What must hold for the global elements whose addresses an expression takes."""
        conditions: list[Any] = []

        def address(call: Any) -> None:
            if getattr(call.op, "name", "") == "tirx.address_of" and isinstance(call.args[0], Load):
                needed = self._needed(call.args[0].source, call.args[0].indices)
                if needed is not None:
                    conditions.append(needed)
                    self._record("atomic", call.args[0].source, self.span)

        tvm_ffi.structural_walk(expr, (tvm.ir.Call, address))
        return _all(conditions)

    def _needed(self, buffer: Any, indices: Any) -> Any | None:
        """The condition under which an access is inside its buffer; None where it is, or is not for us to say."""
        shape = self.shapes.get(buffer)
        if shape is None:
            extents = list(buffer.shape) if scope(buffer) == "global" else []
            shape = self.shapes[buffer] = [(extent, constant(extent)) for extent in extents]
        conditions = []
        for index, (extent, limit) in zip(indices, shape):
            number = constant(index)
            if number is not None:
                # The front end refuses constants outside: this one comes from a loop of one turn.
                if number < 0 or (limit is not None and number >= limit):
                    conditions.append(tir.const(False, "bool"))
                elif limit is None and number > 0 and not self.analyzer.can_prove(index < extent):
                    conditions.append(tir.LT(*_same_type(index, extent)))
                continue
            expanded = self._expanded(index)
            index = expanded if manageable(expanded) else index
            if not self._is_arithmetic(index):
                continue
            if not manageable(index):
                conditions += [tir.GE(index, tir.const(0, dtype_of(index))), tir.LT(*_same_type(index, extent))]
                continue
            bounds = self.analyzer.const_int_bound(index)
            if bounds.min_value < 0 and not self.analyzer.can_prove(index >= 0):
                conditions.append(tir.GE(index, tir.const(0, dtype_of(index))))
            if (limit is None or bounds.max_value >= limit) and not self.analyzer.can_prove(index < extent):
                conditions.append(tir.LT(*_same_type(index, extent)))
        return _all([fold_condition(one, self.analyzer) if manageable(one) else one for one in conditions])

    def _is_arithmetic(self, index: Any) -> bool:
        """Plain arithmetic over variables, with a loop, block or thread variable among them."""
        found: list[Any] = []
        memory = tvm_ffi.structural_walk(index, [((Load, tvm.ir.Call), _STOP), (tvm.ir.Var, found.append)])
        if memory is not None or any(var in self.data and var not in self.origins for var in found):
            return False
        return any(var in self.moving for var in found)

    def _from_memory(self, expr: Any) -> bool:
        found: list[Any] = []
        memory = tvm_ffi.structural_walk(expr, [((Load, tvm.ir.Call), _STOP), (tvm.ir.Var, found.append)])
        return memory is not None or any(var in self.data for var in found)

    def _expanded(self, expr: Any) -> Any:
        if not self.bound or isinstance(expr, tir.IntImm):
            return expr
        return tvm_ffi.structural_map(expr, (tvm.ir.Var, lambda var: self.bound.get(var, var)))


class _GuardedExpression:
    """Rebuilds an expression with guarded loads; a condition that already guards a part counts for that part."""

    def __init__(self, guards: _Guards):
        self.guards = guards

    def visit(self, expr: Any) -> Any:
        lazy: list[Any] = []

        def call(node: Any) -> Any:
            name = getattr(node.op, "name", "")
            if name.endswith("if_then_else"):
                condition, then, other = node.args
                lazy.append(node)
                with self.guards._assuming(condition):
                    kept = self.guards.expression(then)
                with self.guards._assuming(tir.Not(condition)):
                    dropped = self.guards.expression(other)
                return tir.if_then_else(self.guards.expression(condition), kept, dropped)
            if name == "tirx.address_of":
                load = node.args[0]
                indices = [self.guards.expression(index) for index in load.indices]
                return tir.address_of(tir.BufferLoad(load.source, indices))
            return None

        return _map_outermost(expr, call, self._load)

    def _load(self, load: Any) -> Any:
        indices = [self.guards.expression(index) for index in load.indices]
        if any(not a.same_as(b) for a, b in zip(indices, load.indices)):
            load = tir.BufferLoad(load.source, indices)
        return self.guards.guarded(load)


def _map_outermost(expr: Any, call: Any, load: Any) -> Any:
    """Map loads and some calls from the outside in: `call` and `load` see to what is inside themselves."""
    replaced: dict[Any, Any] = {}

    def see_call(node: Any) -> Any:
        result = call(node)
        if result is None:
            return None
        replaced[node] = result
        return tvm_ffi.WalkResult.SKIP

    def see_load(node: Any) -> Any:
        replaced[node] = load(node)
        return tvm_ffi.WalkResult.SKIP

    tvm_ffi.structural_walk(expr, [(tvm.ir.Call, see_call), (Load, see_load)], order="pre")
    if not replaced:
        return expr
    if expr in replaced:
        return replaced[expr]
    return tvm_ffi.structural_map(
        expr, [(tvm.ir.Call, lambda node: replaced.get(node, node)), (Load, lambda node: replaced.get(node, node))]
    )


_STOP = tvm_ffi.VisitInterrupt


def _all(conditions: list[Any]) -> Any | None:
    result = None
    for condition in conditions:
        result = condition if result is None else tir.And(result, condition)
    return result


def _same_type(index: Any, extent: Any) -> tuple[Any, Any]:
    if dtype_of(index) == dtype_of(extent):
        return index, extent
    return tir.Cast("int64", index), tir.Cast("int64", extent)


def fold_condition(condition: Any, analyzer: Any) -> Any:
    """Fold both sides of a comparison of indices."""
    if isinstance(condition, tir.IntImm):
        return condition
    return type(condition)(fold(condition.a, analyzer), fold(condition.b, analyzer))


def _resolve_global_views(body: Any) -> Any:
    """Views of global memory with the element type of their source: their accesses go to the source."""
    sources = views(body)
    owners = {
        view: root(view, sources)
        for view in sources
        if scope(root(view, sources)) == "global"
        and dtype_of(view) == dtype_of(root(view, sources))
        and not root(view, sources).strides
    }
    if not owners:
        return body

    def place(buffer: Any, indices: Any) -> list[Any]:
        owner = owners[buffer]
        flat = flat_index(buffer, indices)
        if any(constant(extent) is None for extent in list(owner.shape)[1:]):
            return _unflatten_symbolic(owner, flat)
        return unflatten(owner, flat)

    def definition(node: Any) -> Any:
        if isinstance(node, tir.DeclBuffer) and node.buffer in owners:
            return nothing(node.span)
        return map_children(node, definition)

    return tvm_ffi.structural_map(
        definition(body),
        [
            (Load, lambda n: tir.BufferLoad(owners[n.source], place(n.source, n.indices)) if n.source in owners else n),
            (
                tir.BufferStore,
                lambda n: (
                    tir.BufferStore(owners[n.buffer], n.value, place(n.buffer, n.indices), n.span)
                    if n.buffer in owners
                    else n
                ),
            ),
        ],
    )


def _unflatten_symbolic(owner: Any, flat: Any) -> list[Any]:
    result: list[Any] = []
    for dim, extent in reversed(list(enumerate(owner.shape))):
        result.append(flat % extent if dim else flat)
        flat = flat // extent
    return list(reversed(result))
