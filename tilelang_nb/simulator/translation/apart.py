"""Statements that threads with different waits run apart, each at its own pace, until all have to meet.

An `if` on threads around a wait forks, and joins behind it: threads that do not wait stand there until the others have
been served.  Where what they do behind it is what the others wait for, that is a deadlock on the simulated device
alone.  A launch that ends in one is run again with another translation: what stands between such an `if` and the next
barrier of the block becomes a function, which each class of threads, those for whom the same conditions hold, runs by
itself.  Threads of a warp stay together where their warp does something as a whole, and so do those of a warp group.
"""

from __future__ import annotations

from typing import Any

import tvm
import tvm_ffi
from tvm import tirx as tir

from .calls import Calls
from .endless import any_asking_loop
from .inspection import BLOCKING, call_name, contains_call, extern_name, jumps_out, variables
from .suites import Nested, Suite
from .values import T_AXIS

# What all threads of a block come to, those of a warp, or those of a warp group.
OF_BLOCK = ("tirx.tvm_storage_sync", "tirx.cuda.cta_sync", "__syncthreads", "tirx.ptx.barrier_cluster")
OF_WARP_GROUP = ("tirx.ptx.wgmma", "tirx.ptx.setmaxnreg")
OF_WARP = ("__shfl", "__any", "__all", "__ballot", "__activemask", "__syncwarp", "tirx.cuda.warp_sync", "tirx.ptx.bar")
MATRICES = ("mma", "ldmatrix", "stmatrix")


def waits(node: Any) -> bool:
    """May a thread have to wait for others in a statement?"""
    return contains_call(node, BLOCKING) or any_asking_loop(node, of_block=True)


class Apart(Calls):
    """Part of a translator.  apart: whether threads with different waits run apart."""

    apart: bool

    def names_from_outside(self, lines: list[Any]) -> list[str]:
        raise NotImplementedError

    def statement(self, node: Any) -> None:
        raise NotImplementedError

    def region(self, statements: list[Any]) -> int:
        """How many of the first statements threads can run apart; 0 for none, or where they need not."""
        if not self.apart or not waits(statements[0]) or not self._conditions(statements[0]):
            return 0
        count = 0
        for statement in statements:
            if jumps_out(statement) or not self._kept_together(statement):
                break
            count += 1
        while count and self._used_later(statements[:count], statements[count:]):
            count -= 1
        alone = count == 1 and isinstance(statements[0], tir.IfThenElse) and self._divides(statements[0])
        return 0 if alone else count

    def emit_region(self, statements: list[Any]) -> None:
        """A function of some statements, and its runs."""
        found = [condition for statement in statements for condition in self._conditions(statement)]
        conditions = list(dict.fromkeys(self.truth(condition).text for condition in found))
        size = max(self._kept_together(statement) for statement in statements)
        outer, function = self.mask, self.fresh("apart")
        self.suites.append(Suite(function=True))
        loops, self.loops = self.loops, []
        self.roles += 1
        for statement in statements:
            self.statement(statement)
        self.roles -= 1
        self.loops = loops
        suite = self.suites.pop()
        visible = self.names_from_outside(suite.lines)
        lines = ["if False: yield", *suite.lines]
        self.suites[-1].lines.append(Nested(f"def {function}({', '.join(['S', *visible])}):", lines))
        self.mask = outer
        passed = "".join(name + ", " for name in visible)
        self.emit(f"yield from S.run_apart({function}, ({', '.join(conditions)},), {size}, ({passed}))")

    def _divides(self, node: Any) -> bool:
        """Does an `if` send threads that wait and others different ways, by what is known before the statement?"""
        if not all(variable in self.names for variable in variables(node.condition)) or not waits(node):
            return False
        value = self.truth(node.condition)
        return value.axes == T_AXIS and value.pure

    def _conditions(self, statement: Any) -> list[Any]:
        """Those of the `if`s in a statement that divide threads."""
        found: list[Any] = []

        def look(node: Any) -> None:
            if self._divides(node):
                found.append(node.condition)

        tvm_ffi.structural_walk(statement, (tir.IfThenElse, look))
        return found

    def _kept_together(self, statement: Any) -> int:
        """How many neighbouring threads do something together outside the `if`s that divide them: 1, those of a warp or
        of a warp group; 0 for all of the block.
        """
        together: list[str] = []

        def look(node: Any) -> None:
            if isinstance(node, tir.IfThenElse) and self._divides(node):
                return
            if isinstance(node, tir.SeqStmt):
                for child in node.seq:
                    look(child)
            elif isinstance(node, (tir.For, tir.While, tir.AttrStmt)):
                together.extend(_calls(getattr(node, "condition", None)))
                look(node.body)
            elif isinstance(node, tir.IfThenElse):
                together.extend(_calls(node.condition))
                look(node.then_case)
                if node.else_case is not None:
                    look(node.else_case)
            else:
                together.extend(_calls(node))

        look(statement)
        if any(name.startswith(OF_BLOCK) for name in together):
            return 0
        size = 1
        for name in together:
            if name.startswith(OF_WARP_GROUP):
                size = 128
            elif name.startswith(OF_WARP) or any(word in name for word in MATRICES):
                size = max(size, 32)
        return size

    @staticmethod
    def _used_later(statements: list[Any], later: list[Any]) -> bool:
        """Do later statements need what some statements define?"""
        defined = [one.var for one in statements if isinstance(one, tir.Bind)]
        defined += [one.buffer for one in statements if isinstance(one, (tir.AllocBuffer, tir.DeclBuffer))]
        if not defined:
            return False
        used: list[Any] = [variable for statement in later for variable in variables(statement)]
        tree = tir.SeqStmt([*later, *later]) if later else tir.Evaluate(0)
        tvm_ffi.structural_walk(tree, (tvm.ir.TensorLoad, lambda load: used.append(load.source)))
        tvm_ffi.structural_walk(tree, (tir.BufferStore, lambda store: used.append(store.buffer)))
        return any(one.same_as(other) for one in defined for other in used)


def _calls(node: Any) -> list[str]:
    """Names of the calls in a node."""
    if node is None:
        return []
    found: list[str] = []
    tvm_ffi.structural_walk(node, (tvm.ir.Call, lambda call: found.append(extern_name(call) or call_name(call))))
    return found
