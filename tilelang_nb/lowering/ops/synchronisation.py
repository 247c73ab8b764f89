"""Barriers that the user wrote: T.sync_threads, T.named_barrier_arrive, T.sync_warp, T.sync_grid,
and fences of threads."""

from __future__ import annotations

from typing import Any

from tvm import tirx as tir
from tvm.ir import StringImm
from tvm.script.tirx import ptx

from tilelang_nb.language.tile_program import TileCall, read, statement_name
from tilelang_nb.source import catalogue as say

from ..context import LaunchContext
from ..nests import is_part, threads_of_part
from ..rewrite import dtype_of, each_statement

NUMBERS = "numbers of named barriers"  # the fact: those of the text -> those that they get
MOST_BARRIERS = 16  # of a block; 0 is that of all its threads


def number_barriers(function: Any, launch: LaunchContext) -> None:
    """Named barriers of the text that the compiler uses for the parts of `T.ws` get other numbers.

    TL302 where there are too few: `launch.facts` then says nothing of them.
    """
    own: set[int] = set()
    named: dict[int, tuple[int, Any]] = {}  # by number: threads that it counts, and where it is used first
    for node in each_statement(function.body):
        if is_part(node):
            threads = threads_of_part(node, launch)
            own |= {1 + threads.group} if threads is not None and threads.group is not None else set()
        if statement_name(node) not in ("sync_threads", "named_arrive"):
            continue
        call = read(node.value, node.span)
        if call["barrier_id"] is not None:
            named.setdefault(call.integer("barrier_id"), (call.integer("arrive_count"), node.span))
    partial = {number for number, (count, _) in named.items() if number == 0 and count != launch.threads}
    moving = [number for number in named if number in own or number in partial]
    free = [number for number in reversed(range(1, MOST_BARRIERS)) if number not in own and number not in named]
    if len(moving) > len(free):
        problem = f"{len(named)} named barriers beside those of {len(own)} parts of `T.ws`; a block has {MOST_BARRIERS}"
        launch.report(say.TargetUnavailable(problem=problem, remedy="use fewer of them"), named[moving[-1]][1])
        return
    launch.facts[NUMBERS] = dict(zip(moving, free))


def lower(call: TileCall, launch: LaunchContext) -> tir.Stmt:
    """sync_threads: of the block, or a named barrier of some of its warps."""
    if call.name == "sync_grid":
        return tir.Evaluate(tir.call_intrin("void", "tirx.tvm_storage_sync", StringImm("global")), call.span)
    if call.name == "thread_fence":
        return tir.Evaluate(tir.call_extern("void", call["function"]), call.span)
    if call.name == "sync_warp":
        mask = call["mask"]
        if mask is None:
            mask = tir.const(0xFFFFFFFF, "uint32")
        return tir.Evaluate(tir.call_extern("void", "__syncwarp", _unsigned(mask)), call.span)
    if call.name == "named_arrive":
        numbers = _number(call, launch), call.integer("arrive_count")
        return tir.Evaluate(ptx["bar.arrive"](*(tir.const(number, "uint32") for number in numbers)), call.span)
    if call["barrier_id"] is None:
        return tir.Evaluate(tir.call_intrin("void", "tirx.tvm_storage_sync", StringImm("shared")), call.span)
    count = call["arrive_count"]
    threads = launch.thread_count if count is None else int(count)
    return tir.Evaluate(ptx["bar.sync"](_number(call, launch), threads), call.span)


def _number(call: TileCall, launch: LaunchContext) -> int:
    number = call.integer("barrier_id")
    found: int = launch.facts.get(NUMBERS, {}).get(number, number)
    return found


def _unsigned(value: Any) -> Any:
    if isinstance(value, tir.IntImm):
        return tir.const(int(value.value) & 0xFFFFFFFF, "uint32")
    return value if dtype_of(value) == "uint32" else tir.Cast("uint32", value)
