"""start-copies: vectors that an asynchronous copy moves from global to shared memory become cp.async.

Before: the loops of `T.async_copy`, and of copies that a pipeline runs ahead, carry `tl.asynchronous`; they load and
store elements and vectors.  After: each of 4, 8 or 16 bytes that stay as they are is one cp.async, and what a guard
keeps from being read is filled with zeros by it.  Others (converted ones, fewer bytes, such with a safe value other
than 0) are still loaded and stored where they stand, which is as early and needs no wait.
"""

from __future__ import annotations

from typing import Any

import tvm
from tvm import tirx as tir
from tvm.script.tirx import ptx

from .architecture import capability
from .context import LaunchContext
from .index_arithmetic import fold
from .ops.copy import ASYNCHRONOUS
from .plan_pipelines import FIRST
from .rewrite import Load, constant, dtype_of, loop, map_children, scope, size, substitute, variables

SIZES = (4, 8, 16)


def start_copies(function: Any, launch: LaunchContext) -> Any:
    """The stage."""

    able = capability(launch.arch) >= FIRST

    def visit(node: Any) -> Any:
        if not isinstance(node, tir.For) or ASYNCHRONOUS not in node.annotations:
            return map_children(node, visit)
        result = _started(node, launch) if able else node
        if ASYNCHRONOUS not in getattr(result, "annotations", ()):
            return result
        if constant(result.extent) == 1 and result.loop_var not in variables(result.body):
            return result.body
        return loop(result, annotations={key: one for key, one in result.annotations.items() if key != ASYNCHRONOUS})

    body = visit(function.body)
    return function if body.same_as(function.body) else function.with_body(body)


def _started(node: Any, launch: LaunchContext) -> Any:
    if isinstance(node, tir.For) and int(node.kind) == tir.ForKind.VECTORIZED:
        return _copy(node.body, node, launch) or node
    if isinstance(node, tir.BufferStore):
        return _copy(node, None, launch) or node
    return map_children(node, lambda one: _started(one, launch))


def _copy(store: Any, vector: Any, launch: LaunchContext) -> Any | None:
    """An element, or the vector that a loop over lanes moves, as one cp.async; None where it is loaded and stored."""
    if not isinstance(store, tir.BufferStore) or not scope(store.buffer).startswith("shared"):
        return None
    condition, value = None, store.value
    if isinstance(value, tvm.ir.Call) and getattr(value.op, "name", "").endswith("if_then_else"):
        condition, value, otherwise = value.args
        if not _zero(otherwise):
            return None
    if not isinstance(value, Load) or scope(value.source) != "global" or dtype_of(value) != dtype_of(store.buffer):
        return None
    lanes = 1 if vector is None else size(vector.extent)
    count = lanes * tvm.DataType(dtype_of(value)).bits // 8
    if count not in SIZES:
        return None
    zero = {} if vector is None else {vector.loop_var: tir.const(0, dtype_of(vector.loop_var))}

    def first(load: Any) -> Any:
        indices = [fold(substitute(index, zero), launch.analyzer) for index in load.indices]
        return tir.address_of(tir.BufferLoad(load.source, indices))

    target = first(tir.BufferLoad(store.buffer, list(store.indices)))
    cache = "cg" if count == 16 else "ca"
    operands = [target, first(value), count]
    if condition is not None:
        operands.append(tir.Select(condition, tir.const(count, "uint32"), tir.const(0, "uint32")))
    return tir.Evaluate(ptx[f"cp.async.{cache}.shared.global"](*operands), store.span)


def _zero(value: Any) -> bool:
    return constant(value) == 0 or (isinstance(value, tir.FloatImm) and float(value.value) == 0)
