"""What the copying threads follow of a launch's control flow, reading only memory that the launch does not change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm import tirx as tir

from tilelang_nb.language.tile_program import read, statement_name

from ..context import LaunchContext
from ..launches import THREAD_EXTENT
from ..loop_effects import Effects
from ..pipelines import Pipeline
from ..rewrite import Load, dtype_of, has, map_children, statements, variables, walk
from ..views import views
from .refusal import Refused


class Followed:
    """Judges the expressions and loops of one launch; Refused where copying threads cannot follow."""

    def __init__(self, function: Any, launch: LaunchContext):
        self.body, self.axes, self.unchanged = function.body, set(launch.axes), unchanged(function)
        self.assumed = [  # what the launch says by `T.assume`, whatever it does afterwards
            read(one.value)["condition"]
            for one in statements(work_of(function.body))
            if statement_name(one) == "assume"
        ]
        self.bound: dict[Any, Any] = {}
        walk(function.body, (tir.Bind, lambda node: self.bound.update({node.var: node.value})))

    def expression(self, expr: Any, what: str) -> None:
        """The copying threads compute it for themselves.  what: it is, for people to read."""
        used = variables(expr)
        if self.axes & used:
            raise Refused(f"{what} depends on the thread")
        if not self.unchanged(expr):
            raise Refused(f"{what} is read from memory that the launch changes")
        for var in used & self.bound.keys():
            self.expression(self.bound[var], what)

    def _depends(self, var: Any, others: set[Any]) -> bool:
        """Is a variable of the text made of others?"""
        used = variables(self.bound[var])
        return bool(used & others) or any(self._depends(one, others) for one in used & self.bound.keys())

    def turns(self, plan: Pipeline) -> Any:
        """How many turns earlier executions of the loop have made; None where the roles have to count them, as loops
        around it make a different number of turns, or leave it out.
        """
        around = _around(self.body, plan.loop)
        total: Any = tir.const(0, dtype_of(plan.loop.loop_var))
        inner: set[Any] = set()
        for node in around:
            if isinstance(node, tir.IfThenElse):
                self.expression(node.condition, "a condition around the pipelined loop")
            elif isinstance(node, tir.For):
                inner.add(node.loop_var)
            else:
                raise Refused("a `while` stands around the pipelined loop")
        every = [node for node in around if isinstance(node, tir.For)]
        for node in [*every, plan.loop]:
            if int(node.kind) not in (tir.ForKind.SERIAL, tir.ForKind.UNROLLED):
                raise Refused("the pipelined loop stands in a loop of threads")
            if has(node.body, (tir.Break, tir.Continue)):
                raise Refused("the pipelined loop, or a loop around it, is left early")
            for bound in (node.min, node.extent):
                self.expression(bound, "the number of turns of the pipelined loop, or of one around it,")
        if every:
            changing = {*inner, *(var for var in self.bound if self._depends(var, inner))}
            if any(isinstance(node, tir.IfThenElse) for node in around) or any(
                changing & variables(node.extent) for node in [*every, plan.loop]
            ):
                return None
            for node in every:
                total = total * node.extent + (node.loop_var - node.min)
            total = total * plan.loop.extent
        return total


def unchanged(function: Any) -> Callable[[Any], bool]:
    """Whether all that an expression reads stays as it is for the whole launch: every role may read it."""
    effects = Effects(function.body, views(function.body))
    stay = {param for param in function.params if param not in effects.writes | effects.other}

    def holds(expr: Any) -> bool:
        found: list[Any] = []
        walk(expr, (Load, lambda load: found.append(load.source)))
        return all(source in stay for source in found)

    return holds


def work_of(node: Any) -> Any:
    """The body of a launch, inside of its axes."""
    while isinstance(node, tir.AttrStmt) and node.attr_key == THREAD_EXTENT:
        node = node.body
    return node


def _around(body: Any, loop: Any) -> list[Any]:
    """The statements that decide whether and how often a loop runs, from the outside in."""
    path: list[Any] = []

    def find(node: Any, stack: list[Any]) -> None:
        if isinstance(node, tir.For) and node.loop_var.same_as(loop.loop_var):
            path.extend(stack)
            return
        inside = [*stack, node] if isinstance(node, tir.For | tir.While | tir.IfThenElse) else stack

        def visit(child: Any) -> Any:
            find(child, inside)
            return child

        map_children(node, visit)

    find(body, [])
    return path
