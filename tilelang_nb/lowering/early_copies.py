"""copy-early: a tile that only a pipelined loop reads is copied together with the loop's first tiles.

Before: `T.copy` of a tile in front of the loop loads it into registers and stores it, and waits for that; then the
copies of the first turns start.  After: it is an asynchronous copy of their first group, which the loop waits for.

It is done where nothing reads the tile before the loop has waited, nothing reads it after the loop, and nothing
between the copy and the loop writes what it copies, or orders accesses of blocks.
"""

from __future__ import annotations

from typing import Any

from tvm import tirx as tir

from tilelang_nb.language.tile_program import operation, read, region, statement_name

from .architecture import capability
from .context import SHARED, LaunchContext
from .loop_effects import Effects
from .plan_pipelines import FIRST
from .rewrite import constant, dtype_of, map_children, scope, sequence, statements
from .views import root, views


def copy_early(function: Any, launch: LaunchContext) -> Any:
    """The stage."""
    loops = {plan.loop.loop_var for plan in launch.facts.get("pipelines", ()) if plan.stages > 1}
    roles = launch.facts.get("roles")
    if capability(launch.arch) < FIRST or not loops or not (roles is None or isinstance(roles, str)):
        return function
    body = _of_block(function.body, loops, views(function.body))
    return function if body.same_as(function.body) else function.with_body(body)


def _of_block(node: Any, loops: set[Any], sources: dict[Any, Any]) -> Any:
    if isinstance(node, tir.AttrStmt) and node.attr_key == "thread_extent":
        return map_children(node, lambda body: _of_block(body, loops, sources))
    parts = statements(node)
    names = [statement_name(one) for one in parts]
    effects: dict[int, Effects] = {}

    def touched(position: int) -> Effects:
        if position not in effects:
            effects[position] = Effects(parts[position], sources)
        return effects[position]

    changed, unwaited = False, set()  # loops that may have no turn, and then do not wait
    for position, name in enumerate(names):
        if name != "copy":
            continue
        commit = next((at for at in range(position, len(parts)) if names[at] == "commit_group"), None)
        first = next((at for at in range(position, len(parts)) if _is_one(parts[at], loops)), None)
        if commit is None or first is None or commit > first:
            continue
        call = read(parts[position].value, parts[position].span)
        tile, source = call["target"].buffer, call["source"].buffer
        if scope(source) != "global" or scope(tile) != SHARED or dtype_of(source) != dtype_of(tile):
            continue
        if tile in sources or tile in sources.values() or call["coalesced_width"] is not None:
            continue
        origin = root(source, sources)
        between = [touched(at) for at in range(position + 1, first)]
        elsewhere = [at for at in range(len(parts)) if at not in (position, first) and not _allocates(parts[at], tile)]
        if any(_uses(touched(at), tile) for at in elsewhere) or any(
            origin in effect.writes or effect.orders for effect in between
        ):
            continue
        if not _waits_first(parts[first], tile, sources):
            continue
        begin = [region(one.buffer, one.begin, one.extent) for one in (call["source"], call["target"])]
        parts[position] = tir.Evaluate(operation("async_copy", *begin, None, "open"), parts[position].span)
        names[position], changed = "async_copy", True
        effects.pop(position, None)
        if not _certain(parts[first]):
            unwaited.add(first)
    if not changed:
        return node
    over = tir.Evaluate(operation("wait_group", 0), node.span)
    return sequence(
        [part for at, one in enumerate(parts) for part in ((one, over) if at in unwaited else (one,))], node.span
    )


def _is_one(node: Any, loops: set[Any]) -> bool:
    return isinstance(node, tir.For) and node.loop_var in loops


def _allocates(node: Any, tile: Any) -> bool:
    return isinstance(node, tir.AllocBuffer) and node.buffer.same_as(tile)


def _uses(effect: Effects, tile: Any) -> bool:
    return tile in effect.reads or tile in effect.writes or tile in effect.other


def _waits_first(node: Any, tile: Any, sources: dict[Any, Any]) -> bool:
    """Is the tile only read in the loop, and only after the loop has waited?"""
    waited = False
    for one in statements(node.body):
        waited = waited or statement_name(one) == "wait_group"
        effect = Effects(one, sources)
        if tile in effect.writes or tile in effect.other or (tile in effect.reads and not waited):
            return False
    return waited


def _certain(node: Any) -> bool:
    """Has the loop a turn?  Without one the copy must be over before other tiles take the place of this one."""
    extent = constant(node.extent)
    return extent is not None and extent > 0
