"""Addresses of matrix operands, in the form that takes one instruction each.

In a swizzled tile the address of an 8x8 matrix is `row part + ((step * 2 + c) ^ r) * 16`, where only `step`, of an
unrolled loop, differs between the instructions of a turn.  Written as `(row part + (c ^ r) * 16) ^ (step * 32)` the
bracket is the same for all of them, and what an unrolled loop adds outside of it becomes part of the instruction.

This is right where `c` lies below the bits of `step`, and where the row part is a multiple of all that is exchanged.
"""

from __future__ import annotations

import math
from typing import Any

import tvm
import tvm_ffi
from tvm import tirx as tir
from tvm.ir import Range

from tilelang_nb.lowering.rewrite import Load, constant, dtype_of, map_children, variables

from .vector_accesses import item_bytes

ALIGNED = 128  # bytes: what every tile of the arena begins at a multiple of
MOST = 1 << 16
XOR = type(tir.bitwise_xor(tir.Var("x", "int32"), tir.Var("y", "int32")))
_LDMATRIX = "tirx.ptx.ldmatrix"
_POINTER = "tirx.cuda.cvta_generic_to_shared"


def matrix_addresses(function: Any) -> Any:
    """The pass.  Before: buffers have one index."""
    rewriter = _Rewriter()
    body = rewriter.statement(function.body)
    return function if body.same_as(function.body) else function.with_body(body)


class _Rewriter:
    def __init__(self) -> None:
        self.analyzer = tvm.sym.Analyzer()
        self.unrolled: set[Any] = set()
        self.unaligned: set[Any] = set()

    def statement(self, node: Any) -> Any:
        if isinstance(node, tir.Evaluate):
            value = self._instruction(node.value)
            return node if value is None else tir.Evaluate(value, node.span)
        if isinstance(node, tir.AttrStmt) and node.attr_key == "thread_extent":
            extent = constant(node.value)
            if extent is not None:
                self.analyzer.bind(node.node.var, Range(0, extent), True)
        if isinstance(node, tir.For):
            low, extent = constant(node.min), constant(node.extent)
            if low is not None and extent is not None:
                self.analyzer.bind(node.loop_var, Range(low, low + extent), True)
                if tir.ForKind(node.kind) == tir.ForKind.UNROLLED:
                    self.unrolled.add(node.loop_var)
        if isinstance(node, tir.DeclBuffer):
            offset = node.data.args[1] if len(getattr(node.data, "args", ())) > 1 else None
            if offset is not None and (constant(offset) is None or constant(offset) % ALIGNED):
                self.unaligned.add(node.buffer)
        return map_children(node, self.statement)

    def _instruction(self, call: Any) -> Any | None:
        if not isinstance(call, tvm.ir.Call) or getattr(call.op, "name", "") != _LDMATRIX:
            return None
        changed = False

        def pointer(one: Any) -> Any:
            nonlocal changed
            if getattr(one.op, "name", "") != _POINTER:
                return one
            load = one.args[0].args[0] if getattr(one.args[0].op, "name", "") == "tirx.address_of" else None
            if not isinstance(load, Load) or len(load.indices) != 1 or load.source in self.unaligned:
                return one
            parts = self._split(load.indices[0], item_bytes(dtype_of(load.source)))
            if parts is None:
                return one
            changed = True
            base, turned, added = parts
            place = tir.address_of(tir.BufferLoad(load.source, [base]))
            address: Any = tir.call_intrin("uint32", _POINTER, place)
            address = tir.bitwise_xor(address, tir.Cast("uint32", turned))
            return address if added is None else address + tir.Cast("uint32", added)

        result = tvm_ffi.structural_map(call, (tvm.ir.Call, pointer))
        return result if changed else None

    def _split(self, index: Any, size: int) -> tuple[Any, Any, Any | None] | None:
        """(index of what all have in common, bytes to exchange, bytes to add); None where the form does not fit."""
        terms = _terms(index)
        swizzled = [term for term in terms if _xor(term) is not None]
        if len(swizzled) != 1:
            return None
        others = [term for term in terms if not term.same_as(swizzled[0])]
        inside, scale = _xor(swizzled[0]) or (None, 1)
        chunk, turn = inside.a, inside.b
        if any(var in self.unrolled for var in variables(turn)):
            chunk, turn = turn, chunk
        bound = self.analyzer.const_int_bound
        if (
            any(var in self.unrolled for var in variables(turn))
            or not 0 <= bound(turn).min_value <= bound(turn).max_value < MOST
        ):
            return None
        parts = _terms(chunk)
        step = _sum([term for term in parts if self._is_unrolled(term)])
        if constant(step) == 0:
            return None
        bits = 1 << max(int(bound(turn).max_value), 1).bit_length()  # exchanged; chunks beyond it are added
        still = [term for term in parts if not self._is_unrolled(term)]
        far = [term for term in still if self._multiple(term, bits)]
        near = [term for term in still if not self._multiple(term, bits)]
        base = _sum([term for term in others if not self._is_unrolled(term)])
        added = [term for term in others if self._is_unrolled(term)]
        if not (
            self._apart([step, *near])
            and bits * scale * size <= ALIGNED
            and self._multiple(base * size, bits * scale * size)
        ):
            return None
        base = _sum([base, *(term * scale for term in far)])
        if bound(step).max_value >= bits:
            added.append(tir.floordiv(step, bits) * (bits * scale))
            step = tir.floormod(step, bits)
        return (
            base + tir.bitwise_xor(_sum(near), turn) * scale,
            step * (scale * size),
            _sum(added) * size if added else None,
        )

    def _apart(self, terms: list[Any]) -> bool:
        """Have the terms different bits, so that their sum is what exchanging bits of one by the others gives?"""
        taken = 0
        for term in terms:
            known, bound = self.analyzer.modular_set(term), self.analyzer.const_int_bound(term)
            low = math.gcd(int(known.coeff), int(known.base))
            if bound.min_value < 0 or bound.max_value >= MOST:
                return False
            mine = ((1 << int(bound.max_value).bit_length()) - 1) & -(low & -low) if low else 0
            if mine & taken:
                return False
            taken |= mine
        return True

    def _multiple(self, expr: Any, number: int) -> bool:
        known = self.analyzer.modular_set(expr)
        return int(known.coeff) % number == 0 and int(known.base) % number == 0

    def _is_unrolled(self, term: Any) -> bool:
        found = variables(term)
        return bool(found) and all(var in self.unrolled for var in found) or isinstance(term, tir.IntImm)


def _terms(expr: Any) -> list[Any]:
    if isinstance(expr, tir.Add):
        return _terms(expr.a) + _terms(expr.b)
    return [expr]


def _sum(terms: list[Any]) -> Any:
    result: Any = tir.const(0, "int32")
    for term in terms:
        result = term if isinstance(result, tir.IntImm) and int(result.value) == 0 else result + term
    return result


def _xor(term: Any) -> tuple[Any, int] | None:
    """(the exclusive or, its factor) of a term that is one."""
    factor = 1
    if isinstance(term, tir.Mul) and constant(term.b) is not None:
        term, factor = term.a, int(term.b.value)
    return (term, factor) if isinstance(term, XOR) else None
