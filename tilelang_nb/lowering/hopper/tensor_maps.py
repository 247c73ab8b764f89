"""Tensor maps: how the copy engine of sm_90 sees a global array, as a parameter of a launch that the host fills in.

A launch with tensor maps has them as parameters after its others, and says in its attribute `tl.tensor_maps` what each
one shows.  The simulated device and the host read it there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import tvm
from tvm import tirx as tir
from tvm.ir import PointerType
from tvm.tirx.type import TensorMapType

from tilelang_nb.source import catalogue as say
from tilelang_nb.source.diagnostic import Refusal

from ..context import LaunchContext

MAPS = "tensor maps"  # the fact: maps of a launch by what they show
MOVED = "bulk copies"  # the fact: what they move
ATTRIBUTE = "tl.tensor_maps"
# Limits of `cuTensorMapEncodeTiled`; those of boxes are in `tensor_tiles.py`.
CHUNK = 16  # bytes, of which strides are multiples
MOST_EXTENT, MOST_STRIDE = 1 << 32, 1 << 40


@dataclass(frozen=True)
class TensorMap:
    """What `cuTensorMapEncodeTiled` is told.

    variable: the parameter that holds it.  buffer: the parameter whose memory it shows.
    dims: extents, the fastest first.  strides: in bytes, from the second dimension on; multiples of 16.  Both are TIR
    expressions over the parameters.
    box: elements that one copy moves along each dimension.  swizzle: bytes of a row in shared memory within which its
    16-byte chunks change places: 0 (none), 32, 64 or 128.
    """

    variable: Any
    buffer: Any
    dims: tuple[Any, ...]
    strides: tuple[Any, ...]
    box: tuple[int, ...]
    swizzle: int

    @property
    def dtype(self) -> str:
        return str(self.buffer.ty.dtype)

    @property
    def box_bytes(self) -> int:
        return math.prod(self.box) * max(tvm.DataType(self.dtype).bits // 8, 1)


@dataclass(frozen=True)
class Moved:
    """Bulk copies between a shared tile and a global array.  boxes: instructions, each of a box of the map.  loading:
    into the tile.
    """

    span: Any
    tile: Any
    map: TensorMap
    boxes: int
    loading: bool


def check_outline(name: str, dims: Sequence[int], strides: Sequence[int]) -> None:
    """TL302 where no tensor map shows an array of these extents and strides (bytes, from the second dimension on).

    What a text says by `T.assume`, and sizes of the arguments, are known only at the launch.
    """
    problem = remedy = ""
    for extent in dims:
        if extent >= MOST_EXTENT:
            problem = f"`{name}` has {extent} elements along a dimension, and bulk copies take fewer than 2 ** 32"
            remedy = "give the array more dimensions, or copy it with `T.copy`"
    for stride in strides:
        if stride % CHUNK:
            problem = f"rows of `{name}` begin {stride} bytes apart, and bulk copies take multiples of {CHUNK}"
            remedy = f"pass an array whose rows are multiples of {CHUNK} bytes, or copy it with `T.copy`"
        elif not 0 < stride < MOST_STRIDE:
            problem = f"rows of `{name}` begin {stride} bytes apart, and bulk copies take up to 2 ** 40"
            remedy = "copy the array with `T.copy`"
    if problem and all(dims):  # of an array without elements nothing is copied
        raise Refusal(say.TargetUnavailable(problem=problem, remedy=remedy))


def map_variable(name: str) -> Any:
    """A parameter for a tensor map."""
    return tir.Var(name, PointerType(TensorMapType()))


def is_map_variable(variable: Any) -> bool:
    """Is a parameter a tensor map?"""
    return isinstance(getattr(variable.ty, "element_type", None), TensorMapType)


def with_tensor_maps(function: Any, maps: tuple[TensorMap, ...]) -> Any:
    """The launch with these maps as its last parameters."""
    rows = [[m.variable, m.buffer, list(m.dims), list(m.strides), list(m.box), m.swizzle] for m in maps]
    parameters = [*function.params, *(m.variable for m in maps)]
    made = tir.PrimFunc(parameters, function.body, function.ret_type, function.attrs, function.span)
    return made.with_attr(ATTRIBUTE, rows)


def pass_tensor_maps(function: Any, launch: LaunchContext) -> Any:
    """A lowered launch; one whose bulk copies use maps takes them as parameters."""
    maps = launch.facts.get(MAPS, {})
    return with_tensor_maps(function, tuple(maps.values())) if maps else function


def tensor_maps_of(function: Any) -> tuple[TensorMap, ...]:
    """The maps of a launch, in the order of its parameters."""
    rows = function.attrs[ATTRIBUTE] if function.attrs is not None and ATTRIBUTE in function.attrs else ()
    return tuple(
        TensorMap(variable, buffer, tuple(dims), tuple(strides), tuple(int(extent) for extent in box), int(swizzle))
        for variable, buffer, dims, strides, box, swizzle in rows
    )


def without_tensor_maps(function: Any) -> Any:
    """The launch as passes take it, to which an attribute with variables is strange; its parameters stay."""
    return function.without_attr(ATTRIBUTE) if function.attrs is not None and ATTRIBUTE in function.attrs else function
