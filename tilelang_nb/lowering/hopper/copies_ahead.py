"""T.tma_copy in T.Pipelined: the copies of a turn start some turns ahead.

Before: a loop with `num_stages=S` whose turn copies into whole tiles, arrives at the barriers of the copies, and waits
for them with the parity of the turn: `ko % 2`.  After: tiles and barriers have S versions, turn t uses version t % S,
and a version is waited for with the parity of its lap: t // S % 2.  The copies of the first S - 1 turns, with their
arrivals, stand before the loop, and every turn starts those of the turn S - 1 later where it started its own.

A loop that does more with its barriers, its tiles or the arrays, or that is left early, stays as it is; so does a text
that names versions itself.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import tvm
from tvm import tirx as tir

from tilelang_nb.language.tile_program import TileCall, read, statement_name

from ..context import SHARED, LaunchContext
from ..legalise import whole
from ..loop_effects import Effects
from ..pipelines import STAGES, leaves, wanted_stages
from ..plan_pipelines import constant_like, in_version
from ..rewrite import (
    Load,
    as_int32,
    branch,
    constant,
    dtype_of,
    has,
    loop,
    map_children,
    sequence,
    statements,
    substitute,
    variables,
)
from ..shared_memory import MBARRIER, needed_shared_memory, shared_memory_limit
from ..views import views
from .tile_statements import element, encoded, evaluate

AHEAD = "loops of T.tma_copy"  # the fact: loops whose copies start ahead, with their stages
TURNS = 1024  # how many the parity of a wait is compared for, where the loop does not have fewer


@dataclass(frozen=True)
class CopyingLoop:
    """A loop whose copies start ahead.

    starts: positions of the copies and of the arrivals at their barriers.  waits: positions of the waits.
    """

    node: Any
    body: tuple[Any, ...]
    starts: tuple[int, ...]
    waits: tuple[int, ...]
    tiles: tuple[Any, ...]
    barriers: tuple[Any, ...]
    bound: dict[Any, Any]  # variables of the turn that the copies need, with their values


def start_ahead(function: Any, launch: LaunchContext) -> Any:
    """The launch with such loops carried out, each with as many stages as shared memory has room for."""
    loops: list[CopyingLoop] = []
    used: Counter[Any] = Counter()
    _count(function.body, used)

    def look(node: Any, nested: bool) -> None:
        if isinstance(node, tir.For) and wanted_stages(node) > 1 and not nested:
            found = _find(node, function, used)
            if found is not None:
                loops.append(found)
        inside = nested or isinstance(node, tir.For | tir.While)

        def visit(child: Any) -> Any:
            look(child, inside)
            return child

        map_children(node, visit)

    look(function.body, False)
    stages = {one.node.loop_var: wanted_stages(one.node) for one in loops}
    while loops:
        body = _Rewriter(loops, stages).statement(function.body)
        if needed_shared_memory(body) <= shared_memory_limit(launch.arch):
            launch.facts[AHEAD] = [(one, stages[one.node.loop_var]) for one in loops]
            return function.with_body(body)
        deepest = max(stages.values())
        stages = {var: min(count, deepest - 1) for var, count in stages.items()}
        loops = [one for one in loops if stages[one.node.loop_var] > 1]
    return function


def _count(node: Any, used: Counter[Any]) -> None:
    """How many statements use each buffer."""

    def visit(child: Any) -> Any:
        _count(child, used)
        return child

    if isinstance(node, tir.SeqStmt | tir.For | tir.While | tir.AttrStmt | tir.IfThenElse):
        map_children(node, visit)
    elif not isinstance(node, tir.AllocBuffer):
        used.update(variables(node))


def _call(node: Any) -> TileCall | None:
    return None if statement_name(node) is None else read(node.value, node.span)


def _find(node: Any, function: Any, used: Counter[Any]) -> CopyingLoop | None:
    """What the loop's copies are, where they can start ahead."""
    body = tuple(statements(node.body))
    calls = {at: call for at, one in enumerate(body) if (call := _call(one)) is not None}
    copies = [call for call in calls.values() if call.name == "tma_copy" and call["barrier"] is not None]
    if not copies or any(leaves(one) for one in body) or _runs_on(calls.values()):
        return None
    tiles = tuple(dict.fromkeys(call["target"].buffer for call in copies))
    barriers = tuple(dict.fromkeys(call["barrier"].buffer for call in copies))
    at_barriers = [at for at, one in enumerate(body) if variables(one) & set(barriers)]
    starts = [at for at in at_barriers if at in calls and calls[at].name in ("tma_copy", "barrier_arrive")]
    waits = [at for at in at_barriers if at not in starts]
    if any(at not in calls or calls[at].name != "barrier_wait" for at in waits) or not waits:
        return None
    if max(starts) > min(waits):  # some copy starts after a wait: it may be meant to
        return None
    if any(constant(index) is None for at in at_barriers for index in calls[at]["barrier"].begin):
        return None
    if not all(_is_of_turn(calls[at]["parity"], node) for at in waits):
        return None
    mine = set(tiles)
    uses = [at for at, one in enumerate(body) if variables(one) & mine and at not in starts]
    if any(at < max(waits) for at in uses) or not _are_alone(body, function, used, tiles, barriers):
        return None
    bound = _bindings(body, [body[at] for at in starts], copies)
    known = views(function.body)
    written: set[Any] = set().union(*(Effects(one, known).writes for one in body))
    if bound is None or any(call["source"].buffer in written for call in copies):
        return None
    if any(call["scope"] is not None or not whole(call["target"]) for call in copies):
        return None
    return CopyingLoop(node, body, tuple(starts), tuple(waits), tiles, barriers, bound)


def _runs_on(calls: Iterable[TileCall]) -> bool:
    """May a product of a turn still read its tiles in the next one?"""
    running = False
    for call in calls:
        if call.name == "gemm" and call["asynchronous"] is not None:
            running = True
        if call.name == "wait_wgmma" and call.integer("pending") == 0:
            running = False
    return running


def _is_of_turn(parity: Any, node: Any) -> bool:
    """Is it the parity of the number of the turn?"""
    low = constant(node.min)
    if low is None:
        return False
    extent = constant(node.extent)
    for turn in range(TURNS if extent is None else min(extent, TURNS)):
        value = _number(parity, node.loop_var, low + turn)
        if value is None or value & 1 != turn % 2:
            return False
    return True


_OPERATORS: dict[Any, Any] = {
    tir.Add: operator.add,
    tir.Sub: operator.sub,
    tir.Mul: operator.mul,
    tir.FloorDiv: operator.floordiv,
    tir.FloorMod: operator.mod,
    tir.BitwiseAnd: operator.and_,
    tir.BitwiseXor: operator.xor,
}


def _number(expr: Any, variable: Any, value: int) -> int | None:
    """An integer expression over one variable; None where it is more."""
    if constant(expr) is not None:
        return constant(expr)
    if isinstance(expr, tvm.ir.Var):
        return value if expr.same_as(variable) else None
    if isinstance(expr, tir.Cast):
        return _number(expr.value, variable, value)
    apply = _OPERATORS.get(type(expr))
    if apply is None:
        return None
    left, right = _number(expr.a, variable, value), _number(expr.b, variable, value)
    if left is None or right is None or (right == 0 and apply in (operator.floordiv, operator.mod)):
        return None
    return int(apply(left, right))


def _are_alone(
    body: tuple[Any, ...], function: Any, used: Counter[Any], tiles: tuple[Any, ...], barriers: tuple[Any, ...]
) -> bool:
    """Tiles and barriers are used in this loop only, beside the start of the barriers."""
    inside: Counter[Any] = Counter()
    for one in body:
        _count(one, inside)
    known = views(function.body)
    shown = {*known, *known.values()}
    started: Counter[Any] = Counter()

    def note(node: Any) -> Any:
        call = _call(node)
        if call is not None and call.name == "barrier_init":
            started[call["barrier"].buffer] += 1
        return map_children(node, note)

    note(function.body)
    return all(inside[one] + started[one] == used[one] and one not in shown for one in (*tiles, *barriers))


def _bindings(body: tuple[Any, ...], starts: list[Any], copies: list[TileCall]) -> dict[Any, Any] | None:
    """The values of the turn's variables that the copies need; None where one depends on memory."""
    values: dict[Any, Any] = {}
    for one in body:
        if isinstance(one, tir.Bind):
            values[one.var] = substitute(one.value, values)
    needed = {var: value for var, value in values.items() if any(var in variables(one) for one in starts)}
    if any(has(one, Load) for one in needed.values()):
        return None
    sources = [call["source"] for call in copies]
    return None if any(has(index, Load) for one in sources for index in (*one.begin, *one.extent)) else needed


class _Rewriter:
    """The launch with the loops carried out."""

    def __init__(self, loops: list[CopyingLoop], stages: dict[Any, int]):
        self.loops = {one.node.loop_var: one for one in loops}
        self.stages = stages
        self.versions: dict[Any, int] = {}  # of tiles and barriers
        self.renamed: dict[Any, Any] = {}
        for one in loops:
            count = stages[one.node.loop_var]
            for tile in one.tiles:
                self.versions[tile] = count
                shape = [count, *tile.shape]
                self.renamed[tile] = tir.decl_buffer(shape, dtype_of(tile), tile.name, scope=SHARED, layout=None)
            for barrier in one.barriers:
                self.versions[barrier] = count
                shape = [count * int(barrier.shape[0])]
                self.renamed[barrier] = tir.decl_buffer(shape, "uint64", barrier.name, scope=MBARRIER, layout=None)

    def statement(self, node: Any) -> Any:
        if isinstance(node, tir.AllocBuffer) and node.buffer in self.renamed:
            return tir.AllocBuffer(self.renamed[node.buffer], node.annotations, node.span)
        if isinstance(node, tir.For) and node.loop_var in self.loops:
            return self._loop(self.loops[node.loop_var])
        call = _call(node)
        if call is not None and call.name == "barrier_init" and call["barrier"].buffer in self.renamed:
            every = range(self.versions[call["barrier"].buffer])
            return sequence([self._at_barrier(call, tir.const(version, "int32")) for version in every], node.span)
        return map_children(node, self.statement)

    def _at_barrier(self, call: TileCall, version: Any) -> Any:
        """The operation at a version of its barrier: those of one barrier stand side by side."""
        barrier = call["barrier"]
        first = int(barrier.begin[0]) * self.versions[barrier.buffer]
        place = element(self.renamed[barrier.buffer], version + first if first else version)
        operands = [place if name == "barrier" else encoded(operand) for name, operand in call.operands.items()]
        return evaluate(call.name, call.span, *operands)

    def _loop(self, found: CopyingLoop) -> Any:
        node, stages = found.node, self.stages[found.node.loop_var]
        turn = node.loop_var if constant(node.min) == 0 else node.loop_var - node.min
        dtype = dtype_of(node.loop_var)
        slot, lap = tir.Var("stage", dtype), tir.Var("lap", dtype)
        body: list[Any] = [
            tir.Bind(slot, tir.floormod(turn, stages), node.span),
            tir.Bind(lap, tir.floormod(tir.floordiv(turn, stages), 2), node.span),
        ]
        tiles = {tile: self.renamed[tile] for tile in found.tiles}
        for at, one in enumerate(found.body):
            if at == found.starts[0]:
                body.append(self._start(found, turn + (stages - 1), None))
            if at in found.waits:
                call = read(one.value, one.span)
                waiting = TileCall(call.name, {**call.operands, "parity": as_int32(lap)}, call.span)
                body.append(self._at_barrier(waiting, slot))
            elif at not in found.starts:
                body.append(in_version(one, tiles, slot))
        annotations = {key: value for key, value in node.annotations.items() if key != STAGES}
        begin = [self._start(found, constant_like(number, node), number) for number in range(stages - 1)]
        turns = loop(node, body=sequence(body, node.span), annotations=annotations)
        return sequence([*begin, turns], node.span)

    def _start(self, found: CopyingLoop, turn: Any, number: int | None) -> Any:
        """The copies of a turn, counted from 0, with their arrivals, if there is such a turn.

        number: of the turn, where it is known.
        """
        node, stages = found.node, self.stages[found.node.loop_var]
        value = turn if constant(node.min) == 0 else node.min + turn
        slot = tir.floormod(turn, stages) if number is None else constant_like(number % stages, node)
        tiles = {tile: self.renamed[tile] for tile in found.tiles}
        parts = []
        for at in found.starts:
            one = substitute(substitute(found.body[at], found.bound), {node.loop_var: value})
            one = in_version(one, tiles, slot)
            parts.append(self._at_barrier(read(one.value, found.body[at].span), slot))
        extent = constant(node.extent)
        if number is not None and extent is not None and number < extent:
            return sequence(parts, node.span)
        return branch(turn < node.extent, sequence(parts, node.span), None, node.span)
