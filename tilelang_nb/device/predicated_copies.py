"""Asynchronous copies under a condition, inside the unrolled steps of a product, are instructions with a predicate.

A branch in each step would keep the compiler from moving loads and products over it, and would compute the addresses of
its copies anew.  Branches elsewhere stay: where many copies stand together one branch is less than a predicate each.
"""

from __future__ import annotations

from typing import Any

import tvm
import tvm_ffi
from tvm import tirx as tir

from tilelang_nb.lowering.rewrite import Load, constant, has, map_children, sequence, statements, with_body

COPIES = ("tirx.ptx.cp_async_cg", "tirx.ptx.cp_async_cg_src_size")
BYTES = 16


def predicated_copies(body: Any, in_steps: bool = False) -> Any:
    """The statement with such copies as calls of the prelude."""
    if isinstance(body, tir.For):
        unrolled = in_steps or tir.ForKind(body.kind) == tir.ForKind.UNROLLED
        return with_body(body, predicated_copies(body.body, unrolled))
    if isinstance(body, tir.IfThenElse) and in_steps and body.else_case is None and not has(body.condition, Load):
        result = _under(body.then_case, body.condition)
        if result is not None:
            return result
    return map_children(body, lambda one: predicated_copies(one, in_steps))


def _under(node: Any, condition: Any) -> Any | None:
    """Copies, each under a condition; None where a statement does anything else."""
    if isinstance(node, tir.SeqStmt):
        parts = [_under(one, condition) for one in statements(node)]
        return None if None in parts else sequence(parts, node.span)
    if isinstance(node, tir.For) and tir.ForKind(node.kind) == tir.ForKind.UNROLLED:
        inner = _under(node.body, condition)
        return None if inner is None else with_body(node, inner)
    if isinstance(node, tir.IfThenElse) and node.else_case is None and not has(node.condition, Load):
        return _under(node.then_case, tir.And(condition, node.condition))
    call = node.value if isinstance(node, tir.Evaluate) else None
    if not isinstance(call, tvm.ir.Call) or getattr(call.op, "name", "") not in COPIES:
        return None
    to, source, count, *others = [one for one in call.args if not isinstance(one, tvm.ir.StringImm)]
    if constant(count) != BYTES or _reads_memory(to) or _reads_memory(source):
        return None
    return tir.Evaluate(tir.call_extern("void", "tl_copy_16_if", to, source, *others, condition), node.span)


def _reads_memory(address: Any) -> bool:
    """Does an address depend on what memory holds?  It is computed whether or not the condition holds."""
    found: list[Any] = []
    tvm_ffi.structural_walk(address, (Load, found.append))
    return len(found) != 1
