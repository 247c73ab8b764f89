"""add-masks-later: accumulators begin at zero in all turns of a loop; what a mask begins with is added afterwards.

Before: a turn asks whether its tile is masked, as skip-masks divides `s[i, j] = T.if_then_else(i >= j, 0, -inf)`, and
its product begins with accumulators that both branches have written.  After: the product begins with zeros, which take
no registers, and the masked turns add minus infinity behind it, to the elements that were to begin with it.

It is done where registers are short, and where the sum is the same: of products of float16, which are finite unless
their factors are not, and of masks of 0 and infinities.
"""

from __future__ import annotations

import math
from typing import Any

import tvm
import tvm_ffi
from tvm import tirx as tir

from .context import LaunchContext
from .operands_ahead import products_of
from .own_names import with_own_names
from .place_copies import in_loops_ahead, is_short_of_registers
from .rewrite import Load, has, is_nothing, loop, map_children, nothing, sequence, statements, variables

EXACT = "f32.f16.f16.f32"  # the types of the instruction


def add_masks_later(function: Any, launch: LaunchContext) -> Any:
    """The stage."""
    return in_loops_ahead(function, launch, _later)


def _later(node: Any, launch: LaunchContext) -> Any:
    parts = statements(node.body)
    products = products_of(parts)
    if len(products) < 2 or not is_short_of_registers(parts, launch):
        return node
    first = products[0]
    total = _exact_total(parts[first])
    begins = [at for at in range(first) if total is not None and total in variables(parts[at])]
    if len(begins) != 1:
        return node
    begin = parts[begins[0]]
    if not isinstance(begin, tir.IfThenElse) or begin.else_case is None or not _is_zero(begin.then_case, total):
        return node
    masks = None if has(begin.condition, Load) else _added(begin.else_case, total)
    if masks is None:
        return node
    parts[begins[0]] = begin.then_case
    added = tir.IfThenElse(tir.Not(begin.condition), with_own_names(masks), None, begin.span)
    return loop(node, body=sequence([*parts[: first + 1], added, *parts[first + 1 :]], node.body.span))


def _exact_total(steps: Any) -> Any | None:
    """The accumulators of a product, where they are finite for all finite factors and live in one array."""
    product = statements(steps.body)[-1]
    found: list[Any] = []

    def call(one: Any) -> None:
        if one.op.name == "tirx.ptx.mma":
            found.append(one)

    tvm_ffi.structural_walk(product, (tvm.ir.Call, call))
    totals = {arg.source for one in found for arg in one.args[:4]}
    kinds = [".".join(str(getattr(arg, "value", "")) for arg in one.args[-5:-1]) for one in found]
    return totals.pop() if kinds and set(kinds) == {EXACT} and len(totals) == 1 else None


def _is_zero(node: Any, total: Any) -> bool:
    """Is a statement a loop that stores 0 into the accumulators alone?"""
    while isinstance(node, tir.For):
        node = node.body
    return isinstance(node, tir.BufferStore) and node.buffer.same_as(total) and _value(node.value) == 0


def _added(node: Any, total: Any) -> Any | None:
    """The statement that adds what another one stores into the accumulators; None where it stores anything else than
    zeros and infinities, or elsewhere.
    """
    bad: list[Any] = []

    def store(one: Any) -> Any:
        if not one.buffer.same_as(total) or not _is_mask(one.value):
            bad.append(one)
            return one
        old = tir.BufferLoad(total, list(one.indices))
        return tir.BufferStore(total, tir.Add(old, one.value), list(one.indices), one.span)

    if has(node, (Load, tir.Bind, tir.Evaluate, tir.AllocBuffer, tir.While)):
        return None
    result = tvm_ffi.structural_map(node, (tir.BufferStore, store))
    return None if bad else _without_zeros(result)


def _without_zeros(node: Any) -> Any:
    """The statement without additions of 0: the accumulators began with a zero of that sign."""
    if isinstance(node, tir.BufferStore):
        return nothing(node.span) if _value(node.value.b) == 0 else node
    node = map_children(node, _without_zeros)
    return nothing(node.span) if isinstance(node, tir.For) and is_nothing(node.body) else node


def _is_mask(value: Any) -> bool:
    if isinstance(value, tir.Select):
        return _is_mask(value.true_value) and _is_mask(value.false_value)
    if isinstance(value, tvm.ir.Call) and getattr(value.op, "name", "").endswith("if_then_else"):
        return _is_mask(value.args[1]) and _is_mask(value.args[2])
    number = _value(value)
    return number is not None and (number == 0 or math.isinf(number))


def _value(expr: Any) -> float | None:
    return float(expr.value) if isinstance(expr, tir.FloatImm) else None
