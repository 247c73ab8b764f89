"""Serial loops that begin by loading from global memory load for several turns at once.

`for k in range(32): a = A[k]; b = B[k]; use(a, b)` waits for memory in every turn.  Done four turns at a time, all
their loads are under way before the first is waited for; that takes registers, so the compiler is told how many blocks
must still fit on a multiprocessor.  Nothing else changes: such a loop writes no memory and meets no other thread, and
what it loads into is written anew, in the same places, in every turn.
"""

from __future__ import annotations

from typing import Any

import tvm
import tvm_ffi
from tvm import tirx as tir

from tilelang_nb.lowering.rewrite import (
    Load,
    constant,
    dtype_of,
    has,
    loop,
    map_children,
    scope,
    sequence,
    size,
    statements,
    substitute,
    variables,
)

from .vector_accesses import LOCAL, item_bytes

TURNS = (4, 2)
BYTES = 192  # in flight for a thread
FEWEST = 16  # bytes of one turn: below, loads are not what the loop waits for
THREADS = 1024  # resident on a multiprocessor
MIN_BLOCKS = "tirx.launch_bounds_min_blocks_per_sm"


def load_ahead(function: Any) -> Any:
    """The pass.  Before: thread programs with flat private arrays."""
    ahead = _Ahead(function.body)
    body = ahead.statement(function.body)
    return function if body.same_as(function.body) else function.with_body(_with_fewest_blocks(body))


class _Ahead:
    def __init__(self, body: Any) -> None:
        self.uses: dict[Any, int] = {}

        def count(variable: Any) -> None:
            self.uses[variable] = self.uses.get(variable, 0) + 1

        tvm_ffi.structural_walk(body, (tvm.ir.Var, count))
        self.wider: dict[Any, Any] = {}  # private array -> one for several turns

    def statement(self, node: Any) -> Any:
        if isinstance(node, tir.For) and tir.ForKind(node.kind) == tir.ForKind.SERIAL:
            done = self._loop(node)
            if done is not None:
                return done
        if isinstance(node, tir.SeqStmt):
            after = map_children(node, self.statement)
            return sequence([self._allocation(one) for one in statements(after)], node.span) if self.wider else after
        return map_children(node, self.statement)

    def _allocation(self, node: Any) -> Any:
        if isinstance(node, tir.AllocBuffer) and node.buffer in self.wider:
            return tir.AllocBuffer(self.wider[node.buffer], node.annotations, node.span)
        return node

    def _loop(self, node: Any) -> Any | None:
        turns, parts = constant(node.extent), statements(node.body)
        if turns is None or constant(node.min) != 0:
            return None
        count = next((n for n, part in enumerate(parts) if not _is_load(part, node.loop_var)), len(parts))
        loads, rest = parts[:count], parts[count:]
        arrays = {buffer: None for part in loads for buffer in _stored(part)}
        if not arrays or not rest or not all(_is_private(part) for part in rest):
            return None
        if any(buffer in arrays for part in rest for buffer in _stored(part)):
            return None
        if any(self.uses[buffer] != _occurrences(node, buffer) + 1 for buffer in arrays):
            return None  # used outside of the loop: `+ 1` is its allocation
        each = sum(size(buffer.shape[0]) * item_bytes(dtype_of(buffer)) for buffer in arrays)
        factor = next((n for n in TURNS if turns % n == 0 and turns > n and n * each <= BYTES), None)
        if factor is None or each < FEWEST:
            return None
        together = [self._turns(node, factor, part, arrays) for part in (*loads, sequence(rest))]
        extent = tir.const(turns // factor, dtype_of(node.loop_var))
        return loop(node, extent=extent, body=tir.SeqStmt(together))

    def _turns(self, node: Any, factor: int, body: Any, arrays: dict[Any, None]) -> Any:
        """`body` for all turns that are done together, each with a part of the private arrays of its own."""
        turn = tir.Var("turn", dtype_of(node.loop_var))

        def place(buffer: Any, indices: Any) -> tuple[Any, list[Any]]:
            if buffer not in self.wider:
                shape = (size(buffer.shape[0]) * factor,)
                wide = tir.decl_buffer(shape, dtype_of(buffer), buffer.name, scope="local", layout=None)
                self.wider[buffer] = wide
            index = tir.Cast("int32", turn) if dtype_of(turn) != "int32" else turn
            return self.wider[buffer], [index * size(buffer.shape[0]) + indices[0]]

        def load(expr: Any) -> Any:
            return tir.BufferLoad(*place(expr.source, expr.indices)) if expr.source in arrays else expr

        def store(one: Any) -> Any:
            if one.buffer not in arrays:
                return one
            buffer, indices = place(one.buffer, one.indices)
            return tir.BufferStore(buffer, one.value, indices, one.span)

        body = tvm_ffi.structural_map(body, [(Load, load), (tir.BufferStore, store)])
        body = _with_own_variables(substitute(body, {node.loop_var: node.loop_var * factor + turn}))
        return tir.For(turn, 0, factor, tir.ForKind.UNROLLED, body, span=node.span)


def _is_load(node: Any, turn: Any) -> bool:
    """Only stores into private arrays of what is loaded from global memory, at places that no turn changes."""
    if isinstance(node, tir.For):
        return constant(node.extent) is not None and all(_is_load(one, turn) for one in statements(node.body))
    if not isinstance(node, tir.BufferStore) or scope(node.buffer) not in LOCAL:
        return False
    place = node.indices[0]
    if turn in variables(place) or has(place, (Load, tvm.ir.Call)):
        return False
    found: list[Any] = []
    tvm_ffi.structural_walk(node.value, (Load, found.append))
    others = [call for call in _calls(node.value) if not call.endswith("if_then_else")]
    return bool(found) and not others and all(scope(load.source) == "global" for load in found)


def _is_private(node: Any) -> bool:
    """Touches nothing but registers: no other memory, no other thread, nothing that could leave the loop."""
    bad: list[Any] = []

    def store(one: Any) -> None:
        if scope(one.buffer) not in LOCAL:
            bad.append(one)

    def load(one: Any) -> None:
        if scope(one.source) not in LOCAL:
            bad.append(one)

    kinds = (tir.Break, tir.Continue, tir.While, tir.AllocBuffer, tir.DeclBuffer, tir.Evaluate)
    tvm_ffi.structural_walk(node, [(tir.BufferStore, store), (Load, load), (kinds, bad.append)])
    return not bad and all(not call.endswith("extern") for call in _calls(node))


def _calls(node: Any) -> list[str]:
    found: list[str] = []
    tvm_ffi.structural_walk(node, (tvm.ir.Call, lambda call: found.append(getattr(call.op, "name", ""))))
    return found


def _stored(node: Any) -> set[Any]:
    found: set[Any] = set()
    tvm_ffi.structural_walk(node, (tir.BufferStore, lambda one: found.add(one.buffer)))
    return found


def _occurrences(node: Any, buffer: Any) -> int:
    found: list[Any] = []
    tvm_ffi.structural_walk(node, (tvm.ir.Var, lambda variable: found.append(1) if variable.same_as(buffer) else None))
    return len(found)


def _with_own_variables(body: Any) -> Any:
    """Loops and names of a copied body with variables of their own."""
    if isinstance(body, tir.For):
        variable = tir.Var(body.loop_var.name, dtype_of(body.loop_var))
        inner = _with_own_variables(substitute(body.body, {body.loop_var: variable}))
        return loop(body, loop_var=variable, body=inner)
    return map_children(body, _with_own_variables)


def _with_fewest_blocks(body: Any) -> Any:
    """Tell how many blocks must fit, inside the thread axes."""
    threads, axes, inner = 1, [], body
    while isinstance(inner, tir.AttrStmt) and inner.attr_key == "thread_extent":
        extent = constant(inner.value)
        if str(inner.node.thread_tag).startswith("threadIdx"):
            if extent is None:
                return body
            threads *= extent
        axes.append(inner)
        inner = inner.body
    blocks = max(THREADS // threads, 1)
    inner = tir.AttrStmt(tir.const(0, "int32"), MIN_BLOCKS, tir.const(blocks, "int32"), inner)
    for axis in reversed(axes):
        inner = tir.AttrStmt(axis.node, axis.attr_key, axis.value, inner, axis.span)
    return inner
