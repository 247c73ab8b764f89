"""The stages of lowering in their order, each with the reason for its place, and the driver that runs them."""

from __future__ import annotations

import time
import traceback
from collections.abc import Mapping
from typing import Any

import tvm
import tvm_ffi
from tvm import tirx as tir

from tilelang_nb.source import catalogue as say
from tilelang_nb.source.collector import collector_paused
from tilelang_nb.source.diagnostic import Diagnostic

from .barriers import insert_barriers
from .buffer_maps import buffer_maps
from .context import LaunchContext, Lowered, Snapshot, Stage, Workspace
from .decisions import decisions
from .early_copies import copy_early
from .guards import GUARDS, guard_accesses
from .hopper.persistent import pass_count
from .hopper.plan import added_threads, has_roles, plan_copies, without_roles
from .hopper.tensor_maps import pass_tensor_maps
from .index_width import widen_indices
from .infer_layouts import infer_layouts
from .late_masks import add_masks_later
from .late_sums import sum_lanes_later
from .launches import split_launches
from .legalise import legalise
from .lower_tile_operations import lower_tile_operations
from .operands_ahead import load_operands_ahead
from .operands_kept import keep_operands
from .pipeline_steps import pipeline_steps
from .place_copies import place_copies
from .plan_pipelines import MOST_STAGES, deepest_pipeline
from .shared_memory import EXCEEDED, plan_shared_memory
from .simplify import simplify
from .skip_masks import skip_masks
from .skip_scaling import skip_scaling
from .slot_counters import count_slots
from .stage_results import stage_results
from .start_copies import start_copies
from .swizzle import swizzle_shared_memory
from .turn_barriers import order_turns

STAGES = (
    Stage("plan-pipelines", plan_copies, why="copies are moved while they are still operations on whole tiles"),
    Stage("copy-early", copy_early, why="the copies of the first turns stand in front of their loops now"),
    Stage("stage-results", stage_results, why="the plan has said how much shared memory there is"),
    Stage("skip-masks", skip_masks, why="loops over tiles still have conditions on whole elements"),
    Stage("legalise", legalise, why="later stages see only element-wise loops and a few operations on whole tiles"),
    Stage("infer-layouts", infer_layouts, why="a loop is dealt to the threads that hold its fragments"),
    Stage("lower-tile-operations", lower_tile_operations, why="threads, registers and vectors follow from the layouts"),
    Stage("sum-lanes-later", sum_lanes_later, why="reductions are loops over registers and shuffles now"),
    Stage("guard-accesses", guard_accesses, why="only now every index is an expression over thread and block"),
    Stage("start-copies", start_copies, why="guards have said which bytes of a vector are read"),
    Stage("keep-operands", keep_operands, why="loads of operands are statements of their own"),
    Stage("add-masks-later", add_masks_later, why="operands that are kept take registers"),
    Stage("order-turns", order_turns, why="the products of a turn are known, and its copies are still together"),
    Stage("skip-scaling", skip_scaling, why="it pays in turns that are not held together by the barrier of the block"),
    Stage("place-copies", place_copies, why="the products of a turn, and the registers that they take, are known"),
    Stage(
        "load-operands-ahead", load_operands_ahead, why="the copies, which stay in their order, are instructions now"
    ),
    Stage("plan-shared-memory", plan_shared_memory, why="barriers depend on which tiles share a place"),
    Stage("insert-barriers", insert_barriers, why="all accesses to shared memory are visible, at their places"),
    Stage("swizzle-shared-memory", swizzle_shared_memory, why="barriers compare places by the indices of the text"),
    Stage("count-slots", count_slots, why="barriers compare versions of tiles by the turns that they belong to"),
    Stage("widen-indices", widen_indices, why="no later stage makes an index"),
    Stage("simplify", simplify, why="what the stages left behind is folded last; float arithmetic stays as written"),
)
# The stages that look for mistakes run all the same after one was found, so that all are told at once.
LAST_AFTER_ERROR = {stage.name for stage in STAGES[5:]}
FIRST = ("tile", "as the front end emits it")
SPLIT = ("split-launches", "every launch is lowered for itself")
LAST = ("thread", "what the simulator runs and the device code is printed from")


def lower(program: Any, *, arch: str = "sm_90a", options: Mapping[str, Any] | None = None) -> Lowered:
    """Lower a TileProgram to thread programs.

    Never raises for a mistake in the kernel: those are among the diagnostics, and after an error `launches` is
    empty.  A fault of a stage is TL900.
    """
    with collector_paused():
        return _lower(program, arch, dict(options or {}))


def _lower(program: Any, arch: str, options: dict[str, Any]) -> Lowered:
    started = time.perf_counter()
    snapshots: list[Snapshot] = [
        Snapshot(*FIRST, tvm.IRModule({program.name: program.function}), 0.0, True),
    ]
    stage = SPLIT[0]
    launches: list[tuple[Any, LaunchContext]] = []
    workspaces: tuple[Workspace, ...] = ()
    faults: list[Diagnostic] = []
    try:
        launches, workspaces = split_launches(
            program.function, program.name, program.text, arch, options, program.layouts
        )
        functions = [function for function, _ in launches]
        changed = len(functions) != 1 or bool(workspaces) or not functions[0].body.same_as(program.function.body)
        snapshots.append(_snapshot(*SPLIT, functions, started, changed))
        for entry in STAGES:
            stage, started = entry.name, time.perf_counter()
            try:
                after = [
                    _with_span(entry.run(function, launch), program.function.span)
                    for function, (_, launch) in zip(functions, launches)
                ]
            except Exception:
                if _failed(launches):
                    break  # it has been said what is wrong
                raise
            changed = any(_differ(a, b) for a, b in zip(after, functions))
            functions = after
            snapshots.append(_snapshot(entry.name, entry.why, functions, started, changed))
            if _failed(launches) and entry.name in LAST_AFTER_ERROR:
                break
        else:
            functions = [
                pass_tensor_maps(pass_count(function, launch), launch)
                for function, (_, launch) in zip(functions, launches)
            ]
            snapshots.append(_snapshot(*LAST, functions, time.perf_counter(), False))
    except Exception as error:
        faults.append(_internal_error(stage, program, error))
    deepest = max((deepest_pipeline(launch) for _, launch in launches), default=1)
    if deepest > 1 and any(EXCEEDED in launch.facts for _, launch in launches):
        # Tiles of the compiler's own came on top of what the plan of the pipelines knew.
        return _lower(program, arch, {**options, MOST_STAGES: deepest - 1})
    if any(has_roles(launch) for _, launch in launches) and (faults or _failed(launches)):
        # What is wrong then is wrong with the text.
        fault = faults[0] if faults else None
        return _lower(program, arch, without_roles(options, [launch for _, launch in launches], fault))
    found = [*(diagnostic for _, launch in launches for diagnostic in launch.diagnostics), *faults]
    failed = bool(faults) or _failed(launches)
    return Lowered(
        snapshots=tuple(snapshots),
        launches=() if failed else tuple(functions),
        workspaces=workspaces,
        diagnostics=tuple(sorted(dict.fromkeys(found), key=lambda diagnostic: diagnostic.order)),
        swizzles=tuple(_swizzle(launch) for _, launch in launches),
        shared_memory=tuple(tile for _, launch in launches for tile in launch.facts.get("shared_memory", ())),
        layouts={buffer.name: layout for _, launch in launches for buffer, layout in launch.layouts.items()},
        decisions=() if failed else tuple(one for _, launch in launches for one in decisions(launch)),
        pipelines=()
        if failed
        else tuple(one for _, launch in launches for one in pipeline_steps(launch, len(launches) > 1)),
        maps=() if failed else tuple(one for _, launch in launches for one in buffer_maps(launch, len(launches) > 1)),
        failed_in=stage if failed else "",
        guards=() if failed else tuple(frozenset(launch.facts.get(GUARDS, ())) for _, launch in launches),
        added_threads=() if failed else tuple(added_threads(launch) for _, launch in launches),
    )


def _with_span(function: Any, span: Any) -> Any:
    """`with_body` drops the place of a function."""
    if function.span is not None:
        return function
    return tir.PrimFunc(list(function.params), function.body, function.ret_type, function.attrs, span)


def _differ(one: Any, other: Any) -> bool:
    return not one.same_as(other) and not tvm_ffi.structural_equal(one, other, map_free_vars=True)


def _swizzle(launch: LaunchContext) -> tuple[int, str] | None:
    panel, order, enabled = launch.facts.get("swizzle", (0, "row", False))
    return (panel, order) if enabled else None


def _failed(launches: list[tuple[Any, LaunchContext]]) -> bool:
    return any(found.severity == "error" for _, launch in launches for found in launch.diagnostics)


def _snapshot(name: str, reason: str, functions: list[Any], started: float, changed: bool) -> Snapshot:
    module = tvm.IRModule({str(function.attrs["global_symbol"]): function for function in functions})
    return Snapshot(name, reason, module, (time.perf_counter() - started) * 1e3, changed)


def _internal_error(stage: str, program: Any, error: Exception) -> Diagnostic:
    """A fault of a stage, as one line to report: the exception and the innermost places of this package."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "tilelang_nb" in frame.filename]
    places = " < ".join(f"{frame.name}:{frame.lineno}" for frame in reversed(frames[-3:]))
    text = (str(error).strip().splitlines() or [""])[0][:160]
    report = f"{stage}: {type(error).__name__}: {text} ({places})"
    return say.InternalError(problem=f"lowering failed in {stage}", report=report).at(program.span)
