"""What lowering decided about a launch, for people to read: engines of products, pipelines, orders of shared tiles."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from .annotated_layouts import FACTS as LAYOUTS
from .annotated_layouts import LOOPS
from .fragments_of_parts import PARTS
from .hopper.operand_facts import tile_facts
from .hopper.plan import multiplies
from .infer_layouts import KEPT
from .nests import WARP_GROUP
from .pipeline_phases import product_name
from .pipelines import Pipeline
from .plan_pipelines import IN_TURN
from .shared_memory import TILES
from .skip_scaling import SKIPPED
from .spans import line_of
from .sums_through_tiles import THROUGH_TILES
from .turn_barriers import ORDERS


@dataclass(frozen=True)
class Decision:
    """subject: "product", "pipeline", "roles", "overlap", "results", "blocks", "layout", "swizzle", "tensor map" or
    "descriptor".  value: what was chosen.  reason: why, or why not something faster, or what it means.

    line: of the cell that it speaks of, None where it is no place of the text.
    """

    subject: str
    value: str
    reason: str = ""
    line: int | None = None

    def __str__(self) -> str:
        place = "" if self.line is None else f" (line {self.line})"
        return f"{self.subject}{place}: {self.value}" + (f"; {self.reason}" if self.reason else "")


def decisions(launch: Any) -> tuple[Decision, ...]:
    """All of a launch, in the order of the text; equal ones once."""
    return tuple(dict.fromkeys((*_decisions(launch.facts, launch.is_own), *_tiles(launch))))


def _decisions(facts: dict[str, Any], is_own: Callable[[str], bool]) -> Iterator[Decision]:
    """is_own: whether a name is one of the compiler's, which no report shows."""
    for span, engine, warps in facts.get("products", ()):
        value = "CUDA cores" if engine.instruction is None else f"{engine.name}, {warps}"
        yield Decision("product", value, engine.reason, line_of(span))
    for plan in facts.get("pipelines", ()):
        tiles = ", ".join(tile.name for tile in plan.tiles)
        value = f"{plan.stages} stage{'s' * (plan.stages > 1)} of {tiles}"
        yield Decision("pipeline", value, plan.reason, line_of(plan.loop.span))
        yield from _order(plan, facts)
    for copy in facts.get(IN_TURN, ()):
        tile = copy.call["target"].buffer.name
        yield Decision("pipeline", f"{tile} is copied in its turn", copy.reason, line_of(copy.call.span))
    roles = facts.get("roles")
    if isinstance(roles, str):
        place = getattr(roles, "span", None)
        loop = next((plan.loop.span for plan in facts.get("pipelines", ()) if multiplies(plan)), None)
        yield Decision("roles", "all warp groups do the same", roles, line_of(place) or line_of(loop))
    elif roles is not None:
        groups = roles.consumers // WARP_GROUP
        value = f"1 warp group copies, {groups} comput{'es' if groups == 1 else 'e'}"
        yield Decision("roles", value, line=line_of(roles.plans[0].loop.span))
        yield from _in_roles(roles)
    for buffer, annotation in facts.get(LAYOUTS, {}).items():
        taken = "as annotated" if not annotation.refused else "not as annotated"
        yield Decision("layout", f"{buffer.name} {taken}", annotation.refused, line_of(annotation.span))
    for loops, annotation in facts.get(LOOPS, {}).items():
        names = ", ".join(f"`{var.name}`" for var in loops)
        taken = "as its `loop_layout` says" if not annotation.refused else "not as its `loop_layout` says"
        yield Decision("layout", f"the loop over {names} is {taken}", annotation.refused, line_of(annotation.span))
    for buffer, tiles in facts.get(PARTS, {}).items():
        value = f"warp groups {tiles.groups} each have their own {buffer.name}"
        yield Decision("layout", value, "registers are each thread's own", line_of(tiles.span))
    for buffer, span in facts.get(KEPT, {}).items():
        if not is_own(buffer.name):
            value = f"{buffer.name} is kept in shared memory"
            yield Decision("layout", value, "no layout in registers serves all of its uses", line_of(span))
    for buffer, through in facts.get(THROUGH_TILES, {}).items():
        value = f"{buffer.name} is read in a shared tile from here on"
        yield Decision("layout", value, "no layout in registers serves all of its uses", line_of(through.span))
    for buffer, swizzle in facts.get("swizzles", {}).items():
        row = f"r / {swizzle.every}" if swizzle.every > 1 else "r"
        if not is_own(buffer.name):
            yield Decision("swizzle", buffer.name, f"16-byte chunk c of row r at c xor ({row} mod {swizzle.span})")


def _order(plan: Pipeline, facts: dict[str, Any]) -> Iterator[Decision]:
    """What orders the turns of a loop of several products."""
    order = facts.get(ORDERS, {}).get(plan.loop.loop_var)
    line = line_of(plan.loop.span)
    if isinstance(order, str):
        yield Decision("order of turns", "by a barrier of the block in each", order, line)
    elif order is not None:
        tiles = ", ".join(tile.name for tile in plan.tiles)
        reason = "warps may be a turn apart; copies for a later turn start behind the first product"
        yield Decision("order of turns", f"by barriers of each version of {tiles}", reason, line)
        for span, array in facts.get(SKIPPED, {}).get(plan.loop.loop_var, ()):
            value = f"{array.name} is scaled only where a factor is not 1"
            why = "registers are short, and most turns leave its rows as they are"
            yield Decision("scaling", value, why, line_of(span))


def _in_roles(roles: Any) -> Iterator[Decision]:
    """What a divided launch does beside: products that run on, results in bulk, blocks that stay."""
    for overlap in roles.overlaps.values():
        first, second = product_name(overlap.first), product_name(overlap.second)
        reason = "the statements between them run beside the second one until one overwrites what the first computed"
        value = f"{first} of a turn is started before {second} of the turn before"
        yield Decision("overlap", value, reason, line_of(overlap.second.span))
    epilogue = roles.epilogue
    if epilogue is not None:
        value = f"{epilogue.call['target'].buffer.name} is stored by bulk copies"
        boxes = f"{epilogue.boxes} box{'es' * (epilogue.boxes > 1)} of each warp group"
        reason = f"{boxes}, through {epilogue.slots} in shared memory"
        yield Decision("results", value, reason, line_of(epilogue.call.span))
    staying = roles.staying
    if staying is not None:
        blocks = f"{staying.blocks:,}" if isinstance(staying.blocks, int) else "as many blocks as multiprocessors"
        works = f"{staying.works:,}" if isinstance(staying.works, int) else "those"
        reason = f"they do the work of {works} of the text, one after the other"
        reason += f", {staying.order}" if staying.order else ""
        yield Decision("blocks", f"{blocks} stay", reason)


def _tiles(launch: Any) -> Iterator[Decision]:
    """Tiles of bulk copies and of products of warp groups."""
    for buffer in launch.facts.get(TILES, {}):
        for known in tile_facts(buffer, launch):
            if launch.is_own(buffer.name):
                if known.subject == "tensor map":
                    yield Decision(known.subject, known.value, known.reason, known.line)
            elif known.subject == "boxes":
                yield Decision("swizzle", buffer.name, str(known))
            else:
                yield Decision(known.subject, f"{buffer.name}: {known.value}", known.reason, known.line)
