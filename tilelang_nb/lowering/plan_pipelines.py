"""plan-pipelines: the copies of T.Pipelined loops run ahead of their use.

Before: a launch as the front end emits it.  After: in a loop with `num_stages=S`, S above 1, the copies from global to
shared memory that may run ahead do: their tiles have S versions, the first S - 1 are copied before the loop, and every
turn starts the copies for the turn S - 1 later.  The copies of a turn are one group, and the turn waits for it where
the first of its tiles is used.

Which copies may run ahead is decided in `pipelines.py`; `_Ring` turns a plan into a ring of cp.async groups.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import tvm
import tvm_ffi
from tvm import tirx as tir

from tilelang_nb.language.tile_program import operation, operation_name, region

from .architecture import capability
from .context import SHARED, LaunchContext
from .pipelines import STAGES, CopyInTurn, Pipeline, Producer, find_pipelines
from .rewrite import Load, branch, constant, dtype_of, loop, map_children, sequence, statements, substitute
from .shared_memory import needed_shared_memory, shared_memory_limit

MOST_STAGES = "tl.most_stages"  # the option that lowering gives itself when tiles of its own did not fit
VERSIONS = "versions of tiles"  # the fact: the tile with all its versions, by the tile of the text
IN_TURN = "copies in their turn"  # the fact: copies of pipelined loops that cannot run ahead
FIRST = 80  # the architecture that has asynchronous copies


def plan_pipelines(function: Any, launch: LaunchContext) -> Any:
    """The stage.  `launch.facts["pipelines"]` gets the plans; with too little shared memory they have fewer stages.

    A plan of one stage is a loop that stays as it is.
    """
    staying: list[CopyInTurn] = []
    every = [_in_one_group(plan) for plan in find_pipelines(function, staying)]
    launch.facts["text"] = function
    launch.facts[IN_TURN] = tuple(staying)
    if capability(launch.arch) < FIRST:
        reason = f"asynchronous copies need sm_{FIRST}"
        launch.facts["pipelines"] = tuple(replace(plan, stages=1, reason=reason) for plan in every)
        return function
    most = int(launch.options.get(MOST_STAGES, 1 << 30))
    pipelines = [_at_most(plan, most) for plan in every if most > 1]
    limit = shared_memory_limit(launch.arch)
    while pipelines:
        rewriter = _Rewriter(pipelines)
        body = rewriter.statement(function.body)
        if needed_shared_memory(body) <= limit:
            launch.orders.update(
                {new: launch.orders[old] for old, new in rewriter.tiles.items() if old in launch.orders}
            )
            launch.facts[VERSIONS] = rewriter.tiles
            left = {plan.loop.loop_var: plan for plan in pipelines}
            launch.facts["pipelines"] = tuple(left.get(plan.loop.loop_var, _at_most(plan, 1)) for plan in every)
            return function.with_body(body)
        deepest = max(pipeline.stages for pipeline in pipelines)
        pipelines = [plan for plan in (_at_most(plan, deepest - 1) for plan in pipelines) if plan.stages > 1]
    launch.facts["pipelines"] = tuple(_at_most(plan, 1) for plan in every)
    return function


def _in_one_group(plan: Pipeline) -> Pipeline:
    """All copies of a turn together: they start at one place, a turn or more ahead, and one wait needs one barrier."""
    together = tuple(producer for group in plan.groups for producer in group)
    return replace(plan, groups=(together,)) if len(plan.groups) > 1 else plan


def _at_most(plan: Pipeline, stages: int) -> Pipeline:
    if plan.stages <= stages:
        return plan
    return replace(plan, stages=stages, reason=f"{plan.wanted} stages do not fit into shared memory")


def deepest_pipeline(launch: LaunchContext) -> int:
    """The stages of the longest pipeline of a launch; 1 for none."""
    return max((plan.stages for plan in launch.facts.get("pipelines", ())), default=1)


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
        every = [producer for group in plan.groups for producer in group]
        copied = {producer.position for producer in every if producer.inner is None}
        body: list[Any] = [tir.Bind(slot, tir.floormod(turn, plan.stages), node.span)]
        for position, one in enumerate(plan.body):
            for number, group in enumerate(plan.groups):
                if group[0].first_use == position:
                    body += self._wait(number)
            if position not in copied:
                moved = {producer.inner for producer in every if producer.position == position}
                left = _without(one, moved) if moved else one
                body.append(in_version(self.rewriter.statement(left), self.tiles, slot))
        annotations = {key: value for key, value in node.annotations.items() if key != STAGES}
        turns = loop(node, body=sequence(body, node.span), annotations=annotations)
        # Copies for turns that a `break` leaves out would land in what comes after.
        end = [tir.Evaluate(operation("wait_group", 0), node.span)] if plan.left_early else []
        return sequence([*start, turns, *end], node.span)

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
            copies = sequence([self._copies(list(some), turn) for _, some in groupby(group, _condition)], node.span)
            if not certain:
                copies = branch(turn < node.extent, copies, None, node.span)
            parts += [copies, tir.Evaluate(operation("commit_group"), group[0].call.span)]
        return sequence(parts, node.span)

    def _copies(self, producers: list[Producer], turn: Any) -> Any:
        """The copies of a turn that stand under one condition, or under none."""
        copies = sequence([self._copy(producer, turn) for producer in producers], self.plan.loop.span)
        condition = producers[0].condition
        if condition is None:
            return copies
        place = {self.plan.loop.loop_var: self._value(turn)}
        return branch(substitute(condition, place), copies, None, producers[0].call.span)

    def _value(self, turn: Any) -> Any:
        """The loop variable in a turn counted from 0."""
        node = self.plan.loop
        return turn if constant(node.min) == 0 else node.min + turn

    def _copy(self, producer: Producer, turn: Any) -> Any:
        node, call, value = self.plan.loop, producer.call, self._value(turn)
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


def _condition(producer: Producer) -> int | None:
    """Equal for copies of one `if`."""
    return None if producer.condition is None else producer.position


def _without(node: Any, moved: set[int | None]) -> Any:
    """An `if` without the statements at these positions."""
    kept = [one for at, one in enumerate(statements(node.then_case)) if at not in moved]
    return branch(node.condition, sequence(kept, node.span), node.else_case, node.span)


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
