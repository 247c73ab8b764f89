"""Loops that guard-accesses was told may be vectors: conditions move out of them, or they stay scalar."""

from __future__ import annotations

from typing import Any

import tvm
import tvm_ffi
from tvm import tirx as tir
from tvm.sym import Analyzer

from .index_arithmetic import fold
from .rewrite import branch, constant, dtype_of, sequence, size, statements, substitute, variables


def hoisted(node: Any, body: Any, analyzer: Analyzer) -> Any:
    """The loop `node` with its guarded body: VECTORIZED stores under conditions that no lane changes, else UNROLLED.

    The iterations are independent, so each store may have a loop of its own.
    """
    var, width = node.loop_var, size(node.extent)
    found = _conditional_stores(body, [])
    vectors = (
        [] if found is None else [_vector(node, conditions, store, width, analyzer) for conditions, store in found]
    )
    if not vectors or any(vector is None for vector in vectors):
        return tir.For(
            var, node.min, node.extent, tir.ForKind.UNROLLED, body, annotations=_without_mark(node), span=node.span
        )
    return sequence(vectors, node.span)


def _without_mark(node: Any) -> dict[str, Any]:
    return {key: value for key, value in node.annotations.items() if key != "tl.vector"}


def _conditional_stores(body: Any, conditions: list[Any]) -> list[tuple[list[Any], Any]] | None:
    found: list[tuple[list[Any], Any]] = []
    for one in statements(body):
        if isinstance(one, tir.IfThenElse) and one.else_case is None:
            inner = _conditional_stores(one.then_case, [*conditions, one.condition])
            if inner is None:
                return None
            found += inner
        elif isinstance(one, tir.BufferStore):
            found.append((conditions, one))
        else:
            return None
    return found


def _vector(node: Any, conditions: list[Any], store: Any, width: int, analyzer: Analyzer) -> Any | None:
    var = node.loop_var
    same = [_of_first_lane(condition, var, width, analyzer) for condition in conditions]
    value = _with_uniform_choices(store.value, var, width, analyzer)
    if any(condition is None for condition in same):
        return None
    store = tir.BufferStore(store.buffer, value, list(store.indices), store.span)
    result: Any = tir.For(
        var, node.min, node.extent, tir.ForKind.VECTORIZED, store, annotations=_without_mark(node), span=node.span
    )
    for condition in reversed(same):
        result = branch(condition, result, None, store.span)
    return result


def _with_uniform_choices(value: Any, var: Any, width: int, analyzer: Analyzer) -> Any:
    """The value with its guards of loads decided by the first lane; a choice in which lanes differ stays as it is."""

    def choice(call: Any) -> Any:
        if not getattr(call.op, "name", "").endswith("if_then_else"):
            return call
        condition = _of_first_lane(call.args[0], var, width, analyzer)
        if condition is None or condition.same_as(call.args[0]):
            return call
        return tir.if_then_else(condition, call.args[1], call.args[2])

    return tvm_ffi.structural_map(value, (tvm.ir.Call, choice))


def _of_first_lane(condition: Any, var: Any, width: int, analyzer: Analyzer) -> Any | None:
    """The condition as all lanes see it, without the lane variable; None where lanes may differ.

    `base + lane < limit` with base and limit multiples of the width holds for all lanes or for none.
    """
    if var not in variables(condition):
        return condition
    kind = type(condition)
    if kind is tir.And:
        left = _of_first_lane(condition.a, var, width, analyzer)
        right = _of_first_lane(condition.b, var, width, analyzer)
        return None if left is None or right is None else tir.And(left, right)
    if kind is tir.LT or kind is tir.GE:
        low, high = condition.a, condition.b
    elif kind is tir.GT or kind is tir.LE:
        low, high = condition.b, condition.a
    else:
        return None
    if var in variables(high) or not dtype_of(low).startswith("int"):
        return None
    zero = tir.const(0, dtype_of(var))
    first = fold(substitute(low, {var: zero}), analyzer)
    if constant(analyzer.simplify(low - first - var)) != 0:
        return None
    if not all(_multiple(side, width, analyzer) for side in (first, high)):
        return None
    # LT, GT: low < high; GE, LE: low >= high.  Both are decided by the group of `width` that low lies in.
    return tir.LT(first, high) if kind in (tir.LT, tir.GT) else tir.GE(first, high)


def _multiple(value: Any, width: int, analyzer: Analyzer) -> bool:
    known = analyzer.modular_set(value)
    return int(known.coeff) % width == 0 and int(known.base) % width == 0
