"""Atomics on one element: T.atomic_add and the like, atomic_load, atomic_store. Every executing thread does it
once.

target: a region of one element of global or shared memory; the value is converted to its type. With `value` the old
content is the result.  memory_order: "relaxed" where it is not given; another is the last argument of the device
function, the name of what puts fences around it.
"""

from __future__ import annotations

from typing import Any

from tvm import tirx as tir

from tilelang_nb.language.tile_program import TileCall

from ..context import LaunchContext
from .elementwise import converted

RELAXED = (None, "relaxed")
STRONGER = {"consume": "acquire"}  # an order that no device has: the one that implementations take for it


def lower(call: TileCall, launch: LaunchContext) -> tir.Stmt:
    """The operation for its effect."""
    return tir.Evaluate(value(call, launch), call.span)


def value(call: TileCall, launch: LaunchContext) -> Any:
    """The operation as an expression: the old content; nothing for a store."""
    target = call["target"]
    dtype = str(target.buffer.dtype)
    address = tir.address_of(tir.BufferLoad(target.buffer, list(target.begin)))
    order = call["memory_order"]
    ordered = [] if order in RELAXED else [tir.call_pure_extern("int32", f"tl_order_{STRONGER.get(order, order)}")]
    if call.name == "atomic_load":
        return tir.call_extern(dtype, "tl_atomic_load", address, *ordered)
    given = converted(call["value"], dtype)
    if call.name == "atomic_store":
        return tir.call_extern("void", "tl_atomic_store", address, given, *ordered)
    return tir.call_extern(dtype, f"tl_atomic_{call['operation']}", address, given, *ordered)
