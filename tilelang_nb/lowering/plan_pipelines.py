"""plan-pipelines: the copies of T.Pipelined loops run ahead of their use.

Before: a launch as the front end emits it.  After: in a loop with `num_stages=S`, S above 1, the copies from global to
shared memory that may run ahead do: their tiles have S versions, the first S - 1 are copied before the loop, and every
turn starts the copy for the turn S - 1 later.  Copies are in groups (one for each statement that first uses some of
them), and a turn waits for a group where its tiles are first used.

A copy may run ahead if no order of the text is lost:
- it writes a whole tile that this loop alone uses (or several such loops), nothing reads the tile earlier in a turn,
  nothing else writes it, and no view shows it;
- nothing in the loop writes its source, or what its place in the source depends on;
- it stands directly in the loop: not under a condition, not in an inner loop, not after a jump.
All other statements stay where they are and in their order, so that atomics, updates in place and copies that do
depend on the turn before keep their meaning.

`find_pipelines` makes the plan; `_Ring` turns one into a ring of cp.async groups.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import tvm
import tvm_ffi
from tvm import tirx as tir

from tilelang_nb.language.tile_program import RegionOperand, TileCall, operation, operation_name, read, region

from .architecture import capability
from .context import SHARED, LaunchContext
from .loop_effects import Effects
from .rewrite import (
    Load,
    branch,
    constant,
    dtype_of,
    has,
    loop,
    manageable,
    map_children,
    scope,
    sequence,
    statements,
    substitute,
    variables,
    walk,
)
from .shared_memory import needed_shared_memory, shared_memory_limit
from .views import root, views

STAGES = "tl.num_stages"
MOST_STAGES = "tl.most_stages"  # the option that lowering gives itself when tiles of its own did not fit
FIRST = 80  # the architecture that has asynchronous copies
_BY_HAND = ("async_copy", "commit_group", "wait_group")


@dataclass(frozen=True)
class Producer:
    """A copy that runs ahead.

    position: of its statement in the loop.  first_use: position of the first statement that reads its tile.
    call: with the bindings of the turn expanded.  target: its tile.
    """

    position: int
    first_use: int
    call: TileCall
    target: Any


@dataclass(frozen=True)
class Pipeline:
    """The plan of one loop.

    wanted: stages that the text asks for.  stages: versions of each tile.  groups: producers by first use, in order.
    """

    loop: Any
    body: tuple[Any, ...]
    wanted: int
    stages: int
    groups: tuple[tuple[Producer, ...], ...]

    @property
    def tiles(self) -> tuple[Any, ...]:
        return tuple(producer.target for group in self.groups for producer in group)


def plan_pipelines(function: Any, launch: LaunchContext) -> Any:
    """The stage.  `launch.facts["pipelines"]` gets the plans; with too little shared memory they have fewer stages.

    A plan of one stage is a loop that stays as it is.
    """
    launch.facts["text"] = function
    launch.facts["pipelines"] = ()
    if capability(launch.arch) < FIRST:
        return function
    every = find_pipelines(function)
    most = int(launch.options.get(MOST_STAGES, 1 << 30))
    pipelines = [replace(plan, stages=min(plan.stages, most)) for plan in every if most > 1]
    limit = shared_memory_limit(launch.arch)
    while pipelines:
        rewriter = _Rewriter(pipelines)
        body = rewriter.statement(function.body)
        if needed_shared_memory(body) <= limit:
            launch.orders.update(
                {new: launch.orders[old] for old, new in rewriter.tiles.items() if old in launch.orders}
            )
            left = {plan.loop.loop_var: plan for plan in pipelines}
            launch.facts["pipelines"] = tuple(left.get(p.loop.loop_var, replace(p, stages=1)) for p in every)
            return function.with_body(body)
        deepest = max(pipeline.stages for pipeline in pipelines)
        fewer = [replace(plan, stages=min(plan.stages, deepest - 1)) for plan in pipelines]
        pipelines = [plan for plan in fewer if plan.stages > 1]
    launch.facts["pipelines"] = tuple(replace(plan, stages=1) for plan in every)
    return function


def deepest_pipeline(launch: LaunchContext) -> int:
    """The stages of the longest pipeline of a launch; 1 for none."""
    return max((plan.stages for plan in launch.facts.get("pipelines", ())), default=1)


# ---- the plan ----


def find_pipelines(function: Any) -> list[Pipeline]:
    """The plans of all loops that have one, outer loops first.

    None where an expression of the launch is too large to be looked through.
    """
    loops: list[Any] = []
    if not _collect(function.body, loops) or not loops:
        return []
    sources = views(function.body)
    found = [plan for plan in (_plan(node, sources) for node in loops) if plan is not None]
    return _with_tiles_of_their_own(found, function.body)


def _collect(node: Any, loops: list[Any]) -> bool:
    """Finds the loops that ask for stages, by statements alone; False where an expression cannot be looked through."""
    if isinstance(node, tir.For) and _wanted_stages(node) > 1:
        loops.append(node)
    whole = all(manageable(expr) for expr in _expressions(node))

    def visit(child: Any) -> Any:
        nonlocal whole
        whole = whole and _collect(child, loops)
        return child

    map_children(node, visit)
    return whole


def _expressions(node: Any) -> list[Any]:
    """The expressions of a statement, without those of the statements inside."""
    if isinstance(node, tir.For):
        return [node.min, node.extent]
    if isinstance(node, tir.BufferStore):
        return [node.value, *node.indices]
    if isinstance(node, tir.IfThenElse | tir.While):
        return [node.condition]
    return [node.value] if isinstance(node, tir.Bind | tir.Evaluate) else []


def _wanted_stages(node: Any) -> int:
    """Versions that the user asks for: `num_stages`, or as many as a schedule by hand spans."""
    stages = node.annotations.get(STAGES) if node.annotations else None
    count = 0 if stages is None else int(stages)
    schedule = node.annotations.get("tl.stage") if node.annotations else None
    if schedule is not None and count == 0:
        numbers = [int(number) for number in schedule]
        count = max(numbers) - min(numbers) + 1
    return count


def _plan(node: Any, sources: dict[Any, Any]) -> Pipeline | None:
    body = tuple(statements(node.body))
    names = [operation_name(one.value) if isinstance(one, tir.Evaluate) else None for one in body]
    if any(name in _BY_HAND for name in names):
        return None
    effects = [Effects(one, sources) for one in body]
    written: Counter[Any] = Counter()
    for effect in effects:
        written.update(effect.writes)
    bound = {one.var: one.value for one in body if isinstance(one, tir.Bind)}
    producers = []
    for position, (one, name) in enumerate(zip(body, names)):
        if _jumps(one):
            break
        if name == "copy":
            producer = _producer(position, one, effects, written, bound, sources)
            if producer is not None:
                producers.append(producer)
    if not producers:
        return None
    stages = _wanted_stages(node)
    return Pipeline(node, body, stages, stages, _grouped(producers))


def _grouped(producers: list[Producer]) -> tuple[tuple[Producer, ...], ...]:
    uses = sorted({producer.first_use for producer in producers})
    return tuple(tuple(p for p in producers if p.first_use == use) for use in uses)


def _producer(
    position: int, node: Any, effects: list[Effects], written: Counter[Any], bound: dict[Any, Any], sources: Any
) -> Producer | None:
    call = read(node.value, node.span)
    source, target = call["source"], call["target"]
    tile = target.buffer
    if scope(source.buffer) != "global" or scope(tile) != SHARED or dtype_of(source.buffer) != dtype_of(tile):
        return None
    if tile in sources or not _whole(target) or written[tile] != 1 or written[root(source.buffer, sources)]:
        return None
    uses = [at for at, effect in enumerate(effects) if tile in effect.reads]
    if not uses or uses[0] < position or any(tile in effect.other for effect in effects):
        return None
    begin = tuple(_expanded(index, bound) for index in source.begin)
    extent = tuple(_expanded(index, bound) for index in source.extent)
    defined = set(bound)
    for index in (*begin, *extent):
        used = variables(index)
        if used & defined or has(index, tvm.ir.Call) or any(root(v, sources) in written or v in written for v in used):
            return None
    moved = RegionOperand(source.buffer, begin, extent)
    return Producer(position, uses[0], replace(call, operands={**call.operands, "source": moved}), tile)


def _expanded(index: Any, bound: dict[Any, Any]) -> Any:
    """An index with the bindings of the turn put in, as far as they do not call anything."""
    for _ in range(8):
        used = {var: bound[var] for var in variables(index) if var in bound and not has(bound[var], tvm.ir.Call)}
        if not used:
            break
        index = substitute(index, used)
    return index


def _whole(target: RegionOperand) -> bool:
    return all(constant(begin) == 0 for begin in target.begin) and all(
        constant(extent) == constant(size) for extent, size in zip(target.extent, target.buffer.shape)
    )


def _jumps(node: Any) -> bool:
    return has(node, (tir.Break, tir.Continue))


def _with_tiles_of_their_own(plans: list[Pipeline], body: Any) -> list[Pipeline]:
    """Without the copies into tiles that are also used outside of the loops that copy into them."""
    total = _uses(body)
    while True:
        inside: Counter[Any] = Counter()
        for plan in plans:
            mine = _uses(plan.loop.body)
            for tile in plan.tiles:
                inside[tile] += mine[tile]
        foreign = {tile for tile, count in inside.items() if count != total[tile]}
        if not foreign:
            return plans
        kept = []
        for plan in plans:
            left = [p for group in plan.groups for p in group if p.target not in foreign]
            if left:
                kept.append(replace(plan, groups=_grouped(left)))
        plans = kept


def _uses(body: Any) -> Counter[Any]:
    """How often each buffer occurs, its allocation apart."""
    found: Counter[Any] = Counter()

    def note(var: Any) -> None:
        found[var] += 1

    tvm_ffi.structural_walk(body, (tvm.ir.Var, note))
    walk(body, (tir.AllocBuffer, lambda node: found.subtract({node.buffer: 1})))
    return found


# ---- its form with cp.async ----


class _Rewriter:
    """The launch with all plans carried out; a tile has as many versions as the longest of its pipelines needs."""

    def __init__(self, plans: list[Pipeline]):
        self.plans = {plan.loop.loop_var: plan for plan in plans}
        self.tiles: dict[Any, Any] = {}
        for plan in plans:
            for tile in plan.tiles:
                known = self.tiles.get(tile)
                stages = max(plan.stages, int(known.shape[0]) if known is not None else 0)
                self.tiles[tile] = tir.decl_buffer(
                    [stages, *tile.shape], dtype_of(tile), tile.name, scope=SHARED, layout=None
                )

    def statement(self, node: Any) -> Any:
        if isinstance(node, tir.AllocBuffer) and node.buffer in self.tiles:
            return tir.AllocBuffer(self.tiles[node.buffer], node.annotations, node.span)
        if isinstance(node, tir.For) and node.loop_var in self.plans:
            return _Ring(self.plans[node.loop_var], self).statement()
        return map_children(node, self.statement)


@dataclass
class _Ring:
    """One loop whose tiles go round: turn t uses version t % stages."""

    plan: Pipeline
    rewriter: _Rewriter

    def statement(self) -> Any:
        plan, node = self.plan, self.plan.loop
        ahead = plan.stages - 1
        start = [self._start(constant_like(turn, node), turn) for turn in range(ahead)]
        slot = tir.Var("stage", dtype_of(node.loop_var))
        turn = node.loop_var if constant(node.min) == 0 else node.loop_var - node.min
        copied = {producer.position for group in plan.groups for producer in group}
        body: list[Any] = [tir.Bind(slot, tir.floormod(turn, plan.stages), node.span)]
        for position, one in enumerate(plan.body):
            for number, group in enumerate(plan.groups):
                if group[0].first_use == position:
                    body += self._wait(number)
            if position not in copied:
                body.append(in_version(self.rewriter.statement(one), self.tiles, slot))
        annotations = {key: value for key, value in node.annotations.items() if key != STAGES}
        return sequence([*start, loop(node, body=sequence(body, node.span), annotations=annotations)], node.span)

    @property
    def tiles(self) -> dict[Any, Any]:
        return {tile: self.rewriter.tiles[tile] for tile in self.plan.tiles}

    def _start(self, turn: Any, ahead: int | None) -> Any:
        """Start all copies for a turn, counted from 0, if there is such a turn; one group for each set of them.

        ahead: the number of the turn where it is known.
        """
        node, plan = self.plan.loop, self.plan
        extent = constant(node.extent)
        certain = ahead is not None and extent is not None and ahead < extent
        parts: list[Any] = []
        for group in plan.groups:
            copies = sequence([self._copy(producer, turn) for producer in group], node.span)
            if not certain:
                copies = branch(turn < node.extent, copies, None, node.span)
            parts += [copies, tir.Evaluate(operation("commit_group"), group[0].call.span)]
        return sequence(parts, node.span)

    def _copy(self, producer: Producer, turn: Any) -> Any:
        node, call = self.plan.loop, producer.call
        value = turn if constant(node.min) == 0 else node.min + turn
        source = call["source"]
        begin = [substitute(index, {node.loop_var: value}) for index in source.begin]
        extent = [substitute(index, {node.loop_var: value}) for index in source.extent]
        tile = self.rewriter.tiles[producer.target]
        slot = tir.floormod(turn, self.plan.stages)
        target = call["target"]
        encoded = operation(
            "async_copy",
            region(source.buffer, begin, extent),
            region(tile, [slot, *target.begin], [constant_like(1, node), *target.extent]),
            call["coalesced_width"],
            "open",
        )
        return tir.Evaluate(encoded, call.span)

    def _wait(self, number: int) -> list[Any]:
        """Wait for a group of this turn; after the first, start the copies of the turn `stages - 1` later.

        Groups are counted over all turns: this one is number `turn * groups + number`.
        """
        plan, groups = self.plan, len(self.plan.groups)
        span = plan.groups[number][0].call.span
        if number:
            return [tir.Evaluate(operation("wait_group", plan.stages * groups - number - 1), span)]
        node = plan.loop
        turn = node.loop_var if constant(node.min) == 0 else node.loop_var - node.min
        waiting = tir.Evaluate(operation("wait_group", (plan.stages - 1) * groups - 1), span)
        return [waiting, self._start(turn + (plan.stages - 1), None)]


def constant_like(value: int, node: Any) -> Any:
    """An index of the type of a loop's variable."""
    return tir.const(value, dtype_of(node.loop_var))


def with_versions(body: Any, plans: list[Pipeline]) -> Any:
    """The body of a launch with all plans carried out."""
    return _Rewriter(plans).statement(body)


def in_version(node: Any, tiles: dict[Any, Any], slot: Any) -> Any:
    """The statement with one version of each tile."""

    def load(access: Any) -> Any:
        if access.source not in tiles:
            return access
        return tir.BufferLoad(tiles[access.source], [slot, *access.indices])

    def call(one: Any) -> Any:
        if operation_name(one) != "region" or one.args[1].source not in tiles.values():
            return one
        place = one.args[1]
        return region(place.source, list(place.indices), [tir.const(1, "int32"), *one.args[2:]])

    return tvm_ffi.structural_map(node, [(Load, load), (tvm.ir.Call, call)])
