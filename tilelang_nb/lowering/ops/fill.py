"""T.fill, T.clear: target[...] = value for every element of a region; the value is converted to the type of the
target.

A reducer is filled by `reducer`: its start value counts once, not once per thread.
"""

from __future__ import annotations

from typing import Any

from tvm import tirx as tir

from tilelang_nb.language.tile_program import TileCall

from ..rewrite import dtype_of
from .elementwise import at, box, converted, loops_over


def expand(call: TileCall, launch: Any) -> Any:
    """The call as `T.Parallel` loops that store the value."""
    target = call["target"]
    dims = box(target)
    value = converted(call["value"], dtype_of(target.buffer))
    return loops_over(
        [target.extent[dim] for dim in dims],
        lambda loops: tir.BufferStore(target.buffer, value, at(target, dims, loops), call.span),
        call.span,
        target.buffer,
    )
