"""The stage that moves copies ahead: into a role of their own where that is asked for and possible, else with cp.async.

`launch.facts["roles"]` says what was decided: a `Specialisation`, or the reason against one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tvm import tirx as tir

from tilelang_nb.language.tile_program import operation_name

from ..context import LaunchContext
from ..pipelines import Pipeline
from ..plan_pipelines import MOST_STAGES, find_pipelines, plan_pipelines
from .by_hand import prepare
from .decision import DISABLE, Specialisation, enabled, specialisation
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
        return plan_pipelines(function, launch)
    found = specialisation(function, plans, launch)
    launch.facts[ROLES] = found
    if isinstance(found, str):
        return plan_pipelines(function, launch)
    launch.facts["text"] = function
    launch.facts["pipelines"] = found.plans
    return specialised(function, found, launch)


def _multiplies(plan: Pipeline) -> bool:
    return any(isinstance(one, tir.Evaluate) and operation_name(one.value) == "gemm" for one in plan.body)


def has_roles(launch: LaunchContext) -> bool:
    """Was the launch divided?"""
    return isinstance(launch.facts.get(ROLES), Specialisation)


def without_roles(options: dict[str, Any]) -> dict[str, Any]:
    """The options of a lowering that divides nothing."""
    return {**options, DISABLE[0]: True}
