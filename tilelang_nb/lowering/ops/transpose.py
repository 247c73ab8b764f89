"""T.transpose: target[j, i] = source[i, j] for two regions with two dimensions of more than one element (at most).

Errors: TL204 where the extents do not fit.
"""

from __future__ import annotations

from typing import Any

from tvm import tirx as tir

from tilelang_nb.language.tile_program import TileCall
from tilelang_nb.source import catalogue as say

from ..rewrite import constant, dtype_of, nothing
from .copy import shape
from .elementwise import at, converted, element, loops_over


def expand(call: TileCall, launch: Any) -> Any:
    """The call as `T.Parallel` loops over the target; TL204 where the extents do not fit."""
    source, target = call["source"], call["target"]
    rows, columns = len(source.extent) - 2, len(source.extent) - 1
    extents = [constant(extent) for extent in (*source.extent[-2:], *target.extent[-2:])]
    leading = [*source.extent[:-2], *target.extent[:-2]]
    fits = len(source.extent) >= 2 and len(target.extent) >= 2 and all(constant(extent) == 1 for extent in leading)
    if not fits or extents[0] != extents[3] or extents[1] != extents[2]:
        launch.report(
            say.ShapeMismatch(
                problem=f"the transpose of {shape(source)} elements does not fit {shape(target)}",
                remedy="swap the two extents of the target",
            ),
            call.span,
        )
        return nothing(call.span)
    dtype = dtype_of(target.buffer)
    last = len(target.extent)

    def body(loops: list[Any]) -> Any:
        value = converted(element(source, (rows, columns), (loops[1], loops[0])), dtype)
        return tir.BufferStore(target.buffer, value, at(target, (last - 2, last - 1), loops), call.span)

    return loops_over(target.extent[-2:], body, call.span, source.buffer, target.buffer)
