"""Copies of statements: what occurs twice needs loop variables and bound names of its own."""

from __future__ import annotations

from typing import Any

from tvm import tirx as tir

from .rewrite import dtype_of, loop, map_children, sequence, substitute


def with_own_names(node: Any) -> Any:
    """The statement with new variables for its loops and bindings."""
    if isinstance(node, tir.For):
        var = tir.Var(node.loop_var.name, dtype_of(node.loop_var))
        return loop(node, loop_var=var, body=with_own_names(substitute(node.body, {node.loop_var: var})))
    if isinstance(node, tir.SeqStmt):
        parts: list[Any] = []
        names: dict[Any, Any] = {}
        for one in node.seq:
            if isinstance(one, tir.Bind):
                value = substitute(one.value, names)
                names[one.var] = tir.Var(one.var.name, one.var.ty)  # a second binding of a variable holds from there on
                parts.append(tir.Bind(names[one.var], value, one.span))
            else:
                parts.append(with_own_names(substitute(one, names)))
        return sequence(parts, node.span)
    return map_children(node, with_own_names)
