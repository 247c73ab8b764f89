"""T.atomic_add, T.atomic_max, ... on whole regions: one atomic on every element of the target.

Operands: the target region (shared or global) and a region of the same extents, or one value for all elements.  On a
single element with a plain value every thread that gets there does the operation once.

Errors: TL204 where the extents do not fit.
"""

from __future__ import annotations

from typing import Any

from tvm import tirx as tir

from tilelang_nb.language.tile_program import RegionOperand, TileCall, operation, region
from tilelang_nb.source import catalogue as say

from ..rewrite import constant, dtype_of, nothing
from .copy import shape
from .elementwise import at, box, converted, element, loops_over


def expand(call: TileCall, launch: Any) -> Any:
    """The call as `T.Parallel` loops over atomic operations on elements; TL204 where the extents do not fit."""
    target, value = call["target"], call["value"]
    mine = box(target)
    theirs = box(value) if isinstance(value, RegionOperand) else mine
    if len(mine) != len(theirs) or (
        isinstance(value, RegionOperand)
        and any(constant(target.extent[a]) != constant(value.extent[b]) for a, b in zip(mine, theirs))
    ):
        launch.report(
            say.ShapeMismatch(
                problem=f"{shape(value)} values do not fit {shape(target)} elements",
                remedy="give both sides the same extents",
            ),
            call.span,
        )
        return nothing(call.span)
    dtype = dtype_of(target.buffer)

    def body(loops: list[Any]) -> Any:
        taken = element(value, theirs, loops) if isinstance(value, RegionOperand) else value
        place = region(target.buffer, at(target, mine, loops), [tir.const(1, "int32")] * len(target.begin))
        atomic = operation(
            "atomic_element", call["operation"], place, converted(taken, dtype), call["memory_order"], dtype=dtype
        )
        return tir.Bind(tir.Var("previous", dtype), atomic, call.span)

    if not mine and not isinstance(value, RegionOperand):
        return body([])
    return loops_over([target.extent[dim] for dim in mine], body, call.span)
