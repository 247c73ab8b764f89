"""The phases of a pipelined loop: what the computing threads do in which order, and what of it waits for copies.

From the plans that lowering carried out: cp.async rings of `plan_pipelines.py`, some with the barriers of
`turn_barriers.py`, roles of `hopper/roles.py`, products that run beside other statements of `hopper/overlap.py`, blocks
that stay of `hopper/persistent.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from tvm import tirx as tir

from tilelang_nb.language.tile_program import TileCall, read, statement_name

from .hopper.overlap import Overlap
from .nests import WARP_GROUP
from .pipeline_chart import GAP, NEXT, Chart, Drawing, Phase, Ring
from .pipelines import Pipeline, Producer, tile_bytes
from .rewrite import constant, each_statement
from .spans import line_of
from .turn_barriers import ORDERS
from .turn_rings import Barriers

MOST_COLUMNS = 12  # of the first turns
OTHER = "other statements"
WARP = 32
Phases = list[Phase]


def lines_of(nodes: Iterable[Any]) -> tuple[int, ...]:
    """The lines of the cell that statements come from."""
    found = {line_of(one.span) for node in nodes for one in each_statement(node)}
    return tuple(sorted(line for line in found if line is not None))


def chart_of(plan: Pipeline, launch: Any) -> Chart | None:
    """The chart of a loop whose copies run ahead; None where none does."""
    roles = launch.facts.get("roles")
    rings = launch.facts.get("rings", {}).get(plan.loop.loop_var)
    if rings is not None:
        return _with_roles(plan, launch, roles, rings)
    if plan.stages < 2 or not plan.groups:
        return None
    return _with_async_copies(plan, launch)


# ---- T.tma_copy of the text


def copies_of(loop: Any) -> list[TileCall]:
    """The `T.tma_copy` of a loop that start ahead."""
    calls = [read(loop.body[at].value, loop.body[at].span) for at in loop.starts]
    return [call for call in calls if call.name == "tma_copy"]


def chart_of_copies(loop: Any, stages: int) -> Chart:
    """The chart of a loop whose `T.tma_copy` start ahead, as `hopper/copies_ahead.py` carries it out."""
    ring = Ring(
        tuple(tile.name for tile in loop.tiles),
        stages,
        sum(map(tile_bytes, loop.tiles)),
        tuple(line for call in copies_of(loop) for line in _lines(call)),
        ", ".join(barrier.name for barrier in loop.barriers),
        barrier=True,
    )
    rest = [one for at, one in enumerate(loop.body) if at not in loop.starts and at not in loop.waits]
    plan = Pipeline(loop.node, tuple(rest), stages, stages, ())
    return _in_step(plan, ring, "all threads copy")


# ---- cp.async


def _with_async_copies(plan: Pipeline, launch: Any) -> Chart:
    pending = max(plan.stages - 2, 0)
    producers = [producer for group in plan.groups for producer in group]
    barriers = launch.facts.get(ORDERS, {}).get(plan.loop.loop_var)
    if isinstance(barriers, Barriers):
        warps = launch.threads // WARP
        ring = _ring(producers, plan.stages, barriers.full.name, barriers.empty.name, warps)
    else:
        waiting = f"cp.async.wait_group {pending}, so that {pending} later may be under way"
        ring = _ring(producers, plan.stages, waiting)
    return _in_step(plan, ring, "all threads copy")


def _in_step(plan: Pipeline, ring: Ring, copying: str) -> Chart:
    """The chart of threads that all copy and compute; a turn starts the copies of the one `stages - 1` later."""
    turns = constant(plan.loop.extent)
    runs = [_run(part) for part in _parts(plan, ())]

    def turn(number: int) -> Phases:
        works = tuple((name, number, lines) for name, lines in runs)
        return [Phase(_label(plan, number, turns), works, ((0, number),), ((0, number),))]

    phases = [Phase("before"), *_over_time(turn, 1, turns, plan.stages, 1)]
    return Drawing(
        (ring,), tuple(phases), turns, turns, lambda one: one.versions - 1, copying, "all threads compute"
    ).chart()


def _ring(producers: Iterable[Producer], versions: int, full: str, empty: str = "", warps: int = 0) -> Ring:
    every = list(producers)
    lines = (line_of(producer.call.span) for producer in every)
    return Ring(
        tuple(producer.target.name for producer in every),
        versions,
        sum(tile_bytes(producer.target) for producer in every),
        tuple(line for line in lines if line is not None),
        full,
        empty,
        warps,
    )


# ---- roles


def _with_roles(plan: Pipeline, launch: Any, roles: Any, made: list[Any]) -> Chart:
    """made: the rings of the loop, with their barriers."""
    turns = constant(plan.loop.extent)
    warps, groups = roles.consumers // WARP, roles.consumers // WARP_GROUP
    rings = [_ring(ring.producers, plan.stages, ring.full.name, ring.empty.name, warps) for ring in made]
    products = [call for call in map(_product, plan.body) if call is not None]
    wanted = {call[name].buffer for call in products for name in "ab"}
    kept = [(call, loaded) for call, loaded in launch.facts.get("loaded", ()) if call["target"].buffer in wanted]
    once = "once" if roles.staying is None else "first"  # a block that stays copies it for each of its works
    rings = [
        *(
            Ring(
                (call["target"].buffer.name,),
                0,
                tile_bytes(call["target"].buffer),
                _lines(call),
                loaded.name,
                once=once,
            )
            for call, loaded in kept
        ),
        *rings,
    ]
    number_of = {id(ring): number for number, ring in enumerate(made, len(kept))}
    overlap = roles.overlaps.get(plan.loop.loop_var)
    if overlap is not None:
        rings[-1] = replace(rings[-1], late=1)  # as `_turn_of_copies` has it
    before = Phase("before", waits=tuple((number, 0) for number in range(len(kept))))
    rounds = _rounds(plan, launch, roles)
    end = _after(plan, launch, roles, rounds)
    if overlap is not None:
        phases = _beside(plan, overlap, turns, len(kept), end)
        rounds = 1
    else:
        parts = [(part, *_run(part)) for part in _parts(plan, made)]

        def turn(number: int) -> Phases:
            found = []
            for part, name, lines in parts:
                waits = tuple((number_of[id(ring)], number) for ring in made if ring.first in part)
                releases = tuple((number_of[id(ring)], number) for ring in made if ring.last in part)
                found.append(Phase(_label(plan, number, turns), ((name, number, lines),), waits, releases))
            return found

        phases = _over_time(turn, len(parts), turns, plan.stages, rounds or 2, end)
    total = None if turns is None or rounds is None else turns * rounds
    copying = f"warp group {groups} copies"
    computing = "warp group 0 computes" if groups == 1 else f"warp groups {', '.join(map(str, range(groups)))} compute"
    return Drawing(tuple(rings), (before, *phases), turns, total, lambda one: one.versions, copying, computing).chart()


def _lines(call: TileCall) -> tuple[int, ...]:
    line = line_of(call.span)
    return () if line is None else (line,)


def _product(node: Any) -> TileCall | None:
    return read(node.value, node.span) if statement_name(node) == "gemm" else None


def _parts(plan: Pipeline, rings: Iterable[Any]) -> list[dict[int, Any]]:
    """The statements of a turn by position, cut where a product stands and where something is waited for or given
    back.
    """
    copied = {producer.position for group in plan.groups for producer in group if producer.inner is None}
    first, last = {ring.first for ring in rings}, {ring.last for ring in rings}
    found: list[dict[int, Any]] = []
    ended = True
    for position, node in enumerate(plan.body):
        if position in copied or isinstance(node, tir.AllocBuffer | tir.Bind):
            continue
        alone = _product(node) is not None
        if ended or alone or position in first:
            found.append({})
        found[-1][position] = node
        ended = alone or position in last
    return found


def _run(part: dict[int, Any]) -> tuple[str, tuple[int, ...]]:
    """The name and the lines of some statements."""
    nodes = list(part.values())
    call = _product(nodes[0])
    return (OTHER if call is None else product_name(call)), lines_of(nodes)


def product_name(call: TileCall) -> str:
    """`c += a·bᵀ`."""
    a, b, c = (call[name].buffer.name for name in "abc")
    return f"{c} += {a}{'ᵀ' if call.boolean('transpose_a') else ''}·{b}{'ᵀ' if call.boolean('transpose_b') else ''}"


def _label(plan: Pipeline, turn: int, turns: int | None) -> str:
    name = plan.loop.loop_var.name
    return f"{name} = {turn}" if turns is None or turn < turns else f"{name} = {turn % turns}{NEXT}"


def _over_time(
    turn: Callable[[int], Phases], each: int, turns: int | None, stages: int, rounds: int, end: Phase | None = None
) -> Phases:
    """The first turns, and where it is known how many there are the last one, the end and the next execution.

    turn: the phases of one; each: how many they are.
    """
    shown = max(stages + 2, MOST_COLUMNS // each)
    if turns is None:
        return [*(phase for one in range(shown) for phase in turn(one)), Phase(GAP)]
    last = [end] if end is not None else []
    following = [phase for one in range(turns, turns + 2) for phase in turn(one)] if rounds > 1 else []
    if turns <= shown + 1:
        return [*(phase for one in range(turns) for phase in turn(one)), *last, *following]
    first = [phase for one in range(shown) for phase in turn(one)]
    return [*first, _gap([*turn(turns - 3), *turn(turns - 2)]), *turn(turns - 1), *last, *following]


def _gap(hidden: Phases) -> Phase:
    """The last of some phases, unseen.  hidden: of two turns, so that every ring was given back in them."""
    counts: dict[int, int] = {}
    for phase in hidden[:-1]:
        counts.update({number: turn + 1 for number, turn in phase.releases})
    highest = max(counts, default=-1)
    return Phase(GAP, releases=hidden[-1].releases, jump=tuple(counts.get(number, 0) for number in range(highest + 1)))


def _beside(plan: Pipeline, overlap: Overlap, turns: int | None, kept: int, end: Phase | None) -> Phases:
    """The phases of a loop whose first product runs beside the second one of the turn before, as `_overlapped` of
    `hopper/roles.py` writes them."""
    keys, values = kept, kept + 1
    first, second = product_name(overlap.first), product_name(overlap.second)
    prepare = lines_of(overlap.prepare)
    of_first = tuple(sorted({*prepare, *_lines(overlap.first)}))
    of_second = _lines(overlap.second)
    beside, after = lines_of(overlap.beside), lines_of(overlap.after)

    def begin() -> Phases:
        label = _label(plan, 0, turns)
        return [
            Phase(label, ((first, 0, of_first),), ((keys, 0),), ((keys, 0),)),
            Phase(label, ((OTHER, 0, tuple(sorted({*beside, *after}))),)),
        ]

    def turn(number: int) -> Phases:
        label = f"{_label(plan, number + 1, turns)}, {number}"
        runs, next_keys = ((second, number, of_second),), (keys, number + 1)
        found = [
            Phase(label, ((first, number + 1, of_first), *runs), (next_keys, (values, number)), (next_keys,)),
            Phase(label, ((OTHER, number + 1, beside), *runs), releases=((values, number),)),
        ]
        return [*found, Phase(label, ((OTHER, number + 1, after),))] if overlap.after else found

    def finish(count: int) -> Phases:
        last = count - 1
        return [Phase(_label(plan, last, turns), ((second, last, of_second),), ((values, last),), ((values, last),))]

    closing = [end] if end is not None else []
    each = 3 if overlap.after else 2
    shown = max(plan.stages + 1, MOST_COLUMNS // each)
    if turns is None:
        return [*begin(), *(phase for one in range(shown) for phase in turn(one)), Phase(GAP)]
    if turns - 1 <= shown + 1:
        return [*begin(), *(phase for one in range(turns - 1) for phase in turn(one)), *finish(turns), *closing]
    first_turns = [phase for one in range(shown) for phase in turn(one)]
    hidden = _gap([*turn(turns - 4), *turn(turns - 3)])
    return [*begin(), *first_turns, hidden, *turn(turns - 2), *finish(turns), *closing]


def _rounds(plan: Pipeline, launch: Any, roles: Any) -> int | None:
    """How often a block executes the loop; None where that is not known.  Of blocks that stay, that of the first."""
    if roles.staying is not None:
        return roles.staying.most_turns
    count: int | None = 1
    for node in each_statement(launch.facts["text"].body):
        if isinstance(node, tir.For) and any(one.same_as(plan.loop) for one in each_statement(node.body)):
            if not node.same_as(plan.loop):
                extent = constant(node.extent)
                count = None if count is None or extent is None else count * extent
    return count


def _after(plan: Pipeline, launch: Any, roles: Any, rounds: int | None) -> Phase | None:
    """What the computing threads do when the loop is over."""
    epilogue = roles.epilogue
    if epilogue is not None:
        call = epilogue.call
        name = f"{call['target'].buffer.name} = {call['source'].buffer.name}, by bulk copies"
        return Phase("after", ((name, None, _lines(call)),))
    return None if rounds == 1 else Phase("after", ((OTHER, None, ()),))
