"""A launch divided into roles: one more warp group copies tiles ahead, those of the text compute.

Before: a launch with the plans of its pipelined loops.  After: the block has 128 threads more.  Around every version
of the tiles of a group of copies stand two barriers in shared memory: "full" counts the bytes that arrive, "empty" the
warps that are done with them.  Turn t uses version t % stages, in the lap t / stages:

    one thread of the copying group          the computing warp groups
    wait for "empty" of the lap before       wait for "full" of this lap
    announce the bytes at "full", copy       compute; one lane of each warp arrives at "empty"

A barrier that is new counts as if the lap before its first had ended, so the copies of the first lap do not wait.  The
computing groups run the text as it is, with barriers of their own; they stand in a `tl.warp_groups` attribute like the
body of `T.ws`, and so does the copying one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import tvm
import tvm_ffi
from tvm import tirx as tir
from tvm.ir import Range, StringImm

from tilelang_nb.language.tile_program import region
from tilelang_nb.layout.matrix import WARP
from tilelang_nb.layout.wgmma import GROUP

from ..annotated_layouts import give_way
from ..context import SHARED, LaunchContext, ThreadSet
from ..gemm.wgmma import GROUPED
from ..launches import THREAD_EXTENT
from ..loop_effects import Effects
from ..memory_overlap import ORDERED
from ..nests import WARP_GROUPS
from ..ops.accumulator_store import box_of
from ..plan_pipelines import Pipeline, Producer, in_version
from ..rewrite import (
    branch,
    constant,
    dtype_of,
    has,
    loop,
    map_children,
    nothing,
    scope,
    sequence,
    statements,
    substitute,
    variables,
    walk,
)
from ..shared_memory import MAPPED, MBARRIER, TILES, WRITTEN
from ..views import views
from .decision import SHARES, Specialisation
from .epilogue import Epilogue
from .followed import unchanged
from .overlapped_loop import overlapped_loop
from .persistent import without_hint
from .resident_tiles import ResidentTiles
from .tile_statements import element, encoded, evaluate, is_copy, whole_of
from .turn_counters import TurnCounters

ONE_BLOCK = "tirx.launch_bounds_min_blocks_per_sm"


def specialised(function: Any, found: Specialisation, launch: LaunchContext) -> Any:
    """The launch with its roles; `launch` describes the larger block from now on."""
    return _Roles(function, found, launch).made()


@dataclass
class _Ring:
    """One group of copies of a loop, with its barriers.  first, last: positions of its first and last use."""

    plan: Pipeline
    producers: tuple[Producer, ...]
    full: Any
    empty: Any
    first: int
    last: int


@dataclass
class _Roles:
    function: Any
    found: Specialisation
    launch: LaunchContext
    rings: dict[Any, list[_Ring]] = field(default_factory=dict)
    staging: Any = None
    renamed: dict[Any, Any] = field(default_factory=dict)  # variables of the text -> those of the copying role
    unlike: set[Any] = field(default_factory=set)  # variables that not all roles can have the same

    def made(self) -> Any:
        function, launch, found = self.function, self.launch, self.found
        self.plans = {plan.loop.loop_var: plan for plan in found.plans}
        self.counters = TurnCounters(launch, {var: found.turns[var] for var in found.counted}, self._own, self._mine)
        self.tiles = {
            tile: tir.decl_buffer([plan.stages, *tile.shape], dtype_of(tile), tile.name, scope=SHARED, layout=None)
            for plan in found.plans
            for tile in plan.tiles
        }
        work = found.staying.turn if found.staying is not None else None
        warps = found.consumers // WARP
        self.resident = ResidentTiles(found.resident, found.resident_versions, work, warps, launch)
        self.tiles |= self.resident.tiles
        self.unlike, self.unchanged = set(launch.axes), unchanged(function)
        walk(function.body, (tir.Bind, self._note), order="pre")
        sources = views(function.body)
        for number, plan in enumerate(found.plans):
            effects = [Effects(one, sources) for one in plan.body]
            self.rings[plan.loop.loop_var] = [
                self._ring(plan, group, effects, f"_{number}_{at}" if number + at else "")
                for at, group in enumerate(plan.groups)
            ]
        stored = launch.facts.get(TILES, {})  # by the text itself
        launch.facts[TILES] = {**stored, **{self.tiles.get(tile, tile): shape for tile, shape in found.tiles.items()}}
        launch.facts[GROUPED], launch.facts[WRITTEN] = set(found.accumulators), set(found.made)
        launch.facts[MAPPED] = {self.tiles.get(tile, tile) for tile in found.read | found.made}
        for tile in [*found.tiles, *([] if found.epilogue is None else [found.epilogue.tile])]:
            if tile in launch.orders:
                give_way(tile, found.tiles.get(tile), launch)
        if found.epilogue is not None:
            self._stage(found.epilogue)
        launch.facts["rings"], launch.facts["loaded"] = self.rings, self.resident.barriers
        launch.threads += GROUP
        launch.set = ThreadSet(0, launch.threads)
        return function.with_body(self._launch(function.body))

    def _stage(self, epilogue: Epilogue) -> None:
        """Boxes of shared memory for the results."""
        dtype = dtype_of(epilogue.call["target"].buffer)
        box = box_of(dtype)
        shape = (epilogue.slots * epilogue.groups, box.rows, box.columns)
        self.staging = tir.decl_buffer(shape, dtype, self.launch.fresh("staging"), scope=SHARED, layout=None)
        self.launch.facts[TILES][self.staging] = box
        self.launch.facts[ORDERED] = {self.staging}

    def _ring(self, plan: Pipeline, group: tuple[Producer, ...], effects: list[Effects], suffix: str) -> _Ring:
        mine = {producer.target for producer in group}
        uses = [at for at, effect in enumerate(effects) if mine & effect.reads]

        def barrier(name: str) -> Any:
            return tir.decl_buffer(
                (plan.stages,), "uint64", self.launch.fresh(name + suffix), scope=MBARRIER, layout=None
            )

        return _Ring(plan, group, barrier("full"), barrier("empty"), group[0].first_use, max(uses))

    # ---- the launch ----

    def _launch(self, node: Any) -> Any:
        if isinstance(node, tir.AttrStmt) and node.attr_key == THREAD_EXTENT:
            value, axis = node.value, node.node
            staying = self.found.staying
            if staying is not None and str(axis.thread_tag).startswith("blockIdx"):
                if not axis.var.same_as(staying.axes[0].node.var):
                    return self._launch(node.body)
                axis, value = staying.axis()
                return tir.AttrStmt(axis, node.attr_key, value, self._launch(node.body), node.span)
            if str(node.node.thread_tag) == "threadIdx.x":
                value = tir.const(self.launch.threads, dtype_of(node.value))
                axis = tir.IterVar(Range(0, value), node.node.var, node.node.iter_type, node.node.thread_tag)
                self.launch.analyzer.bind(node.node.var, Range(0, value), True)
            return tir.AttrStmt(axis, node.attr_key, value, self._launch(node.body), node.span)
        return self._roles(node)

    def _roles(self, body: Any) -> Any:
        found, span = self.found, self.found.plans[0].loop.span
        outside: list[Any] = []
        inside: list[Any] = []
        for one in statements(body):
            shared = isinstance(one, tir.AllocBuffer) and scope(one.buffer).startswith("shared")
            if isinstance(one, tir.Bind) and self._is_common(one.value) and self.found.staying is None:
                outside.append(one)
            elif shared and found.epilogue is not None and one.buffer == found.epilogue.tile:
                continue  # boxes take its place
            elif shared:
                outside.append(tir.AllocBuffer(self.tiles.get(one.buffer, one.buffer), one.annotations, one.span))
            else:
                inside.append(one)
        rings = [ring for every in self.rings.values() for ring in every]
        warps = self.found.consumers // WARP
        barriers: list[Any] = []
        if self.staging is not None:
            barriers.append(tir.AllocBuffer(self.staging, None, span))
        for ring in rings:
            barriers += [tir.AllocBuffer(buffer, None, span) for buffer in (ring.full, ring.empty)]
        barriers += [*self.resident.declared(span), *self.resident.started(span)]
        for ring in rings:
            for stage in range(ring.plan.stages):
                at = tir.const(stage, "int32")
                barriers.append(evaluate("barrier_init", span, element(ring.full, at), 1))
                barriers.append(evaluate("barrier_init", span, element(ring.empty, at), warps))
        barriers.append(evaluate("fence_barrier_init", span))
        groups = self.found.consumers // GROUP
        computed = [self._computing(one) for one in inside]
        released = self.resident.released(self.launch.block_thread, span)
        work = self.resident.in_versions(sequence([*computed, *released], span))
        if self.found.staying is not None:
            work = self.found.staying.loop(work, self.found.staying.turn, lambda var: var, span)
        computing = [self._registers(True, span), *self.counters.first(False, span), work]
        if self.found.epilogue is not None:
            computing.append(evaluate("wait_boxes", self.found.epilogue.call.span))
        lead = tir.EQ(self.launch.block_thread, tir.const(self.found.consumers, "int32"))
        if self.found.staying is not None:
            turn = self._own(self.found.staying.turn)
            axes = {variable: self._own(variable) for variable in self.found.staying.variables()}
            copies = sequence([self._copying(one) for one in inside], span)
            copies = self.found.staying.loop(copies, turn, axes.__getitem__, span)
        else:
            copies = sequence([self._copying(one) for one in inside], span)
        copying = [
            self._registers(False, span),
            tir.IfThenElse(lead, sequence([*self.counters.first(True, span), copies], span), None, span),
        ]
        parts = [
            *outside,
            *barriers,
            _role(range(groups), sequence(computing, span), span),
            _role([groups], sequence(copying, span), span),
        ]
        # Without this bound the device compiler does not know how many registers there are to divide.
        return tir.AttrStmt(tir.const(0, "int32"), ONE_BLOCK, tir.const(1, "int32"), sequence(parts, span), span)

    def _is_common(self, value: Any) -> bool:
        """Is it the same for all roles, which read only what the launch does not change?"""
        if not self.unchanged(value) or self.unlike & variables(value):
            return False
        return not any(name.startswith("tl.") for name in _extern_names(value))

    def _note(self, node: Any) -> None:
        if not self._is_common(node.value):
            self.unlike.add(node.var)

    def _registers(self, computing: bool, span: Any) -> Any:
        """The copying group gives registers to the computing ones, where there are several."""
        shares = SHARES[self.found.consumers // GROUP]
        if shares is None:
            return nothing(span)
        return evaluate("set_max_nreg", span, shares[computing], computing)

    # ---- the computing role ----

    def _computing(self, node: Any) -> Any:
        if isinstance(node, tir.For) and node.loop_var in self.plans:
            return self.counters.around(self._consumer(self.plans[node.loop_var]), node, False)
        epilogue = self.found.epilogue
        if epilogue is not None:
            if is_copy(node, epilogue.call):
                return self._store(epilogue)
            if epilogue.before is not None and is_copy(node, epilogue.before):
                return nothing(node.span)
        loaded = self.resident.barrier_of(node)
        if loaded is not None:
            return self.resident.waited(loaded[1], node.span)
        if self.found.staying is not None and isinstance(node, tir.Evaluate):
            return without_hint(node)
        return map_children(node, self._computing)

    def _store(self, epilogue: Epilogue) -> Any:
        call, grid = epilogue.call, epilogue.engine.grid
        source, target = encoded(epilogue.source), encoded(call["target"])
        boxes = whole_of(self.staging)
        reused = epilogue.slots < epilogue.boxes or epilogue.repeated or self.found.staying is not None
        store = evaluate("accumulator_store", call.span, source, target, boxes, grid.down, grid.across, reused)
        if not epilogue.repeated:
            return store
        # Copies into the same place have no order of their own.
        return sequence([evaluate("store_wait", call.span, 0, False), store], call.span)

    def _consumer(self, plan: Pipeline) -> Any:
        overlap = self.found.overlaps.get(plan.loop.loop_var)
        node, rings = plan.loop, self.rings[plan.loop.loop_var]
        if overlap is not None:
            return overlapped_loop(
                plan,
                overlap,
                (rings[0].full, rings[1].full),
                {tile: self.tiles[tile] for tile in plan.tiles},
                self.found.consumers,
                self.launch,
                lambda turn: self._turn(plan, turn),
                self._computing,
                lambda which, slot, span: self._release(rings[which], slot, span),
            )
        slot, lap, begin = self._turn(plan)
        tiles = {tile: self.tiles[tile] for tile in plan.tiles}
        copied = {producer.position for group in plan.groups for producer in group}
        body: list[Any] = begin
        for position, one in enumerate(plan.body):
            for ring in rings:
                if ring.first == position:
                    body.append(evaluate("barrier_wait", one.span, element(ring.full, slot), lap))
            if position not in copied:
                body.append(in_version(self._computing(one), tiles, slot))
            for ring in rings:
                if ring.last == position:
                    body.append(self._release(ring, slot, one.span))
        return loop(node, body=sequence(body, node.span), annotations={})

    def _release(self, ring: _Ring, slot: Any, span: Any) -> Any:
        """One lane of each warp says that it is done with a version."""
        lane = tir.EQ(tir.floormod(self.launch.block_thread, WARP), tir.const(0, "int32"))
        arrive = tir.IfThenElse(lane, evaluate("barrier_arrive", span, element(ring.empty, slot)), None, span)
        if self.found.read.isdisjoint(producer.target for producer in ring.producers):
            return arrive  # all lanes have waited for the products
        return sequence([evaluate("sync_warp", span), arrive], span)

    def _turn(self, plan: Pipeline, index: Any = None) -> tuple[Any, Any, list[Any]]:
        """(version, parity of the lap, bindings of both) of a turn; index: of it, the loop's variable if not given."""
        node = plan.loop
        index = node.loop_var if index is None else index
        turn = self.found.turns[node.loop_var] + (index if constant(node.min) == 0 else index - node.min)
        dtype = dtype_of(node.loop_var)
        slot, lap = tir.Var("slot", dtype), tir.Var("lap", dtype)
        bindings = [
            tir.Bind(slot, tir.floormod(turn, plan.stages), node.span),
            tir.Bind(lap, tir.floormod(tir.floordiv(turn, plan.stages), 2), node.span),
        ]
        return slot, lap, bindings

    # ---- the copying role ----

    def _copying(self, node: Any) -> Any:
        """What is left of the text for the thread that copies: the pipelined loops and the control flow around.

        Its variables are its own, so that every variable is bound once.
        """
        if isinstance(node, tir.For):
            pipelined = node.loop_var in self.plans
            var = self._own(node.loop_var)
            body = self._turn_of_copies(self.plans[node.loop_var]) if pipelined else self._copying(node.body)
            if not pipelined and not has(body, tir.For):
                return nothing(node.span)
            low, extent = self._mine(node.min), self._mine(node.extent)
            copies = tir.For(var, low, extent, tir.ForKind(node.kind), body, annotations={}, span=node.span)
            if node.loop_var in self.found.overlaps:
                rest = self._copies(self.plans[node.loop_var], 1, node.min + node.extent - 1)
                copies = sequence([copies, branch(extent >= 1, self._mine(sequence(rest)), None, node.span)], node.span)
            return self.counters.around(copies, node, True) if pipelined else copies
        if isinstance(node, tir.SeqStmt):
            return sequence([self._copying(one) for one in node.seq], node.span)
        if isinstance(node, tir.IfThenElse):
            other = None if node.else_case is None else self._copying(node.else_case)
            return branch(self._mine(node.condition), self._copying(node.then_case), other, node.span)
        loaded = self.resident.barrier_of(node)
        if loaded is not None:
            return self._mine(self.resident.copied(*loaded, self.found.tiles))
        if isinstance(node, tir.Bind) and self._is_common(node.value):
            value = self._mine(node.value)
            return tir.Bind(self._own(node.var), value, node.span)
        return nothing(node.span)

    def _own(self, var: Any) -> Any:
        return self.renamed.setdefault(var, tir.Var(var.name, var.ty))

    def _mine(self, node: Any) -> Any:
        return substitute(node, self.renamed)

    def _turn_of_copies(self, plan: Pipeline) -> Any:
        node = plan.loop
        if node.loop_var not in self.found.overlaps:
            every = [one for ring in range(len(plan.groups)) for one in self._copies(plan, ring, node.loop_var)]
            return self._mine(sequence(every, node.span))
        # The tile of a second product is wanted a turn later, and its place is free a turn later: the first product's
        # tile of the turn after must not wait for that.
        before = sequence(self._copies(plan, 1, node.loop_var - 1), node.span)
        late = branch(node.loop_var > node.min, before, None, node.span)
        return self._mine(sequence([*self._copies(plan, 0, node.loop_var), late], node.span))

    def _copies(self, plan: Pipeline, which: int, turn: Any) -> list[Any]:
        """One turn of a group of copies."""
        ring = self.rings[plan.loop.loop_var][which]
        slot, lap, body = self._turn(plan, turn)
        span = ring.producers[0].call.span
        size = sum(self.found.tiles[producer.target].bytes for producer in ring.producers)
        full = element(ring.full, slot)
        body.append(evaluate("barrier_wait", span, element(ring.empty, slot), tir.bitwise_xor(lap, 1)))
        body += [evaluate("barrier_expect_tx", span, full, size), evaluate("barrier_arrive", span, full)]
        loads = [self._load(producer, slot, full) for producer in ring.producers]
        return [*body, *(substitute(one, {plan.loop.loop_var: turn}) for one in loads)]

    def _load(self, producer: Producer, slot: Any, full: Any) -> Any:
        call = producer.call
        source, target = call["source"], call["target"]
        tile = self.tiles[producer.target]
        into = region(tile, [slot, *target.begin], [tir.const(1, "int32"), *target.extent])
        return evaluate("tensor_load", call.span, region(source.buffer, source.begin, source.extent), into, full)


def _role(groups: Any, body: Any, span: Any) -> Any:
    text = ",".join(map(str, groups))
    return tir.AttrStmt(tir.const(0, "int32"), WARP_GROUPS, StringImm(text), body, span)


def _extern_names(value: Any) -> list[str]:
    found: list[str] = []

    def visit(call: Any) -> None:
        if getattr(call.op, "name", "") == "tirx.call_extern":
            found.append(str(call.args[0].value))

    tvm_ffi.structural_walk(value, (tvm.ir.Call, visit))
    return found
