"""Which copies of T.Pipelined loops may run ahead of their use.

A copy may run ahead if no order of the text is lost:
- it writes a whole tile that this loop alone uses (or several such loops), nothing reads the tile earlier in a turn,
  nothing else writes it, and no view shows it;
- nothing in the loop writes its source, or what its place in the source depends on;
- it stands directly in the loop, or directly in an `if` of it that is the only one to use the tile, after the copy, and
  whose condition is known as early as its place: not in an inner loop, not after `break` or `continue`.
All other statements stay where they are and in their order, so that atomics, updates in place and copies that do
depend on the turn before keep their meaning.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import tvm
import tvm_ffi
from tvm import tirx as tir

from tilelang_nb.language.tile_program import RegionOperand, TileCall, read, statement_name

from .context import SHARED
from .loop_effects import Effects
from .rewrite import (
    constant,
    dtype_of,
    each_statement,
    element_bytes,
    has,
    scope,
    statements,
    substitute,
    variables,
    walk,
    walkable,
)
from .views import root, views

STAGES = "tl.num_stages"
_BY_HAND = ("async_copy", "cp_async", "commit_group", "wait_group")


@dataclass(frozen=True)
class Producer:
    """A copy that runs ahead.

    position: of its statement in the loop.  first_use: position of the first statement that reads its tile, or that may
    leave the turn.  call: with the bindings of the turn expanded.  target: its tile.  condition: under which the turn
    makes it, and inner: its position in that `if`; None for a copy that every turn makes.
    """

    position: int
    first_use: int
    call: TileCall
    target: Any
    condition: Any = None
    inner: int | None = None


@dataclass(frozen=True)
class Pipeline:
    """The plan of one loop.

    wanted: stages that the text asks for.  stages: versions of each tile.  groups: producers by first use, in order.
    left_early: a `break` may end the loop.  reason: why it has fewer stages than wanted.
    """

    loop: Any
    body: tuple[Any, ...]
    wanted: int
    stages: int
    groups: tuple[tuple[Producer, ...], ...]
    left_early: bool = False
    reason: str = ""

    @property
    def tiles(self) -> tuple[Any, ...]:
        return tuple(producer.target for group in self.groups for producer in group)


@dataclass(frozen=True)
class CopyInTurn:
    """A copy from global to shared memory that cannot run ahead, and why not."""

    loop: Any
    call: TileCall
    reason: str


def tile_bytes(tile: Any) -> int:
    """Bytes of one version of a tile."""
    return math.prod(int(extent) for extent in tile.shape) * element_bytes(tile)


class _Stays(Exception):
    """Why a copy stays in its turn."""


def find_pipelines(function: Any, staying: list[CopyInTurn] | None = None) -> list[Pipeline]:
    """The plans of all loops that have one, outer loops first.

    staying: gets the copies of such loops that cannot run ahead; those of all where an expression of the launch is too
    large to look through.
    """
    inside = list(each_statement(function.body))
    loops = [node for node in inside if isinstance(node, tir.For) and wanted_stages(node) > 1]
    if not loops:
        return []
    found: list[CopyInTurn] = [] if staying is None else staying
    if not all(walkable(expr) for node in inside for expr in _expressions(node)):
        reason = "an expression of the kernel is too long to look for its tile in"
        every = [(node, call) for node in loops for one in statements(node.body) for call, *_ in _tile_copies(one)]
        found += [CopyInTurn(node, call, reason) for node, call in every]
        return []
    sources = views(function.body)
    plans = [plan for plan in (_plan(node, sources, found) for node in loops) if plan is not None]
    return _with_tiles_of_their_own(plans, function.body, found)


def _expressions(node: Any) -> list[Any]:
    """The expressions of a statement, without those of the statements inside."""
    if isinstance(node, tir.For):
        return [node.min, node.extent]
    if isinstance(node, tir.BufferStore):
        return [node.value, *node.indices]
    if isinstance(node, tir.IfThenElse | tir.While):
        return [node.condition]
    return [node.value] if isinstance(node, tir.Bind | tir.Evaluate) else []


def wanted_stages(node: Any) -> int:
    """Versions that the user asks for: `num_stages`, or as many as a schedule by hand spans."""
    stages = node.annotations.get(STAGES) if node.annotations else None
    count = 0 if stages is None else int(stages)
    schedule = node.annotations.get("tl.stage") if node.annotations else None
    if schedule is not None and count == 0:
        numbers = [int(number) for number in schedule]
        count = max(numbers) - min(numbers) + 1
    return count


def _plan(node: Any, sources: dict[Any, Any], staying: list[CopyInTurn]) -> Pipeline | None:
    body = tuple(statements(node.body))
    by_hand = any(statement_name(one) in _BY_HAND for one in body)
    jumps = [at for at, one in enumerate(body) if leaves(one)]
    end = jumps[0] if jumps else len(body)
    turn = _Turn([Effects(one, sources) for one in body], body, sources)
    producers = []
    for position, one in enumerate(body):
        for call, inside, inner in _tile_copies(one):
            try:
                if by_hand:
                    raise _Stays("the loop starts its copies by hand")
                if any(effect.orders for effect in turn.effects):
                    raise _Stays("the turn waits for other blocks, or they for it, by an atomic operation or a fence")
                if inside and inner is None:
                    raise _Stays(f"it stands in {inside}")
                if position > end:
                    raise _Stays("a turn may end before it")
                producer = turn.producer(position, call) if inner is None else turn.conditional(position, inner, call)
                producers.append(replace(producer, first_use=min(producer.first_use, end)))
            except _Stays as reason:
                staying.append(CopyInTurn(node, call, str(reason)))
    if not producers:
        return None
    stages = wanted_stages(node)
    early = any(leaves(one, tir.Break) for one in body)
    return Pipeline(node, body, stages, stages, _grouped(producers), early)


def _tile_copies(node: Any) -> Iterator[tuple[TileCall, str, int | None]]:
    """The copies from global to shared memory in a statement of a loop: with what they stand in, and their position
    where that is the statement itself, an `if`.
    """
    if isinstance(node, tir.IfThenElse):
        for number, one in enumerate(statements(node.then_case)):
            for call, inside in _nested_copies(one, ""):
                yield call, inside or "an `if`", None if inside else number
        if node.else_case is not None:
            yield from ((call, inside, None) for call, inside in _nested_copies(node.else_case, "an `else`"))
    else:
        yield from ((call, inside, None) for call, inside in _nested_copies(node, ""))


def _nested_copies(node: Any, inside: str) -> Iterator[tuple[TileCall, str]]:
    if statement_name(node) == "copy":
        call = read(node.value, node.span)
        if scope(call["source"].buffer) == "global" and scope(call["target"].buffer) == SHARED:
            yield call, inside
    elif isinstance(node, tir.SeqStmt):
        for one in node.seq:
            yield from _nested_copies(one, inside)
    elif isinstance(node, tir.IfThenElse):
        for one in (node.then_case, node.else_case):
            if one is not None:
                yield from _nested_copies(one, inside or "an `if`")
    elif isinstance(node, tir.For | tir.While) and not (isinstance(node, tir.For) and wanted_stages(node) > 1):
        yield from _nested_copies(node.body, inside or "a loop of its own")
    elif isinstance(node, tir.AttrStmt):
        yield from _nested_copies(node.body, inside or "`T.ws`")


def leaves(node: Any, kinds: Any = (tir.Break, tir.Continue)) -> bool:
    """May a statement of a loop's body leave its turn?  Jumps of loops inside stay inside."""
    if isinstance(node, tir.SeqStmt):
        return any(leaves(one, kinds) for one in node.seq)
    if isinstance(node, tir.IfThenElse):
        return leaves(node.then_case, kinds) or (node.else_case is not None and leaves(node.else_case, kinds))
    if isinstance(node, tir.AttrStmt):
        return leaves(node.body, kinds)
    return isinstance(node, kinds)


def _grouped(producers: list[Producer]) -> tuple[tuple[Producer, ...], ...]:
    uses = sorted({producer.first_use for producer in producers})
    return tuple(tuple(p for p in producers if p.first_use == use) for use in uses)


class _Turn:
    """What one turn of a loop does."""

    def __init__(self, effects: list[Effects], body: tuple[Any, ...], sources: dict[Any, Any]):
        self.effects, self.body, self.sources = effects, body, sources
        self.written: Counter[Any] = Counter()
        for effect in effects:
            self.written.update(effect.writes)
        self.bound = {one.var: one.value for one in body if isinstance(one, tir.Bind)}

    def producer(self, position: int, call: TileCall) -> Producer:
        """A copy that stands directly in the loop; _Stays where it cannot run ahead."""
        tile, name = self._checked(call)
        uses = [at for at, effect in enumerate(self.effects) if tile in effect.reads]
        if uses and uses[0] < position:
            raise _Stays(f"a turn reads `{name}` before it copies")
        self._check_uses(uses, tile, self.effects)
        return Producer(position, uses[0], self._moved(call), tile)

    def conditional(self, position: int, inner: int, call: TileCall) -> Producer:
        """A copy that stands directly in an `if`; _Stays where it cannot run ahead."""
        tile, name = self._checked(call)
        node = self.body[position]
        parts = statements(node.then_case)
        within = [Effects(one, self.sources) for one in parts]
        around = [effect for at, effect in enumerate(self.effects) if at != position]
        around.append(Effects(tir.Evaluate(node.condition), self.sources))
        if node.else_case is not None:
            around.append(Effects(node.else_case, self.sources))
        if any(tile in effect.reads or tile in effect.writes or tile in effect.other for effect in around):
            raise _Stays(f"it stands in an `if`, and `{name}` is also used outside of that")
        if sum(tile in effect.writes for effect in within) != 1:
            raise _Stays(f"the loop also writes `{name}` elsewhere")
        uses = [at for at, effect in enumerate(within) if tile in effect.reads]
        if uses and uses[0] < inner:
            raise _Stays(f"a turn reads `{name}` before it copies")
        self._check_uses(uses, tile, within)
        bound = self.bound
        try:
            self.bound = bound | {one.var: one.value for one in parts if isinstance(one, tir.Bind)}
            moved = self._moved(call)
        finally:
            self.bound = bound
        condition = self._expanded(node.condition)
        self._check_known(condition, "the condition that it stands under")
        return Producer(position, position, moved, tile, condition, inner)

    @staticmethod
    def _check_uses(uses: list[int], tile: Any, effects: list[Effects]) -> None:
        """_Stays where versions of a tile would serve nobody, or not everybody."""
        if any(tile in effect.other for effect in effects):
            raise _Stays(f"`{tile.name}` is used in a way that needs it in one place")
        if not uses:
            raise _Stays(f"nothing in the turn reads `{tile.name}`")

    def _checked(self, call: TileCall) -> tuple[Any, str]:
        """The tile and its name; _Stays where no order of the statements would let the copy run ahead."""
        source, target = call["source"], call["target"]
        tile, name = target.buffer, target.buffer.name
        if dtype_of(source.buffer) != dtype_of(tile):
            raise _Stays(f"it converts {dtype_of(source.buffer)} to {dtype_of(tile)}")
        if tile in self.sources or any(owner.same_as(tile) for owner in self.sources.values()):
            raise _Stays(f"`{name}` is also seen through a view")
        if not _whole(target):
            raise _Stays(f"it fills a part of `{name}`")
        if self.written[tile] != 1:
            raise _Stays(f"the loop also writes `{name}` elsewhere")
        if self.written[root(source.buffer, self.sources)]:
            raise _Stays(f"the loop writes `{source.buffer.name}`")
        return tile, name

    def _moved(self, call: TileCall) -> TileCall:
        """The call with a source that says by itself what it is in any turn."""
        source = call["source"]
        begin = tuple(self._expanded(index) for index in source.begin)
        extent = tuple(self._expanded(index) for index in source.extent)
        for index in (*begin, *extent):
            self._check_known(index, "its place")
        return replace(call, operands={**call.operands, "source": RegionOperand(source.buffer, begin, extent)})

    def _expanded(self, index: Any) -> Any:
        """An index with the bindings of the turn put in, as far as they do not call anything."""
        bound = self.bound
        for _ in range(8):
            used = {var: bound[var] for var in variables(index) if var in bound and not has(bound[var], tvm.ir.Call)}
            if not used:
                break
            index = substitute(index, used)
            if not walkable(index):
                raise _Stays("its place is worked out in too many steps to look through")
        return index

    def _check_known(self, expr: Any, what: str) -> None:
        """_Stays unless an expression is known before the turns in between have run."""
        for var in variables(expr):
            if var in self.bound or var in self.written or root(var, self.sources) in self.written:
                raise _Stays(f"{what} depends on `{var.name}`, which the loop changes")
        if has(expr, tvm.ir.Call):
            raise _Stays(f"{what} calls a function")


def _whole(target: RegionOperand) -> bool:
    return all(constant(begin) == 0 for begin in target.begin) and all(
        constant(extent) == constant(size) for extent, size in zip(target.extent, target.buffer.shape)
    )


def _with_tiles_of_their_own(plans: list[Pipeline], body: Any, staying: list[CopyInTurn]) -> list[Pipeline]:
    """Without the copies into tiles that are also used outside of the loops that copy into them."""
    total = _uses(body)
    while True:
        inside: Counter[Any] = Counter()
        for plan in plans:
            mine = _uses(plan.loop.body)
            for tile in plan.tiles:
                inside[tile] += mine[tile]
        foreign = {tile for tile, count in inside.items() if count != total[tile]}
        if not foreign:
            return plans
        kept = []
        for plan in plans:
            every = [producer for group in plan.groups for producer in group]
            left = [producer for producer in every if producer.target not in foreign]
            staying += [
                CopyInTurn(plan.loop, one.call, f"`{one.target.name}` is also used outside of the loop")
                for one in every
                if one.target in foreign
            ]
            if left:
                kept.append(replace(plan, groups=_grouped(left)))
        plans = kept


def _uses(body: Any) -> Counter[Any]:
    """How often each buffer occurs, its allocation apart."""
    found: Counter[Any] = Counter()

    def note(var: Any) -> None:
        found[var] += 1

    tvm_ffi.structural_walk(body, (tvm.ir.Var, note))
    walk(body, (tir.AllocBuffer, lambda node: found.subtract({node.buffer: 1})))
    return found
