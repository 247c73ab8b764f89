"""Vector loops become vector accesses: one load or store of up to 16 bytes each, and scalar code between them.

A loop `for v in vectorized(8): Y[base + v] = f(X[base + v])` is read as three steps: load a vector of X into registers,
compute element by element in an unrolled loop, store a vector from registers.  So any expression may stand between the
accesses, element types need not agree, and what is one access is seen from its own index alone.  An access whose
alignment is not certain, and a loop with other statements inside, is done element by element.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import tvm
import tvm_ffi
from tvm import tirx as tir
from tvm.sym import Analyzer

from tilelang_nb.lowering.rewrite import (
    Load,
    constant,
    dtype_of,
    loop,
    map_children,
    scope,
    sequence,
    size,
    statements,
    substitute,
    variables,
)

BYTES = 16
LOCAL = ("local", "local.var")
CONSTANT_VECTORS = ("float32", "int32", "uint32")
ITEM = {
    **{f"{sign}int{bits}": bits // 8 for sign in ("", "u") for bits in (8, 16, 32, 64)},
    "bool": 1,
    "float16": 2,
    "bfloat16": 2,
    "float32": 4,
    "float64": 8,
}


def item_bytes(dtype: str) -> int:
    """Bytes of an element in memory."""
    return ITEM.get(dtype, 1)


def stage_vectors(function: Any) -> Any:
    """The pass.  Before: flat indices.  After: a VECTORIZED loop holds one store of one load or of one constant."""
    body = _Stager().statement(function.body)
    return function if body.same_as(function.body) else function.with_body(body)


@dataclass
class _Vector:
    """A load (with the condition around it) that is done as vectors."""

    expr: Any
    registers: Any


class _Stager:
    def __init__(self) -> None:
        self.analyzer = Analyzer()
        self.names: dict[str, int] = {}

    def statement(self, node: Any) -> Any:
        if isinstance(node, tir.For):
            if tir.ForKind(node.kind) == tir.ForKind.VECTORIZED:
                return self._vector_loop(node)
        return map_children(node, self.statement)

    # ---- one vector loop ----
    def _vector_loop(self, node: Any) -> Any:
        lanes = constant(node.extent)
        parts = statements(node.body)
        if lanes is None or constant(node.min) != 0 or not all(isinstance(one, tir.BufferStore) for one in parts):
            return _scalar(node)
        done = [self._store(node, one, lanes) for one in parts]
        if any(one is None for one in done):
            return _scalar(node)
        return sequence(done, node.span)

    def _store(self, node: Any, store: Any, lanes: int) -> Any:
        """The statements for one store; None where its vectors cannot be had."""
        var = node.loop_var
        into_memory = scope(store.buffer) not in LOCAL
        if into_memory and not self._is_wide(store.buffer, store.indices[0], var, lanes):
            return None
        if self._is_one_access(store, var, lanes):
            return self._accesses(node, lanes, store.buffer, store.indices[0], store.value, store.span)
        vectors = self._loads(store.value, var, lanes)
        before, value = [], store.value
        for vector in vectors:
            before.append(tir.AllocBuffer(vector.registers, None, store.span))
            before.append(self._filled(node, lanes, vector, store.span))
        if vectors:
            value = _replaced(value, vectors, var)
        if not into_memory:
            body = tir.BufferStore(store.buffer, value, list(store.indices), store.span)
            return sequence([*before, _unrolled(node, body)])
        name = self._name(store.buffer)
        result = tir.decl_buffer((lanes,), dtype_of(store.buffer), name, scope="local", layout=None)
        computing = _unrolled(node, tir.BufferStore(result, value, [var], store.span))
        storing = self._accesses(node, lanes, store.buffer, store.indices[0], tir.BufferLoad(result, [var]), store.span)
        return sequence([*before, tir.AllocBuffer(result, None, store.span), computing, storing])

    def _is_one_access(self, store: Any, var: Any, lanes: int) -> bool:
        """Is the loop a copy without conversion, or a constant that the printer has a vector of?"""
        value, dtype = store.value, dtype_of(store.buffer)
        if dtype != dtype_of(value):
            return False
        if isinstance(value, tir.FloatImm | tir.IntImm):
            return scope(store.buffer) not in LOCAL and dtype in CONSTANT_VECTORS
        if scope(store.buffer) in LOCAL and not self._is_wide(store.buffer, store.indices[0], var, lanes):
            return False
        return isinstance(value, Load) and self._is_vector(value, var, lanes)

    def _is_vector(self, value: Any, var: Any, lanes: int) -> bool:
        """A load of neighbours from an aligned one on; perhaps under a condition that no lane changes."""
        if isinstance(value, Load):
            return self._is_wide(value.source, value.indices[0], var, lanes)
        if isinstance(value, tvm.ir.Call) and _is_choice(value):
            condition, load, other = value.args
            return (
                isinstance(load, Load)
                and var not in variables(condition)
                and var not in variables(other)
                and not isinstance(other, Load)
                and self._is_wide(load.source, load.indices[0], var, lanes)
            )
        return False

    def _loads(self, value: Any, var: Any, lanes: int) -> list[_Vector]:
        """The loads from memory to do as vectors: those that every lane does, whatever the values.

        A side of a choice, and what stands right of `and` and `or`, is read only where it is taken; there a load is a
        vector only if the same one is done anyhow.
        """
        found: list[_Vector] = []

        def visit(expr: Any) -> Any:
            if isinstance(expr, tir.And | tir.Or):
                walk(expr.a)
                return tvm_ffi.WalkResult.SKIP
            if isinstance(expr, Load) and scope(expr.source) in LOCAL:
                return tvm_ffi.WalkResult.ADVANCE
            if self._is_vector(expr, var, lanes):
                load = expr if isinstance(expr, Load) else expr.args[1]
                if all(not tvm_ffi.structural_equal(expr, known.expr) for known in found):
                    dtype, name = dtype_of(load.source), self._name(load.source)
                    registers = tir.decl_buffer((lanes,), dtype, name, scope="local", layout=None)
                    found.append(_Vector(expr, registers))
                return tvm_ffi.WalkResult.SKIP
            if _is_choice(expr):
                walk(_condition(expr))
                return tvm_ffi.WalkResult.SKIP
            return tvm_ffi.WalkResult.ADVANCE

        def walk(expr: Any) -> None:
            tvm_ffi.structural_walk(expr, ((Load, tvm.ir.Call, tir.Select, tir.And, tir.Or), visit), order="pre")

        walk(value)
        return found

    # ---- accesses ----
    def _is_wide(self, buffer: Any, index: Any, var: Any, lanes: int) -> bool:
        """Do the lanes touch neighbouring elements, from one on whose address is a multiple of the access?"""
        if var not in variables(index):
            return False
        dtype = dtype_of(var)
        first = substitute(index, {var: tir.const(0, dtype)})
        if constant(self.analyzer.simplify(index - first - _as(var, dtype_of(index)))) != 0:
            return False
        width = min(lanes, max(BYTES // item_bytes(dtype_of(buffer)), 1))
        known = self.analyzer.modular_set(first)
        return int(known.coeff) % width == 0 and int(known.base) % width == 0

    def _accesses(self, node: Any, lanes: int, buffer: Any, index: Any, value: Any, span: Any) -> Any:
        """`buffer[index] = value` for all lanes, in pieces of 16 bytes."""
        width = min(lanes, max(BYTES // item_bytes(dtype_of(buffer)), 1))
        if width == 1:
            return _unrolled(node, tir.BufferStore(buffer, value, [index], span))
        var = node.loop_var
        if width == lanes:
            return loop(node, body=tir.BufferStore(buffer, value, [index], span), annotations={})
        parts = []
        for first in range(0, lanes, width):
            lane = tir.Var(var.name, dtype_of(var))
            moved = {var: lane + first if first else lane}
            body = tir.BufferStore(buffer, substitute(value, moved), [substitute(index, moved)], span)
            parts.append(tir.For(lane, 0, width, tir.ForKind.VECTORIZED, body, span=node.span))
        return sequence(parts)

    def _filled(self, node: Any, lanes: int, vector: _Vector, span: Any) -> Any:
        """The registers of a vector, loaded; under a condition perhaps, with the other value elsewhere."""
        var, expr = node.loop_var, vector.expr
        if isinstance(expr, Load):
            return self._accesses(node, lanes, vector.registers, var, expr, span)
        condition, load, other = expr.args
        loaded = self._accesses(node, lanes, vector.registers, var, load, span)
        instead = _unrolled(node, tir.BufferStore(vector.registers, other, [var], span))
        return tir.IfThenElse(condition, loaded, instead, span)

    def _name(self, buffer: Any) -> str:
        number = self.names[buffer.name] = self.names.get(buffer.name, 0) + 1
        return f"{buffer.name}_vector" if number == 1 else f"{buffer.name}_vector_{number}"


def _is_choice(expr: Any) -> bool:
    if isinstance(expr, tvm.ir.Call):
        return getattr(expr.op, "name", "").endswith("if_then_else")
    return isinstance(expr, tir.Select)


def _condition(choice: Any) -> Any:
    return choice.condition if isinstance(choice, tir.Select) else choice.args[0]


def _as(expr: Any, dtype: str) -> Any:
    return expr if dtype_of(expr) == dtype else tir.Cast(dtype, expr)


def _replaced(value: Any, vectors: list[_Vector], var: Any) -> Any:
    def visit(expr: Any) -> Any:
        for vector in vectors:
            if type(expr) is type(vector.expr) and tvm_ffi.structural_equal(expr, vector.expr):
                return tir.BufferLoad(vector.registers, [var])
        return expr

    # Conditions around loads first: their loads are part of them.
    guarded = [vector for vector in vectors if not isinstance(vector.expr, Load)]
    if guarded:
        value = tvm_ffi.structural_map(value, (tvm.ir.Call, visit))
    return tvm_ffi.structural_map(value, (Load, visit))


def _unrolled(node: Any, body: Any) -> Any:
    """A loop over the lanes with a variable of its own."""
    lane = tir.Var(node.loop_var.name, dtype_of(node.loop_var))
    body = substitute(body, {node.loop_var: lane})
    return tir.For(lane, 0, size(node.extent), tir.ForKind.UNROLLED, body, span=node.span)


def _scalar(node: Any) -> Any:
    return loop(node, kind=tir.ForKind.UNROLLED, annotations={})
