"""warp_group_turn: computing warp groups start their products one after another.

While one group multiplies, the others do what lies between products.  A named barrier belongs to each group: the group
itself waits at it, and the group before it arrives there when its products are started.  action "open", in front of all
products: the last group lets the first one begin; "take": the group waits until it may start; "give": the next group
may; "close", behind all products: the first group takes what the last one gave, so that the barriers are as before.
groups: how many warp groups take turns, the first ones of the block.
"""

from __future__ import annotations

from typing import Any

from tvm import tirx as tir
from tvm.script.tirx import ptx

from tilelang_nb.language.tile_program import TileCall
from tilelang_nb.layout.wgmma import GROUP

from ..context import LaunchContext
from ..index_arithmetic import fold
from .accumulator_store import LAST_BARRIER

FIRST_TURN = LAST_BARRIER + 1  # number of the named barrier of the first group
# By these names no stage takes them for barriers behind which the groups see what they wrote.
_WAIT, _ARRIVE = "barrier.sync.aligned", "barrier.arrive.aligned"
_THREADS = tir.const(2 * GROUP, "uint32")  # of the group that waits, and of the one that arrives


def lower(call: TileCall, launch: LaunchContext) -> tir.Stmt:
    """One statement of all threads of the groups, or of one group."""
    groups, action = call.integer("groups"), call["action"]
    group = fold(launch.thread // GROUP, launch.analyzer)
    if action == "take":
        return tir.Evaluate(ptx[_WAIT](_number(group), _THREADS), call.span)
    if action == "give":
        following = fold(tir.floormod(group + 1, groups), launch.analyzer)
        return tir.Evaluate(ptx[_ARRIVE](_number(following), _THREADS), call.span)
    first = _number(tir.const(0, "int32"))
    if action == "open":
        last = tir.EQ(group, tir.const(groups - 1, "int32"))
        return tir.IfThenElse(last, tir.Evaluate(ptx[_ARRIVE](first, _THREADS)), None, call.span)
    assert action == "close", action
    return tir.IfThenElse(
        tir.EQ(group, tir.const(0, "int32")), tir.Evaluate(ptx[_WAIT](first, _THREADS)), None, call.span
    )


def _number(group: Any) -> Any:
    return tir.Cast("uint32", group + FIRST_TURN)
