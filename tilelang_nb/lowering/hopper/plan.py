"""The stage that moves copies ahead: into a role of their own where that is asked for and possible, else with cp.async.

`launch.facts["roles"]` says what was decided: a `Specialisation`, or the reason against one (`NoRoles`).  Products of
launches without roles are those of warp groups where their tiles allow it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tvm import tirx as tir

from tilelang_nb.language.tile_program import read, statement_name
from tilelang_nb.layout.wgmma import GROUP
from tilelang_nb.source.diagnostic import Diagnostic

from ..annotated_layouts import give_way
from ..chosen_groups import as_parts
from ..context import LaunchContext
from ..fragments_of_parts import own_fragments
from ..gemm.wgmma import GROUPED, MIXED, REFUSED, RUNNING
from ..ops.mbarriers import BY_HAND
from ..pipelines import Pipeline
from ..plan_pipelines import MOST_STAGES, find_pipelines, plan_pipelines
from ..rewrite import dtype_of, each_statement, map_children, sequence
from ..shared_memory import MAPPED, TILES, WRITTEN
from .by_hand import prepare
from .decision import ARCHITECTURE, DISABLE, NoRoles, Specialisation, enabled, specialisation
from .operand_tiles import ENABLE, operand_tiles
from .roles import specialised
from .running_products import waited_for
from .tile_statements import evaluate, is_product, whole_of

ROLES = "roles"
CHOSEN = "warp groups by choice"  # the fact: products of warp groups in a launch that can be lowered without them
FAILED = "tl.failed_roles"  # the option that lowering gives itself: by launch, why its division failed, and where


def plan_copies(function: Any, launch: LaunchContext) -> Any:
    """The stage."""
    function = prepare(own_fragments(as_parts(function, launch), launch), launch)
    if not enabled(launch):
        planned = plan_pipelines(function, launch)
        reason = _not_tried(function, launch)
        if reason and any(map(multiplies, launch.facts["pipelines"])):
            launch.facts[ROLES] = reason
        return _in_step(planned, launch)
    most = int(launch.options.get(MOST_STAGES, 1 << 30))
    plans = [replace(plan, stages=min(plan.stages, most)) for plan in find_pipelines(function)]
    if not any(map(multiplies, plans)):
        return _in_step(plan_pipelines(function, launch), launch)
    found = specialisation(function, plans, launch)
    launch.facts[ROLES] = found
    if isinstance(found, str):
        return _in_step(plan_pipelines(function, launch), launch)
    launch.facts["text"] = function
    launch.facts["pipelines"] = found.plans
    return specialised(function, found, launch)


def _in_step(function: Any, launch: LaunchContext) -> Any:
    """The launch; products by warp groups where all threads of a block or of a part of `T.ws` execute them together."""
    calls = [read(node.value, node.span) for node in each_statement(function.body) if is_product(node)]
    asked = {call["c"].buffer for call in calls if call["asynchronous"] is not None}  # by `T.wgmma_gemm`
    every = bool(calls) and (enabled(launch) or BY_HAND in launch.facts)
    if launch.arch != ARCHITECTURE or not (every or asked):
        return function
    off = _off(launch.function, launch)
    if off is not None:
        launch.facts[REFUSED] = dict.fromkeys(asked, str(off))
        return function
    function = waited_for(function, launch)
    found = operand_tiles(function, launch, asked, every)
    launch.facts[REFUSED] = found.refused
    if found.accumulators:
        launch.facts[TILES] = {**launch.facts.get(TILES, {}), **found.tiles}
        launch.facts[GROUPED] = found.accumulators
        if found.running:
            launch.facts[RUNNING] = found.running
            if asked - found.accumulators:
                launch.facts[MIXED] = True
        launch.facts[WRITTEN] = found.written & found.tiles.keys()
        launch.facts[MAPPED] = launch.facts.get(MAPPED, set()) | (found.touched & found.tiles.keys())
        for tile in found.tiles.keys() & launch.orders.keys():
            give_way(tile, found.tiles[tile], launch)
        return function.with_body(_written(function.body, found.accumulators))
        if BY_HAND not in launch.facts:
            launch.facts[CHOSEN] = True
    return function


def _written(node: Any, accumulators: set[Any]) -> Any:
    """The statement, with all of an accumulator in its registers where constants are stored into it."""
    buffer = _filled(node)
    if buffer is None:
        return map_children(node, lambda one: _written(one, accumulators))
    if buffer not in accumulators or dtype_of(buffer) != "float32":
        return node
    return sequence([node, evaluate("written_accumulator", node.span, whole_of(buffer))], node.span)


def _filled(node: Any) -> Any:
    """What a statement fills with one value, as `T.clear` does, or a loop of `T.Parallel`; None for any other one."""
    if statement_name(node) == "fill":
        return read(node.value, node.span)["target"].buffer
    inner = node
    while isinstance(inner, tir.For) and int(inner.kind) == tir.ForKind.PARALLEL:
        inner = inner.body
    if (
        inner is node
        or not isinstance(inner, tir.BufferStore)
        or not isinstance(inner.value, tir.FloatImm | tir.IntImm)
    ):
        return None
    return inner.buffer


def multiplies(plan: Pipeline) -> bool:
    """Do products stand in the loop?"""
    return any(map(is_product, each_statement(plan.loop.body)))


def _not_tried(function: Any, launch: LaunchContext) -> NoRoles | None:
    """Why a launch that might be divided is not, before its text is looked at; None where nobody asks for it."""
    asked = launch.arch == ARCHITECTURE and launch.options.get(ENABLE)
    return _off(function, launch) if asked else None


def _off(function: Any, launch: LaunchContext) -> NoRoles | None:
    """Why nothing of a launch is left to warp groups; None where it may be."""
    failed = launch.options.get(FAILED, {}).get(_name(function))
    if failed is not None:
        return NoRoles(*failed)
    off = next((name for name in DISABLE if launch.options.get(name)), None)
    return None if off is None else NoRoles(f"the option `{off}` says so")


def _name(function: Any) -> str:
    return str(function.attrs["global_symbol"])


def has_roles(launch: LaunchContext) -> bool:
    """Was the launch divided, or does it multiply by warp groups where warps could do it, too?"""
    return isinstance(launch.facts.get(ROLES), Specialisation) or CHOSEN in launch.facts


def added_threads(launch: LaunchContext) -> int:
    """How many threads of the launch are not of its text: those that copy."""
    return GROUP if isinstance(launch.facts.get(ROLES), Specialisation) else 0


def without_roles(
    options: dict[str, Any], launches: Sequence[LaunchContext], fault: Diagnostic | None
) -> dict[str, Any]:
    """The options of a lowering that divides nothing, with the reasons: what was found in each launch that was divided,
    or in the others.  fault: of a stage.
    """
    reasons = {}
    for launch in launches:
        found = next((one for one in launch.diagnostics if one.severity == "error"), None)
        if has_roles(launch):
            divided = isinstance(launch.facts.get(ROLES), Specialisation)
            reasons[_name(launch.function)] = _reason(found or fault, "divided" if divided else "with warp groups")
        else:
            reasons[_name(launch.function)] = _reason(None, "")
    return {**options, DISABLE[0]: True, FAILED: reasons}


def _reason(found: Diagnostic | None, how: str) -> tuple[str, Any]:
    if found is None:
        return "another launch of the kernel could not be lowered with its products by warp groups", None
    report = getattr(found.said, "report", "")
    if report:
        return f"{how}, {found.message}, a fault of tilelang_nb; please report it: {report}", None
    return f"{how}, it could not be compiled: {found.message}", found.span
