"""Loops that guard-accesses was told may be vectors: conditions move out of them, or they stay scalar."""

from __future__ import annotations

from typing import Any

import tvm
import tvm_ffi
from tvm import tirx as tir
from tvm.sym import Analyzer

from .index_arithmetic import fold
from .rewrite import branch, constant, dtype_of, manageable, sequence, size, statements, substitute, variables


def hoisted(node: Any, body: Any, analyzer: Analyzer) -> Any:
    """The loop `node` with its guarded body: VECTORIZED stores under conditions that no lane changes.

    Where a group of lanes may lie over an edge, it is VECTORIZED if it does not, and UNROLLED with its conditions if it
    does; under conditions of other kinds it is UNROLLED.  The iterations are independent, so each store may have a loop
    of its own.
    """
    var, width = node.loop_var, size(node.extent)
    found = _conditional_stores(body, [])
    vectors = (
        [] if found is None else [_vector(node, conditions, store, width, analyzer) for conditions, store in found]
    )
    one_by_one = tir.For(
        var, node.min, node.extent, tir.ForKind.UNROLLED, body, annotations=_without_mark(node), span=node.span
    )
    split = _unless_over_an_edge(node, found or [], one_by_one, width, analyzer)
    if split is not None:
        return split
    return sequence(vectors, node.span) if vectors and None not in vectors else one_by_one


def _unless_over_an_edge(
    node: Any, found: list[tuple[list[Any], Any]], otherwise: Any, width: int, analyzer: Analyzer
) -> Any | None:
    """Vectors where all lanes satisfy all conditions, else `otherwise`.

    None where that cannot be told from one lane, and where lanes do not differ anyhow.
    """
    var = node.loop_var
    needed: list[Any] = []
    vectors: list[Any] = []
    differing = False

    def need(condition: Any, given: Any) -> None:
        nonlocal differing
        differing = differing or _of_first_lane(given, var, width, analyzer) is None
        if not any(tvm_ffi.structural_equal(condition, known) for known in needed):
            needed.append(condition)

    def choice(call: Any) -> Any:
        if not getattr(call.op, "name", "").endswith("if_then_else"):
            return call
        holds = _of_all_lanes(call.args[0], var, width, analyzer)
        if holds is None:
            return call
        need(holds, call.args[0])
        return call.args[1]

    for conditions, store in found:
        for condition in conditions:
            holds = _of_all_lanes(condition, var, width, analyzer)
            if holds is None:
                return None
            need(holds, condition)
        value = tvm_ffi.structural_map(store.value, (tvm.ir.Call, choice))
        vector = tir.BufferStore(store.buffer, value, list(store.indices), store.span)
        lane = tir.Var(var.name, dtype_of(var))
        kind, body = tir.ForKind.VECTORIZED, substitute(vector, {var: lane})
        vectors.append(
            tir.For(lane, node.min, node.extent, kind, body, annotations=_without_mark(node), span=node.span)
        )
    if not differing:
        return None
    whole = needed[0]
    for condition in needed[1:]:
        whole = tir.And(whole, condition)
    return branch(whole, sequence(vectors, node.span), otherwise, node.span)


def _of_all_lanes(condition: Any, var: Any, width: int, analyzer: Analyzer) -> Any | None:
    """What must hold for the condition to hold for all lanes, without the lane variable; None where that is not known.

    A side of the comparison that grows with the lane by one is largest in the last lane and smallest in the first.
    """
    if var not in variables(condition):
        return condition
    kind = type(condition)
    if kind is tir.And:
        left = _of_all_lanes(condition.a, var, width, analyzer)
        right = _of_all_lanes(condition.b, var, width, analyzer)
        return None if left is None or right is None else tir.And(left, right)
    if kind not in (tir.LT, tir.LE, tir.GT, tir.GE) or not dtype_of(condition.a).startswith("int"):
        return None
    sides = [condition.a, condition.b]
    for position, side in enumerate(sides):
        if var not in variables(side):
            continue
        first = substitute(side, {var: tir.const(0, dtype_of(var))})
        if (
            not manageable(side)
            or constant(analyzer.simplify(side - first - var)) != 0
            or var in variables(sides[1 - position])
        ):
            return None
        largest = (position == 0) == (kind in (tir.LT, tir.LE))
        sides[position] = fold(first + (width - 1) if largest else first, analyzer)
    return kind(*sides)


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
    if var in variables(high) or not dtype_of(low).startswith("int") or not manageable(low):
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
