"""The private arrays of a launch: what they take of a thread's registers, and which are indexed by values that are
known only at run time.

Registers have no addresses.  An array whose index the compiler does not know lies in memory, as do arrays whose loops
it does not unroll.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import tvm
import tvm_ffi
from tvm import tirx as tir

from tilelang_nb.lowering.rewrite import Load, constant, dtype_of, element_bytes, scope

REGISTER = 4  # bytes
UNROLLED, RUN_TIME = 1, 2  # known once loops of constant extents are unrolled; known only at run time


@dataclass
class PrivateArray:
    """name: in the text.  bytes: of a thread.  uses: (span of the statement, UNROLLED or RUN_TIME) of indices that are
    no constants, in order.
    """

    name: str
    bytes: int
    uses: list[tuple[Any, int]] = field(default_factory=list)

    @property
    def registers(self) -> int:
        """What it takes of them, if it lies there."""
        return -(-self.bytes // REGISTER)


def private_arrays(function: Any) -> tuple[PrivateArray, ...]:
    """Those of a device function, in order."""
    reader = _Reader()
    reader.statement(function.body, None)
    return tuple(reader.arrays.values())


class _Reader:
    def __init__(self) -> None:
        self.arrays: dict[Any, PrivateArray] = {}
        self.known: dict[Any, int] = {}  # variable -> 0 for a constant, UNROLLED or RUN_TIME

    def statement(self, node: Any, span: Any) -> None:
        """span: of the innermost statement around that has one."""
        span = span if node.span is None else node.span
        if isinstance(node, tir.SeqStmt):
            for one in node.seq:
                self.statement(one, span)
        elif isinstance(node, tir.AllocBuffer):
            if scope(node.buffer) == "local":
                extents = [constant(extent) for extent in node.buffer.shape]
                count = 1
                for extent in extents:
                    count *= extent or 1
                self.arrays[node.buffer] = PrivateArray(node.buffer.name, count * element_bytes(node.buffer))
        elif isinstance(node, tir.For):
            self.expressions((node.min, node.extent), span)
            constants = constant(node.min) is not None and constant(node.extent) is not None
            self.known[node.loop_var] = UNROLLED if constants else RUN_TIME
            self.statement(node.body, span)
        elif isinstance(node, tir.While):
            self.expressions((node.condition,), span)
            self.statement(node.body, span)
        elif isinstance(node, tir.AttrStmt):
            self.statement(node.body, span)
        elif isinstance(node, tir.IfThenElse):
            self.expressions((node.condition,), span)
            for case in (node.then_case, node.else_case):
                if case is not None:
                    self.statement(case, span)
        elif isinstance(node, tir.BufferStore):
            self.use(node.buffer, node.indices, span)
            self.expressions((node.value, *node.indices), span)
        elif isinstance(node, tir.Bind):
            self.expressions((node.value,), span)
            self.known[node.var] = self.knowledge(node.value)
        elif isinstance(node, tir.Evaluate):
            self.expressions((node.value,), span)

    def expressions(self, parts: Any, span: Any) -> None:
        for part in parts:
            tvm_ffi.structural_walk(part, (Load, lambda load: self.use(load.source, load.indices, span)))

    def use(self, buffer: Any, indices: Any, span: Any) -> None:
        if buffer in self.arrays:
            known = max(map(self.knowledge, indices), default=0)
            if known:
                self.arrays[buffer].uses.append((span, known))

    def knowledge(self, index: Any) -> int:
        """0 for an index that is a constant, UNROLLED for one of loops of constant extents, else RUN_TIME."""
        found = [0]

        def variable(var: Any) -> None:
            if not hasattr(var.ty, "dtype"):
                return
            if dtype_of(var) != "handle":
                found.append(self.known.get(var, RUN_TIME))

        def load(_node: Any) -> Any:
            found.append(RUN_TIME)
            return tvm_ffi.WalkResult.SKIP

        tvm_ffi.structural_walk(index, [(tvm.ir.TensorLoad, load), (tvm.ir.Var, variable)], order="pre")
        return max(found)
