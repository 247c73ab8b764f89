"""legalise: few forms for the later stages.

Before: a launch as the front end emits it.  After:
- copy, fill, transpose and atomics on regions are T.Parallel loops (`EXPANSIONS`); a copy inside one buffer goes
  through a temporary fragment, because all of it is read before any of it is written;
- gemm accumulates into one whole fragment from shared tiles (or whole fragments, for tensor cores); reduce goes from
  a whole fragment to a whole fragment; cumulate works on shared tiles; other operands are staged through temporaries
  with copies before and after;
- views of fragments and of per-thread arrays are index arithmetic (`views.py`);
- `continue` in T.Parallel bodies is an `if` (`jumps.py`);
- loops of no turn are gone; safe values are in `launch.safe_values`, reducers in `launch.facts["reducers"]`.
Reads of memory that nothing wrote before get the warning TL211.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tvm import tirx as tir

from tilelang_nb.language.tile_program import RegionOperand, TileCall, operation, operation_name, read, region

from .context import FRAGMENT, SHARED, LaunchContext
from .gemm.engine import choose
from .gemm.wgmma import REFUSED
from .jumps import structured_continues
from .ops import atomic_region, copy, cp_async, fill, im2col, private_reduce, transpose
from .ops.elementwise import box
from .rewrite import constant, dtype_of, map_children, nothing, scope, sequence, substitute, variables, walk
from .uninitialised import warn_uninitialised_reads
from .unwaited_copies import warn_unwaited_copies
from .views import PRIVATE, reinterpreted_fragments, resolve_views, root, views

EXPANSIONS: dict[str, Callable[[TileCall, LaunchContext], Any]] = {
    "copy": copy.expand,
    "async_copy": copy.expand_async,
    "cp_async": cp_async.expand,
    "fill": fill.expand,
    "transpose": transpose.expand,
    "im2col": im2col.expand,
    "atomic_region": atomic_region.expand,
}


def legalise(function: Any, launch: LaunchContext) -> Any:
    """The stage.  Its start stays in `launch.facts["tile"]`: demotion of a fragment starts from there again."""
    text = launch.facts.get("text", function).body
    warn_uninitialised_reads(text, launch)
    warn_unwaited_copies(text, launch)
    body = structured_continues(function.body, launch)
    launch.facts["tile"] = function.with_body(body)
    return legalised(launch, reinterpreted_fragments(body))


def legalised(launch: LaunchContext, demoted: set[Any]) -> Any:
    """The launch with these fragments as shared tiles, in legal forms."""
    function = launch.facts["tile"]
    body = function.body
    if demoted:
        tiles = {
            buffer: tir.decl_buffer(list(buffer.shape), dtype_of(buffer), buffer.name, scope=SHARED, layout=None)
            for buffer in demoted
        }
        body = _demote_views(substitute(body, tiles))
    body = resolve_views(_Legaliser(launch, body).statement(body))
    return function if body.same_as(function.body) else function.with_body(body)


def _demote_views(body: Any) -> Any:
    """A view of a fragment that became a shared tile is a view of shared memory."""
    sources = views(body)
    moved = {
        view: tir.decl_buffer(list(view.shape), dtype_of(view), view.name, scope=SHARED, layout=None)
        for view in sources
        if scope(view) == FRAGMENT and scope(root(view, sources)) != FRAGMENT
    }
    return substitute(body, moved)


class _Legaliser:
    def __init__(self, launch: LaunchContext, body: Any):
        self.launch = launch
        self.sources = views(body)
        self.reducers: set[Any] = set()
        launch.facts["reducers"] = self.reducers
        walk(body, (tir.Evaluate, self._note_reducer))

    def _note_reducer(self, node: Any) -> None:
        if operation_name(node.value) == "reducer":
            self.reducers.add(read(node.value)["buffer"].buffer)

    def statement(self, node: Any) -> Any:
        kind = type(node)
        if kind is tir.Evaluate:
            name = operation_name(node.value)
            return node if name is None else self.operation(read(node.value, node.span), node)
        if kind is tir.For and _never_runs(node):
            return nothing(node.span)
        return map_children(node, self.statement)

    def operation(self, call: TileCall, node: Any) -> Any:
        name = call.name
        if name == "annotate_safe_value":
            self.launch.safe_values[call["buffer"].buffer] = call["value"]
            return nothing(node.span)
        self._note_origins(call)
        if name in EXPANSIONS:
            if name == "fill" and call["target"].buffer in self.reducers:
                return node
            if name in ("copy", "async_copy", "transpose") and self._overlap(call["source"], call["target"]):
                return self._through_fragment(call)
            return EXPANSIONS[name](call, self.launch)
        if name == "gemm":
            return self._gemm(call, node)
        if name == "reduce":
            if all(scope(call[field].buffer) in PRIVATE for field in ("source", "target")):
                return private_reduce.expand(call, self.launch)
            memory = {"source": FRAGMENT, "target": FRAGMENT}
            return self._staged(call, node, memory, written="target", reads_target=not call.boolean("clear"))
        if name == "cumulate":
            return self._staged(call, node, {"source": SHARED, "target": SHARED}, written="target", reads_target=False)
        if name == "finalize_reducer" and call["target"] is not None:
            return self._staged(call, node, {"target": FRAGMENT}, written="target", reads_target=False)
        return node

    def _note_origins(self, call: TileCall) -> None:
        """Variables that say where a tile begins along the dimensions it reaches over: there guards treat them as
        arithmetic, even where they come from memory.
        """
        origins = self.launch.facts.setdefault("tile origins", set())
        for operand in call.operands.values():
            if isinstance(operand, RegionOperand) and scope(operand.buffer) == "global":
                for dim in box(operand):
                    origins |= variables(operand.begin[dim])

    # ---- temporaries ----

    def _overlap(self, one: RegionOperand, other: RegionOperand) -> bool:
        """May reading one place and writing another of the same memory be mixed up?"""
        if not root(one.buffer, self.sources).same_as(root(other.buffer, self.sources)):
            return False
        if not one.buffer.same_as(other.buffer):
            return True
        analyzer = self.launch.analyzer
        for begin, extent, start, length in zip(one.begin, one.extent, other.begin, other.extent):
            if analyzer.can_prove(begin + extent <= start) or analyzer.can_prove(start + length <= begin):
                return False
        return True

    def _through_fragment(self, call: TileCall) -> Any:
        source = call["source"]
        held = self._temporary(FRAGMENT, source, "moved")
        first = replace(call, name="copy", operands={"source": source, "target": held})
        second = replace(call, operands={**call.operands, "source": held})
        return sequence(
            [
                tir.AllocBuffer(held.buffer, None, call.span),
                copy.expand(first, self.launch),
                EXPANSIONS[call.name](second, self.launch),
            ],
            call.span,
        )

    def _temporary(self, memory: str, like: RegionOperand, name: str) -> RegionOperand:
        """A buffer with the extents of a region, as a region."""
        extents = [constant(extent) for extent in like.extent] or [1]
        buffer = tir.decl_buffer(
            extents, dtype_of(like.buffer), self.launch.fresh(f"{like.buffer.name}_{name}"), scope=memory, layout=None
        )
        zero = tuple(tir.const(0, "int32") for _ in extents)
        return RegionOperand(buffer, zero, tuple(tir.const(extent, "int32") for extent in extents))

    def _staged(
        self, call: TileCall, node: Any, memory: dict[str, str], written: str | None, reads_target: bool
    ) -> Any:
        """The call with operands in the memory it needs; others are copied there and, where written, back."""
        before, after, operands = [], [], dict(call.operands)
        refused = self.launch.facts.get(REFUSED, {})
        for field, wanted in memory.items():
            given = call[field]
            if self._fits(given, wanted):
                continue
            operands[field] = self._temporary(wanted, given, "fragment" if wanted == FRAGMENT else "tile")
            before.append(tir.AllocBuffer(operands[field].buffer, None, call.span))
            if given.buffer in refused:
                refused[operands[field].buffer] = refused[given.buffer]
            if field != written or reads_target:
                before.append(self._copy(given, operands[field], call))
            if field == written:
                after.append(self._copy(operands[field], given, call))
        if not before:
            return node
        return sequence([*before, _rebuilt(call, operands), *after], call.span)

    def _copy(self, source: RegionOperand, target: RegionOperand, call: TileCall) -> Any:
        return copy.expand(TileCall("copy", {"source": source, "target": target}, call.span), self.launch)

    def _fits(self, operand: RegionOperand, wanted: str) -> bool:
        if scope(operand.buffer) != wanted:
            return False
        return wanted != FRAGMENT or (operand.buffer not in self.sources and whole(operand))

    def _gemm(self, call: TileCall, node: Any) -> Any:
        always_cleared = constant(call["clear_accum"]) == 1
        memory = {"a": SHARED, "b": SHARED, "c": FRAGMENT}
        if choose(call, self.launch).instruction is not None:  # operands may stay in registers
            memory |= {name: FRAGMENT for name in "ab" if self._fits(call[name], FRAGMENT)}
        return self._staged(call, node, memory, written="c", reads_target=not always_cleared)


def _never_runs(loop: Any) -> bool:
    extent = constant(loop.extent)
    return extent is not None and extent <= 0


def whole(operand: RegionOperand) -> bool:
    """The region is all of its buffer."""
    return all(constant(begin) == 0 for begin in operand.begin) and all(
        constant(extent) == constant(size) for extent, size in zip(operand.extent, operand.buffer.shape)
    )


def _rebuilt(call: TileCall, operands: dict[str, Any]) -> Any:
    encoded = [
        region(value.buffer, value.begin, value.extent) if isinstance(value, RegionOperand) else value
        for value in operands.values()
    ]
    return tir.Evaluate(operation(call.name, *encoded), call.span)
