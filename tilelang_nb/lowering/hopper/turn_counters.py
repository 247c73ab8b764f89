"""The turns that roles have made of a pipelined loop, where they have to count them.

Which version of its tiles a turn uses follows from the turns before it.  Where loops or conditions around the loop
change how often it runs, every role counts for itself: both follow the same control flow, so they agree.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tvm import tirx as tir

from ..context import LaunchContext
from ..rewrite import dtype_of, sequence


@dataclass
class TurnCounters:
    """done: by the loop's variable, the variable that holds the turns before an execution of it.  own: what the copying
    role calls a variable; mine: an expression with its variables.
    """

    launch: LaunchContext
    done: dict[Any, Any]
    own: Callable[[Any], Any]
    mine: Callable[[Any], Any]
    counters: dict[tuple[Any, bool], Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for loop_var, done in self.done.items():
            self.own(done)
            for copying in (False, True):
                name = self.launch.fresh("turns")
                counter = tir.decl_buffer((1,), dtype_of(loop_var), name, scope="local.var", layout=None)
                self.counters[loop_var, copying] = counter

    def first(self, copying: bool, span: Any) -> list[Any]:
        """What a role does before its first turn."""
        parts: list[Any] = []
        for loop_var in self.done:
            counter, none = self.counters[loop_var, copying], tir.const(0, dtype_of(loop_var))
            parts += [tir.AllocBuffer(counter, None, span), tir.BufferStore(counter, none, [tir.const(0, "int32")])]
        return parts

    def around(self, turns: Any, loop: Any, copying: bool) -> Any:
        """An execution of a loop, which begins with the version after the last one's."""
        if loop.loop_var not in self.done:
            return turns
        done, zero = self.done[loop.loop_var], tir.const(0, "int32")
        more = tir.max(loop.extent, tir.const(0, dtype_of(loop.extent)))
        if copying:
            done, more = self.own(done), self.mine(more)
        counter = self.counters[loop.loop_var, copying]
        before = tir.Bind(done, tir.BufferLoad(counter, [zero]), loop.span)
        after = tir.BufferStore(counter, done + more, [zero], loop.span)
        return sequence([before, turns, after], loop.span)
