"""`T.tma_copy` under a condition on the thread, as in `if tx == 0:`.

A copy is started once by the threads around it.  Where a condition lets some of them get there, and the thread alone
decides, the first of these starts it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tvm import tirx as tir

from tilelang_nb.language.tile_program import read, statement_name

from ..chosen_groups import Under, threads_under
from ..context import LaunchContext
from ..nests import is_part, threads_of_part
from ..rewrite import map_children
from ..uniformity import Uniformity
from .tile_statements import encoded, evaluate


def with_first_threads(function: Any, launch: LaunchContext) -> Any:
    """The launch, whose copies under such conditions say which thread starts them."""
    return function.with_body(_Conditions(function.body, launch).statement(function.body, (), None))


class _Conditions:
    def __init__(self, body: Any, launch: LaunchContext):
        self.body, self.launch, self.uniformity = body, launch, Uniformity(body, launch.axes)

    def statement(self, node: Any, under: Under | None, part: Any) -> Any:
        """under: the conditions around it on which threads do not agree; None where they make different turns.

        part: the threads of the `T.ws` around.
        """
        if statement_name(node) == "tma_copy" and under:
            return self._copy(node, under, part)
        if is_part(node):
            part = threads_of_part(node, self.launch) or part
        if isinstance(node, tir.For | tir.While) and self.uniformity.divergent_loop(node):
            under = None
        if isinstance(node, tir.IfThenElse) and under is not None and not self.uniformity.is_uniform(node.condition):
            sides = [
                None if body is None else self.statement(body, (*under, (node.condition, holds)), part)
                for body, holds in ((node.then_case, True), (node.else_case, False))
            ]
            return tir.IfThenElse(node.condition, *sides, node.span)
        return map_children(node, lambda one: self.statement(one, under, part))

    def _copy(self, node: Any, under: Under, part: Any) -> Any:
        call = read(node.value, node.span)
        chosen = threads_under(under, self.body, self.launch, self.uniformity.is_uniform)
        if chosen is not None and part is not None:
            chosen = [thread for thread in chosen if part.base <= thread < part.base + part.count]
        if not chosen or call["scope"] is not None:
            return node
        call = replace(call, operands={**call.operands, "first": tir.const(chosen[0], "int32")})
        return evaluate(call.name, call.span, *(encoded(operand) for operand in call.operands.values()))
