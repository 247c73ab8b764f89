"""What the turns of a `while` loop do: which can only end by what they compute themselves, and which ask for what
others store.

A loop that stores into registers alone, and calls nothing with an effect, runs the same turn again once its registers
and the lanes that take part are as they were: no other thread runs in between, because threads run in lockstep or
change places only where they wait.  The simulated device ends such a loop with a finding
(`simulator/machine/repetition.py`).  A loop with atomic operations asks: others run between its turns
(`simulator/machine/block_order.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tvm
import tvm_ffi
from tvm import tirx as tir
from tvm.ir.prim import expr as pe

from .inspection import PARTIAL, call_name, extern_name, loads
from .values import Storage

HARMLESS = (0, 1, 2, 6)  # TVM's TCallEffectKind: annotation, pure, reads state, jump
ATOMIC = ("tl_atomic_", "atomic")  # how names of atomic operations begin


def registers_of_turns(loop: Any, buffers: Mapping[Any, Storage]) -> list[str] | None:
    """Names of the register arrays that turns of a `while` store into; None if a turn may do more than that.

    Buffers that the body allocates are new in each turn, and not named.  Of a loop that asks, what it does with memory
    is no matter.
    """
    asking = asks(loop)
    stores: list[Any] = []
    inner: list[Any] = []
    other: list[Any] = []

    def look(node: Any) -> None:
        if isinstance(node, tir.BufferStore):
            stores.append(node.buffer)
        elif isinstance(node, tir.AllocBuffer):
            inner.append(node.buffer)
        elif isinstance(node, tvm.ir.Call):
            kind = node.op.get_attr("TCallEffectKind") if isinstance(node.op, tvm.ir.Op) else None
            atomic = extern_name(node).startswith(ATOMIC) or call_name(node).endswith("address_of")
            if kind not in HARMLESS and not atomic:
                other.append(node)
        elif isinstance(node, tir.AttrStmt):
            other.append(node)

    tvm_ffi.structural_walk(loop, look)
    outside = [buffer for buffer in stores if not any(buffer.same_as(one) for one in inner)]
    local = [buffer for buffer in outside if buffer in buffers and buffers[buffer].space == "local"]
    if not asking and (other or len(local) < len(outside)):
        return None
    return sorted({buffers[buffer].name for buffer in local})


def asks(loop: Any, of_block: bool = False) -> bool:
    """May a loop wait until other threads have stored something?  One with an atomic operation may.

    of_block: such an operation on shared memory.
    """
    found: list[Any] = []

    def look(call: Any) -> None:
        if extern_name(call).startswith(ATOMIC) and (not of_block or any(map(_is_shared, loads(call)))):
            found.append(call)

    tvm_ffi.structural_walk(loop, (tvm.ir.Call, look))
    return bool(found)


def leaving(loop: Any) -> list[Any] | None:
    """Conditions of which one holds where a turn leaves the loop; None for a loop that does more than to ask.

    Such a loop loads, compares and breaks, all of it in each turn.
    """
    values: dict[Any, Any] = {}
    found: list[Any] = []
    if not (isinstance(loop.condition, tir.IntImm) and int(loop.condition.value)):
        found.append(tir.Not(loop.condition))
    for statement in loop.body.seq if isinstance(loop.body, tir.SeqStmt) else [loop.body]:
        if isinstance(statement, tir.Bind):
            values[statement.var] = _with(statement.value, values)
        elif isinstance(statement, tir.IfThenElse) and statement.else_case is None and _breaks(statement.then_case):
            found.append(_with(statement.condition, values))
        elif not (isinstance(statement, tir.Evaluate) and _idle(statement.value)):
            return None
    return found if found and all(map(_plain, found)) else None


def _with(expression: Any, values: Mapping[Any, Any]) -> Any:
    return tvm_ffi.structural_map(expression, (tvm.ir.Var, lambda variable: values.get(variable, variable)))


def _breaks(statement: Any) -> bool:
    jump = isinstance(statement, tir.Evaluate) and call_name(statement.value) == "tirx.break_loop"
    return isinstance(statement, tir.Break) or jump


def _idle(value: Any) -> bool:
    return isinstance(value, tir.IntImm) or extern_name(value) == "__nanosleep"


def _plain(condition: Any) -> bool:
    """Does a condition load and compute, with no effect and no part that is left out at times?"""
    odd: list[Any] = []

    def look(node: Any) -> None:
        if isinstance(node, tvm.ir.Call):
            if extern_name(node) not in ("tl_atomic_load", "") or call_name(node) == "tirx.if_then_else":
                if not extern_name(node).startswith("tl_order_"):
                    odd.append(node)
        elif isinstance(node, (pe.And, pe.Or, pe.Select, *PARTIAL)):
            odd.append(node)

    tvm_ffi.structural_walk(condition, look)
    return not odd


def _is_shared(load: Any) -> bool:
    return str(load.source.ty.storage_scope).startswith("shared")


def any_asking_loop(body: Any, of_block: bool = False) -> bool:
    """Is there such a `while` loop?  of_block: one that asks for what threads of its block store in shared memory."""
    found: list[Any] = []
    tvm_ffi.structural_walk(body, (tir.While, lambda loop: found.append(loop) if asks(loop, of_block) else None))
    return bool(found)
