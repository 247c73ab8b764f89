"""Which arithmetic an expression does, for the counters: multiplications that feed an addition count as fma."""

from __future__ import annotations

from collections import Counter
from typing import Any

import tvm
from tvm.ir.prim import expr as pe

from .inspection import call_name, extern_name
from .values import dtype_of

_KINDS = {
    pe.Add: "add", pe.Sub: "add", pe.Mul: "mul", pe.Div: "div", pe.FloorDiv: "div", pe.Mod: "mod", pe.FloorMod: "mod",
    pe.Max: "max", pe.Min: "min", pe.Cast: "convert", pe.BitwiseAnd: "bit", pe.BitwiseOr: "bit", pe.BitwiseXor: "bit",
    pe.LShift: "shift", pe.RShift: "shift",
}  # fmt: skip


def operations(expression: Any) -> tuple[tuple[str, int], ...]:
    """(kind, how often) of one evaluation; a kind is a type and an operation.  Index arithmetic is not counted."""
    counts: Counter[str] = Counter()
    _visit(expression, counts)
    return tuple(sorted(counts.items()))


def _visit(node: Any, counts: Counter[str]) -> None:
    if isinstance(node, (tvm.ir.TensorLoad, tvm.ir.Var)):
        return
    if isinstance(node, (pe.Add, pe.Sub)) and "float" in dtype_of(node):
        product = node.b if isinstance(node.b, pe.Mul) else node.a if isinstance(node.a, pe.Mul) else None
        if product is not None:
            counts[f"{dtype_of(node)} fma"] += 1
            other = node.a if product is node.b or product.same_as(node.b) else node.b
            for child in (product.a, product.b, other):
                _visit(child, counts)
            return
    kind = _KINDS.get(type(node))
    if kind:
        counts[f"{dtype_of(node)} {kind}"] += 1
        for child in (node.value,) if isinstance(node, pe.Cast) else (node.a, node.b):
            _visit(child, counts)
    elif isinstance(node, pe.Select):
        _visit(node.true_value, counts)
        _visit(node.false_value, counts)
    elif isinstance(node, tvm.ir.Call):
        _visit_call(node, counts)


def _visit_call(node: Any, counts: Counter[str]) -> None:
    name = call_name(node).removeprefix("tirx.").removeprefix("prim.")
    if name == "if_then_else":
        children = list(node.args[1:])
    elif extern_name(node):
        children = [argument for argument in node.args[1:] if hasattr(argument, "ty")]
        if not extern_name(node).startswith(("tl_", "__shfl", "__any", "__all", "__ballot", "__sync", "__active")):
            counts[f"{dtype_of(node)} {extern_name(node).strip('_')}"] += 1
    else:
        children = list(node.args)
        if name not in ("reinterpret", "likely", "address_of"):
            counts[f"{dtype_of(node)} {name}"] += 1
    for child in children:
        if call_name(child) != "tirx.address_of":
            _visit(child, counts)
