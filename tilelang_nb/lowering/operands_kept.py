"""keep-operands: operands that no turn of a pipelined loop changes are loaded once.

Before: every turn loads the operands of its products from shared memory, also those of a tile that was copied before
the loop, as the queries of an attention.  After: they are loaded in front of the loop, once the first tiles are there,
into registers for all steps along the depth.

It is done where nothing in the loop writes the tile, and where the registers are enough.
"""

from __future__ import annotations

from typing import Any

import tvm
import tvm_ffi
from tvm import tirx as tir

from .accesses import waits_for_copies
from .context import LaunchContext
from .operands_ahead import MOST_REGISTERS, OTHERS, REGISTER_FILE, arrays_in, products_of, stored_arrays, words
from .own_names import with_own_names
from .rewrite import Load, loop, map_children, scope, sequence, size, statements, variables


def keep_operands(function: Any, launch: LaunchContext) -> Any:
    """The stage."""
    loops = {plan.loop.loop_var for plan in launch.facts.get("pipelines", ()) if plan.stages > 1}

    def visit(node: Any) -> Any:
        node = map_children(node, visit)
        return _kept(node, launch) if isinstance(node, tir.For) and node.loop_var in loops else node

    body = visit(function.body)
    return function if body.same_as(function.body) else function.with_body(body)


def _kept(node: Any, launch: LaunchContext) -> Any:
    parts = statements(node.body)
    products = products_of(parts)
    waits = [at for at, one in enumerate(parts) if isinstance(one, tir.Evaluate) and waits_for_copies(one.value)]
    if not products or not waits or waits[0] > products[0] or len(products) < 2:
        return node  # a loop of one product has its operands a step ahead instead
    changing = _defined(node) | _written(node)
    held = {var for at in products for var in arrays_in(statements(parts[at].body)[-1])}
    operands = {at: _operands(parts[at]) for at in products}
    held -= {array for found in operands.values() for array in found}
    room = min(MOST_REGISTERS, REGISTER_FILE // launch.threads) - OTHERS - sum(map(words, held))
    before: list[Any] = []
    replaced: set[Any] = set()
    for at in products:
        for array, loads in operands[at].items():
            steps = parts[at]
            if any(not changing.isdisjoint(variables(one)) or not _from_shared(one, array) for one in loads):
                continue
            needed = size(steps.extent) * words(array)
            others = max(
                sum(words(one) for one in found if one not in replaced and not one.same_as(array))
                for found in operands.values()
            )
            if needed + others > room:
                continue
            room -= needed
            replaced.add(array)
            wide = tir.decl_buffer(
                (size(steps.extent) * size(array.shape[0]),), str(array.dtype), array.name, scope="local", layout=None
            )
            first = with_own_names(loop(steps, body=sequence(loads, steps.span), annotations={}))
            before += [tir.AllocBuffer(wide, None, node.span), _wider(first, array, wide, first.loop_var)]
            left = [one for one in statements(steps.body) if not any(one.same_as(load) for load in loads)]
            parts[at] = loop(steps, body=_wider(sequence(left, steps.span), array, wide, steps.loop_var))
    if not before:
        return node
    body = [one for one in parts if not (isinstance(one, tir.AllocBuffer) and one.buffer in replaced)]
    return sequence([with_own_names(parts[waits[0]]), *before, loop(node, body=sequence(body, node.span))], node.span)


def _operands(steps: Any) -> dict[Any, list[Any]]:
    """Register arrays that a product loads, each with the statements that load it."""
    found: dict[Any, list[Any]] = {}
    for one in statements(steps.body)[:-1]:
        arrays = stored_arrays(one)
        if len(arrays) == 1:
            found.setdefault(arrays.pop(), []).append(one)
    return found


def _defined(node: Any) -> set[Any]:
    """The variables that a turn defines, that of the loop among them."""
    found = {node.loop_var}
    tvm_ffi.structural_walk(node.body, (tir.Bind, lambda one: found.add(one.var)))
    return found


def _written(node: Any) -> set[Any]:
    """The memory that a turn may write: all whose address it takes for something else than loading a matrix."""
    found: set[Any] = set()
    tvm_ffi.structural_walk(node.body, (tir.BufferStore, lambda one: found.add(one.buffer)))

    def call(one: Any) -> Any:
        name = getattr(one.op, "name", "")
        if name == "tirx.ptx.ldmatrix":
            return tvm_ffi.WalkResult.SKIP
        if name in ("tirx.address_of", "tirx.tvm_access_ptr", "tirx.buffer_data"):
            found.update(variables(one))
        return None

    tvm_ffi.structural_walk(node.body, (tvm.ir.Call, call), order="pre")
    return {var for var in found if isinstance(var.ty, tir.BufferType)}


def _from_shared(node: Any, array: Any) -> bool:
    """Does a statement load matrices from shared memory into an array, and touch nothing else?"""
    used = arrays_in(node) - {array}
    return bool(used) and all(scope(var).startswith("shared") for var in used)


def _wider(node: Any, array: Any, wide: Any, step: Any) -> Any:
    """The statement with the part of the wider array that belongs to a step."""
    count = size(array.shape[0])

    def load(one: Any) -> Any:
        return tir.BufferLoad(wide, [step * count + one.indices[0]]) if one.source.same_as(array) else one

    def store(one: Any) -> Any:
        if not one.buffer.same_as(array):
            return one
        return tir.BufferStore(wide, one.value, [step * count + one.indices[0]], one.span)

    if isinstance(node, tir.For) and node.loop_var.same_as(step):
        return loop(node, body=_wider(node.body, array, wide, step))
    return tvm_ffi.structural_map(node, [(Load, load), (tir.BufferStore, store)])
