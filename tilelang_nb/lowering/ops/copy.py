"""T.copy, T.async_copy: target[...] = source[...] for every element, converted to the type of the target.

Operands: two regions, any scopes and types, whose extents agree after extents of 1 are left out.  Elements over the
edge of a global buffer read as 0 (or its safe value) and are not written; that is the business of guard-accesses.

Errors: TL204 where the extents do not fit.
"""

from __future__ import annotations

from typing import Any

from tvm import tirx as tir

from tilelang_nb.language.tile_program import RegionOperand, TileCall, operation
from tilelang_nb.source import catalogue as say

from ..rewrite import constant, dtype_of, loop, nothing, sequence
from .elementwise import at, box, converted, element, loops_over

HINT = "tl.coalesced_width"
ASYNCHRONOUS = "tl.asynchronous"  # the loops of a copy that need not be over when the next statement runs


def expand(call: TileCall, launch: Any) -> Any:
    """The call as `T.Parallel` loops over elements; TL204 where the extents do not fit."""
    source, target = call["source"], call["target"]
    mine, theirs = box(target), box(source)
    if len(mine) != len(theirs) or any(
        _differ(target.extent[a], source.extent[b]) for a, b in zip(mine, theirs, strict=False)
    ):
        launch.report(
            say.ShapeMismatch(
                problem=f"the copy takes {shape(source)} elements and its target has {shape(target)}",
                remedy="give both sides the same extents",
            ),
            call.span,
        )
        return nothing(call.span)
    dtype = dtype_of(target.buffer)

    def body(loops: list[Any]) -> Any:
        value = converted(element(source, theirs, loops), dtype)
        return tir.BufferStore(target.buffer, value, at(target, mine, loops), call.span)

    loops = loops_over([target.extent[dim] for dim in mine], body, call.span, source.buffer, target.buffer)
    if call.name != "async_copy" or int(loops.kind) != tir.ForKind.PARALLEL:
        return loops
    return loop(loops, annotations={**loops.annotations, ASYNCHRONOUS: 1})


def expand_async(call: TileCall, launch: Any) -> Any:
    """The loops of `expand`, marked; then the end of the group, if the copy is one of its own."""
    loops = expand(call, launch)
    if call["group"] is not None:
        return loops
    return sequence([loops, tir.Evaluate(operation("commit_group"), call.span)], call.span)


def _differ(one: Any, other: Any) -> bool:
    a, b = constant(one), constant(other)
    return a is not None and b is not None and a != b


def shape(region: RegionOperand) -> str:
    """The extents of a region as a message shows them."""
    return "(" + ", ".join(str(extent) for extent in region.extent) + ")"
