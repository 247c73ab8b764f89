"""Two products of a pipelined loop that run beside what lies between them, as in attention.

A turn of such a loop is A, B, E: a first product with what prepares its accumulator, ordinary statements, and a second
product whose left operand comes from registers.  Where E touches nothing that A and a part of B use, the first product
of the next turn is started before E, and that part of B is computed while E runs.  For every turn n:

    start A(n), start E(n - 1) unless n is the first, wait for A, first part of B(n), wait for E, second part of B(n)

and E of the last turn at the end.  B stands there once, as code that runs once in a block is slow to fetch.  Its first
part ends where it overwrites what A computed: the rest shares its time with what has to wait for E, which was faster
than more work beside E and less behind it (attention on an H200: 3 to 7 %; warp groups that start their products in
turns gained nothing).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tvm import tirx as tir

from tilelang_nb.language.tile_program import TileCall, read

from ..context import FRAGMENT
from ..loop_effects import Effects
from ..pipelines import Pipeline
from ..rewrite import constant, scope
from .tile_statements import is_product


@dataclass(frozen=True)
class Overlap:
    """first, second: the products.  prepare: statements in front of the first.  beside, after: those between the two
    that run while the second one does, and when it is over.
    """

    first: TileCall
    second: TileCall
    prepare: tuple[Any, ...]
    beside: tuple[Any, ...]
    after: tuple[Any, ...]


def find_overlap(plan: Pipeline, sources: dict[Any, Any]) -> Overlap | None:
    """How the products of a loop overlap; None where an order of the text would be lost."""
    copied = {producer.position for group in plan.groups for producer in group}
    body = [one for position, one in enumerate(plan.body) if position not in copied]
    products = [position for position, one in enumerate(body) if is_product(one)]
    if len(products) != 2 or products[1] != len(body) - 1 or constant(plan.loop.min) != 0:
        return None
    if any(isinstance(one, tir.Bind | tir.AllocBuffer) for one in body):
        return None
    first, second = (read(body[position].value, body[position].span) for position in products)
    left = second["a"].buffer
    if scope(left) != FRAGMENT or scope(first["a"].buffer) == FRAGMENT or len(plan.groups) != 2:
        return None
    tiles = [{producer.target for producer in group} for group in plan.groups]
    if first["c"].buffer.same_as(second["c"].buffer):
        return None
    if first["b"].buffer not in tiles[0] or second["b"].buffer not in tiles[1]:
        return None
    effects = [Effects(one, sources) for one in body]
    last = effects[-1]
    if any(_conflict(last, effect) for effect in effects[: products[0] + 1]):
        return None
    beside: list[Any] = []
    after: list[Any] = []
    late = [last]
    for position in range(products[0] + 1, products[1]):
        overwrites = first["c"].buffer in effects[position].writes
        if overwrites or any(_conflict(effects[position], other) for other in late):
            after.append(body[position])
            late.append(effects[position])
        else:
            beside.append(body[position])
    return Overlap(first, second, tuple(body[: products[0]]), tuple(beside), tuple(after)) if beside else None


def _conflict(one: Effects, other: Effects) -> bool:
    """Does the order of two statements matter?"""
    return bool(one.writes & _touched(other) or _touched(one) & other.writes)


def _touched(effects: Effects) -> set[Any]:
    return effects.reads | effects.writes | effects.other
