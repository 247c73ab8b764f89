"""Every binding and every loop of a thread program gets a variable of its own.

Lowering may write statements twice: turns of a pipelined loop that stand before it, masks that are asked for whole
tiles.  Copies share their variables then, which the passes of TVM do not expect: they keep what is known of a
variable by the variable alone.
"""

from __future__ import annotations

from typing import Any

import tvm_ffi
from tvm import tirx as tir

from tilelang_nb.lowering.rewrite import loop, map_children, sequence, substitute


def unique_variables(function: Any) -> Any:
    """The function with new variables at second definitions and in what they reach; as it is where there are none."""
    defined: list[Any] = []
    tvm_ffi.structural_walk(
        function.body,
        [(tir.Bind, lambda node: defined.append(node.var)), (tir.For, lambda node: defined.append(node.loop_var))],
    )
    if len(set(defined)) == len(defined):
        return function
    return function.with_body(_Renaming().statement(function.body))


class _Renaming:
    def __init__(self) -> None:
        self.defined: set[Any] = set()

    def _name(self, var: Any) -> Any:
        """The variable, or a new one of its name where it is defined already."""
        chosen = tir.Var(var.name, var.ty) if var in self.defined else var
        self.defined.add(chosen)
        return chosen

    def statement(self, node: Any) -> Any:
        if isinstance(node, tir.Bind):
            return tir.Bind(self._name(node.var), node.value, node.span)
        if isinstance(node, tir.For):
            var, body = self._name(node.loop_var), node.body
            if not var.same_as(node.loop_var):
                body = substitute(body, {node.loop_var: var})
            return loop(node, loop_var=var, body=self.statement(body))
        if isinstance(node, tir.SeqStmt):
            return self._sequence(node)
        return map_children(node, self.statement)

    def _sequence(self, node: Any) -> Any:
        """A binding holds for the statements behind it."""
        rest, done = list(node.seq), []
        while rest:
            one = rest.pop(0)
            after = self.statement(one)
            if isinstance(one, tir.Bind) and not after.var.same_as(one.var):
                rest = [substitute(later, {one.var: after.var}) for later in rest]
            done.append(after)
        return sequence(done, node.span)
