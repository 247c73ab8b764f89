"""`T.wgmma_gemm` in pipelined loops: a product that still runs when its turn ends.

The copies of a later turn are started into the version of a tile that the turn before has left.  A product that reads
it and runs on would find what they bring; so it is waited for at once, as that of `T.gemm` is.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tvm import tirx as tir

from tilelang_nb.language.tile_program import TileCall, read, statement_name

from ..context import LaunchContext
from ..gemm.wgmma import OVER_AT_ONCE
from ..pipelines import Pipeline
from ..rewrite import each_statement, map_children
from .tile_statements import encoded, evaluate, is_product

REASON = "waited for at once, as copies of later turns overwrite its tiles"


def waited_for(function: Any, launch: LaunchContext) -> Any:
    """The launch, whose products read no version of a tile while copies that run ahead fill it."""
    found: dict[Any, set[Any]] = {}
    for plan in launch.facts.get("pipelines", ()):
        running = _still_running(plan) if plan.stages > 1 else set()
        if running:
            found[plan.loop.loop_var] = running
            launch.facts.setdefault(OVER_AT_ONCE, {}).update(dict.fromkeys(running, REASON))
    return function.with_body(_rewritten(function.body, found, set())) if found else function


def _still_running(plan: Pipeline) -> set[Any]:
    """Accumulators of products of tiles that are copied ahead, which may run when a turn of the loop ends."""
    running: set[Any] = set()
    for one in plan.body:
        if statement_name(one) == "wait_wgmma" and read(one.value).integer("pending") == 0:
            running.clear()
        for node in filter(is_product, each_statement(one)):
            call = read(node.value)
            if call["asynchronous"] is not None and {call["a"].buffer, call["b"].buffer} & set(plan.tiles):
                running.add(call["c"].buffer)
    return running


def _rewritten(node: Any, found: dict[Any, set[Any]], running: set[Any]) -> Any:
    if isinstance(node, tir.For):
        running = running | found.get(node.loop_var, set())
    if running and is_product(node):
        call = read(node.value, node.span)
        return _over(call) if call["c"].buffer in running else node
    return map_children(node, lambda one: _rewritten(one, found, running))


def _over(call: TileCall) -> Any:
    """The product, complete when the next statement begins."""
    made = replace(call, operands={**call.operands, "asynchronous": None})
    return evaluate(made.name, made.span, *(encoded(operand) for operand in made.operands.values()))
