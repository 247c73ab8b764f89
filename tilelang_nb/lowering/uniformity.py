"""Which values all threads of a block agree on, and which loops all threads leave in the same turn.

A value is *uniform* when every thread that evaluates it gets the same; otherwise it is divergent. Sources of
divergence are the thread indices, the variables of `T.Parallel` loops, lanes of warp operations and old values of
atomics. It spreads through bindings and through per-thread memory ("local", "local.var"): such a buffer is
divergent when anything divergent is stored into it, or when a store happens under divergent control flow. Loads of
shared or global memory, and of fragments, are uniform where their index is: threads that read one place read one
value, barriers see to that.

The analysis is a fixpoint over whole programs, because a loop may carry divergence back to its start.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import tvm
import tvm_ffi
from tvm import tirx as tir
from tvm_ffi import VisitInterrupt, WalkResult

from .context import LaunchContext

PRIVATE_SCOPES = ("local", "local.var")
# Calls whose result differs between threads whatever their arguments.  Block-wide votes (`__syncthreads_or`) do not.
_LANE_CALLS = ("__shfl", "__any_sync", "__all_sync", "__ballot_sync", "__activemask", "tl_atomic", "tl.atomic", "clock")


class Uniformity:
    """What is known of a statement.

    body: a thread program, or a tile program (then a fragment counts as memory that all threads share).
    thread_vars: the thread index variables.  alone: a block is one thread, which agrees with itself on everything.
    agreed: per-thread memory in which all threads hold the same, however it gets there.
    """

    def __init__(
        self, body: tir.Stmt, thread_vars: Iterable[Any], alone: bool = False, agreed: frozenset[Any] = frozenset()
    ):
        self._divergent: set[Any] = set() if alone else set(thread_vars)
        self._agreed = agreed
        self._loops: set[Any] = set()  # For and While nodes that threads leave in different turns
        self._alone = alone
        grown = -1
        while not alone and grown != len(self._divergent) + len(self._loops):
            grown = len(self._divergent) + len(self._loops)
            self._statement(body, False, [])

    def is_uniform(self, expr: Any) -> bool:
        """Every thread of the block that evaluates it at this place gets the same value."""
        kind = type(expr)
        if self._alone or kind is tir.IntImm or kind is tir.FloatImm:
            return True
        if kind is tvm.ir.Var:
            return expr not in self._divergent
        found = tvm_ffi.structural_walk(expr, [(tvm.ir.Call, self._call), (tvm.ir.Var, self._variable)], order="pre")
        return not isinstance(found, VisitInterrupt)

    def divergent_loop(self, loop: tir.For | tir.While) -> bool:
        """Threads may run different numbers of turns, or leave a turn early while others go on."""
        return loop in self._loops

    # ---- expressions ----

    def _variable(self, var: Any) -> Any:
        return VisitInterrupt(var) if var in self._divergent else None

    def _call(self, call: Any) -> Any:
        if getattr(call.op, "name", "") != "tirx.call_extern":
            return VisitInterrupt(call) if "shfl" in getattr(call.op, "name", "") else None
        name = call.args[0].value
        if name == "tl.region" or name.startswith("__syncthreads"):
            return WalkResult.SKIP  # the operand of a tile operation is no value; a vote of the block is one for all
        return VisitInterrupt(call) if name.startswith(_LANE_CALLS) else None

    # ---- statements ----

    def _statement(self, node: Any, divergent: bool, loops: list[Any]) -> None:
        """divergent: not all threads execute the statement; loops: the loops around it, innermost last."""
        kind = type(node)
        if kind is tir.SeqStmt:
            for child in node.seq:
                # A jump that only some threads take makes what follows in the loop divergent.
                self._statement(child, divergent or bool(loops and loops[-1] in self._loops), loops)
        elif kind is tir.BufferStore:
            buffer = node.buffer
            if self._is_private(buffer) and buffer not in self._divergent:
                parts = [node.value, *node.indices]
                if divergent or not all(self.is_uniform(part) for part in parts):
                    self._divergent.add(buffer)
        elif kind is tir.Bind:
            if node.var not in self._divergent and not self.is_uniform(node.value):
                self._divergent.add(node.var)
        elif kind is tir.IfThenElse:
            inner = divergent or not self.is_uniform(node.condition)
            self._statement(node.then_case, inner, loops)
            if node.else_case is not None:
                self._statement(node.else_case, inner, loops)
        elif kind is tir.For:
            if int(node.kind) == tir.ForKind.PARALLEL:
                self._parallel(node)
            elif not (self.is_uniform(node.min) and self.is_uniform(node.extent)):
                self._loops.add(node)
                self._divergent.add(node.loop_var)
            self._statement(node.body, divergent or node in self._loops, [*loops, node])
        elif kind is tir.While:
            if not self.is_uniform(node.condition):
                self._loops.add(node)
            self._statement(node.body, divergent or node in self._loops, [*loops, node])
        elif kind is tir.Break or kind is tir.Continue:
            if divergent and loops:
                self._loops.add(loops[-1])
        elif kind is tir.AttrStmt:
            self._statement(node.body, divergent, loops)
        elif kind is tir.Evaluate:
            self._evaluate(node.value)

    def _is_private(self, buffer: Any) -> bool:
        return buffer.scope() in PRIVATE_SCOPES and buffer not in self._agreed

    def _parallel(self, node: Any) -> None:
        """The iterations of a T.Parallel loop are those of different threads."""
        self._divergent.add(node.loop_var)

    def _evaluate(self, call: Any) -> None:
        """A call that names per-thread memory as an operand may leave anything there; an index only reads it."""
        name = getattr(call.op, "name", "") if type(call) is tvm.ir.Call else ""
        if not name.startswith(("tirx.ptx", "tirx.cuda")) or name.startswith("tirx.ptx.cp_async"):
            return

        def operand(load: Any) -> Any:
            if self._is_private(load.source):
                self._divergent.add(load.source)
            return WalkResult.SKIP

        tvm_ffi.structural_walk(call, (tvm.ir.TensorLoad, operand), order="pre")


class Elements(Uniformity):
    """The same of the elements of fragments, for a tile program: which of them do not depend on who computes them.

    Iterations of T.Parallel compute elements; per-thread memory that they write differs from thread to thread.  A
    fragment is *tainted* when something that depends on the thread gets into it.
    """

    def is_tainted(self, fragment: Any) -> bool:
        """Threads that hold the same element of it may hold different values."""
        return fragment in self._divergent

    def _is_private(self, buffer: Any) -> bool:
        return super()._is_private(buffer) or buffer.scope() == "local.fragment"

    def _parallel(self, node: Any) -> None:
        def stored(store: Any) -> None:
            if store.buffer.scope() in PRIVATE_SCOPES:
                self._divergent.add(store.buffer)

        tvm_ffi.structural_walk(node.body, (tir.BufferStore, stored))

    def _evaluate(self, call: Any) -> None:
        super()._evaluate(call)
        mentioned: list[Any] = []
        tvm_ffi.structural_walk(call, (tvm.ir.Var, lambda var: mentioned.append(var)))
        fragments = [v for v in mentioned if isinstance(v.ty, tir.BufferType) and v.scope() == "local.fragment"]
        if fragments and (not self.is_uniform(call) or not self._divergent.isdisjoint(mentioned)):
            self._divergent.update(fragments)


def agreed_registers(launch: LaunchContext) -> frozenset[Any]:
    """Registers of fragments that every thread of the block holds whole: they are the same in all of them.

    Reducers are not: until the end every thread has a part of its own.
    """
    text = launch.facts.get("tile")
    candidates = {
        buffer: launch.registers[buffer]
        for buffer, layout in launch.layouts.items()
        if layout.is_uniform and layout.threads == launch.threads and buffer in launch.registers
    }
    candidates = {b: held for b, held in candidates.items() if b not in launch.facts.get("reducers", ())}
    if text is None or not candidates:
        return frozenset()
    elements = Elements(text.body, launch.axes)
    return frozenset(held for buffer, held in candidates.items() if not elements.is_tainted(buffer))
