"""The stage that moves copies ahead: into a role of their own where that is asked for and possible, else with cp.async.

`launch.facts["roles"]` says what was decided: a `Specialisation`, or the reason against one.  Products of launches
without roles are those of warp groups where their tiles allow it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tvm import tirx as tir

from tilelang_nb.language.tile_program import operation_name

from ..context import LaunchContext
from ..gemm.wgmma import GROUPED, REFUSED
from ..ops.mbarriers import BY_HAND
from ..pipelines import Pipeline
from ..plan_pipelines import MOST_STAGES, find_pipelines, plan_pipelines
from ..rewrite import each_statement
from ..shared_memory import TILES, WRITTEN
from .by_hand import prepare
from .decision import DISABLE, Specialisation, enabled, specialisation
from .operand_tiles import operand_tiles
from .roles import specialised

ROLES = "roles"


def plan_copies(function: Any, launch: LaunchContext) -> Any:
    """The stage."""
    function = prepare(function, launch)
    if not enabled(launch):
        return plan_pipelines(function, launch)
    most = int(launch.options.get(MOST_STAGES, 1 << 30))
    plans = [replace(plan, stages=min(plan.stages, most)) for plan in find_pipelines(function)]
    if not any(map(_multiplies, plans)):
        return _in_step(plan_pipelines(function, launch), launch)
    found = specialisation(function, plans, launch)
    launch.facts[ROLES] = found
    if isinstance(found, str):
        return _in_step(plan_pipelines(function, launch), launch)
    launch.facts["text"] = function
    launch.facts["pipelines"] = found.plans
    return specialised(function, found, launch)


def _in_step(function: Any, launch: LaunchContext) -> Any:
    """The launch; its products by warp groups where all threads of the block execute them together."""
    if BY_HAND not in launch.facts and any(map(_is_product, each_statement(function.body))):
        found = operand_tiles(function, launch)
        launch.facts[REFUSED] = found.refused
        if found.accumulators:
            launch.facts[TILES], launch.facts[WRITTEN] = found.tiles, set(found.tiles)
            launch.facts[GROUPED] = found.accumulators
    return function


def _is_product(node: Any) -> bool:
    return isinstance(node, tir.Evaluate) and operation_name(node.value) == "gemm"


def _multiplies(plan: Pipeline) -> bool:
    return any(map(_is_product, plan.body))


def has_roles(launch: LaunchContext) -> bool:
    """Was the launch divided, or does it multiply by warp groups by the compiler's choice?"""
    return isinstance(launch.facts.get(ROLES), Specialisation) or GROUPED in launch.facts


def without_roles(options: dict[str, Any]) -> dict[str, Any]:
    """The options of a lowering that divides nothing."""
    return {**options, DISABLE[0]: True}
