"""Products of warp groups that clear their accumulator themselves.

The first instruction of a product can leave out what the accumulator held.  So zeros that are written just before a
product need not be written, nor on the way of a condition that is the same for the whole block, as a mask that covers
part of the tile only in some turns: then the product clears where the condition holds.
"""

from __future__ import annotations

from typing import Any

import tvm
from tvm import tirx as tir

from tilelang_nb.language.tile_program import read, statement_name

from ..context import LaunchContext
from ..legalise import whole
from ..nests import perfect_nest
from ..rewrite import Load, branch, constant, has, map_children, nothing, sequence, statements, variables
from .decision import Specialisation
from .plan import ROLES
from .tile_statements import encoded, evaluate, is_product


def clear_in_products(body: Any, launch: LaunchContext) -> Any:
    """The launch with such products, where it is divided into roles."""
    return _visited(body) if isinstance(launch.facts.get(ROLES), Specialisation) else body


def _visited(node: Any) -> Any:
    node = map_children(node, _visited)
    if not isinstance(node, tir.SeqStmt):
        return node
    parts = list(node.seq)
    changed = False
    for at, one in enumerate(parts):
        if not is_product(one):
            continue
        call = read(one.value, one.span)
        clear = call["clear_accum"]
        if not isinstance(clear, tir.IntImm) or int(clear) or not whole(call["c"]):
            continue
        before, accumulator = at - 1, call["c"].buffer
        while before >= 0 and isinstance(parts[before], tir.Evaluate) and accumulator not in variables(parts[before]):
            before -= 1
        found = _zeros(parts[before], accumulator) if before >= 0 else None
        if found is not None:
            condition, parts[before] = found
            operands = {**call.operands, "clear_accum": condition}
            parts[at] = evaluate("gemm", one.span, *(encoded(operands[name]) for name in call.operands))
            changed = True
    return sequence(parts, node.span) if changed else node


def _zeros(node: Any, accumulator: Any) -> tuple[Any, Any] | None:
    """(where the accumulator is cleared, what is left of the statement); None where it is not."""
    if _clears(node, accumulator):
        return tir.const(True, "bool"), nothing(node.span)
    if isinstance(node, tir.IfThenElse) and node.else_case is not None and _clears(node.then_case, accumulator):
        return node.condition, branch(tir.Not(node.condition), node.else_case, None, node.span)
    return None


def _clears(node: Any, accumulator: Any) -> bool:
    """The statement writes zeros to all of the accumulator, and does nothing else."""
    if statement_name(node) == "fill":
        call = read(node.value, node.span)
        return call["target"].buffer == accumulator and whole(call["target"]) and _is_zero(call["value"])
    if not isinstance(node, tir.For) or int(node.kind) != tir.ForKind.PARALLEL:
        return False
    loops, inside = perfect_nest(node)
    *binds, store = statements(inside)
    if not all(isinstance(one, tir.Bind) and not has(one.value, (Load, tvm.ir.Call)) for one in binds):
        return False
    if not isinstance(store, tir.BufferStore) or store.buffer != accumulator or not _is_zero(store.value):
        return False
    names = [one.loop_var for one in loops]
    return (
        len(names) == len(store.indices) == len(accumulator.shape)
        and all(isinstance(index, tvm.ir.Var) and index.same_as(var) for index, var in zip(store.indices, names))
        and all(constant(one.min) == 0 and constant(one.extent) == int(n) for one, n in zip(loops, accumulator.shape))
    )


def _is_zero(value: Any) -> bool:
    while isinstance(value, tir.Cast):
        value = value.value
    return isinstance(value, tir.IntImm | tir.FloatImm) and float(value.value) == 0
