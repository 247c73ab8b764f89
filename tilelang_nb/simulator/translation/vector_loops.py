"""Which loops may run as an array axis.

The iterations of such a loop run side by side, statement by statement.  That is right if nothing flows from one
iteration to
another: whatever the body writes and also touches elsewhere is touched at one index only, and this index is different
in every iteration.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import tvm
import tvm_ffi
from tvm import tirx as tir
from tvm.ir.prim import expr as pe

from .calls import ATOMICS, FAST_MATH, REINTERPRETING, SHUFFLES, VOTES
from .inspection import call_name, constant, extern_name, linear, loads, same_indices, uses
from .values import BYTES, Storage

SIDE_BY_SIDE = frozenset((*FAST_MATH, *REINTERPRETING, *SHUFFLES, *VOTES))  # device functions without an order
_IN_ORDER = ("tirx.ptx", "tirx.cuda", "tirx.tvm")
LARGEST = 1024  # iterations of all open vector loops together: more would only need memory


@dataclass
class _Body:
    """What a loop body does, or `allowed` False where it holds something that must run in order."""

    allowed: bool = True
    reads: list[tuple[Any, list[Any]]] = field(default_factory=list)  # buffer, indices
    writes: list[tuple[Any, list[Any]]] = field(default_factory=list)
    loops: list[Any] = field(default_factory=list)

    def expression(self, node: Any) -> None:
        calls: list[Any] = []
        tvm_ffi.structural_walk(node, (tvm.ir.Call, calls.append))
        places = [call.args[0] for call in calls if call_name(call) == "tirx.address_of"]  # named, not read
        for load in loads(node):
            if not any(load.same_as(place) for place in places):
                self.reads.append((load.source, list(load.indices)))
        for call in calls:
            name = extern_name(call)
            if name in ATOMICS and call_name(call.args[1]) == "tirx.address_of":
                place = call.args[1].args[0]
                self.writes.append((place.source, list(place.indices)))
            elif name and name not in SIDE_BY_SIDE or call_name(call).startswith(_IN_ORDER):
                self.allowed = False

    def statement(self, statement: Any) -> None:
        if isinstance(statement, tir.SeqStmt):
            for child in statement.seq:
                self.statement(child)
        elif isinstance(statement, tir.BufferStore):
            self.expression(statement.value)
            for index in statement.indices:
                self.expression(index)
            self.writes.append((statement.buffer, list(statement.indices)))
        elif isinstance(statement, tir.IfThenElse):
            self.expression(statement.condition)
            self.statement(statement.then_case)
            if statement.else_case is not None:
                self.statement(statement.else_case)
        elif isinstance(statement, tir.For):
            self.expression(statement.min)
            self.expression(statement.extent)
            self.loops.append(statement)
            self.statement(statement.body)
        elif isinstance(statement, tir.Bind):
            self.expression(statement.value)
        elif isinstance(statement, tir.Evaluate):
            name = extern_name(statement.value)
            if isinstance(statement.value, pe.IntImm):
                return
            if name not in ATOMICS:
                self.allowed = False
            self.expression(statement.value)
        else:
            self.allowed = False


def runs_as_axis(loop: Any, storage_of: Any, open_loops: list[tuple[Any, int]], aliased: bool) -> bool:
    """True if the loop may run as an array axis.

    storage_of: buffer -> Storage or None.  open_loops: (variable, extent) of the vector loops around this one.
    aliased: global parameters may overlap.
    """
    extent = constant(loop.extent)
    if extent is None or extent < 2 or (loop.step is not None and constant(loop.step) != 1):
        return False
    around = 1
    for _, count in open_loops:
        around *= count
    if extent * around > LARGEST:
        return False
    body = _Body()
    body.statement(loop.body)
    if not body.allowed or not body.writes:
        return False
    variable = loop.loop_var
    if any(uses(inner.extent, variable) or uses(inner.min, variable) for inner in body.loops):
        return False
    extents = [(variable, extent), *open_loops]
    extents += [(inner.loop_var, constant(inner.extent)) for inner in body.loops]
    for number, (buffer, indices) in enumerate(body.writes):
        storage = storage_of(buffer)
        if storage is None:
            return False
        touched = [(b, i) for position, (b, i) in enumerate(body.writes) if position != number] + body.reads
        partners = [(b, i) for b, i in touched if _overlap(buffer, storage, b, storage_of(b), aliased)]
        if any(not b.same_as(buffer) or not same_indices(i, indices) for b, i in partners):
            return False
        local = storage.space == "local"
        if (partners or local or body.loops) and not _distinct(indices, variable, extents):
            return False
    return True


def _overlap(buffer: Any, storage: Storage, other: Any, other_storage: Storage | None, aliased: bool) -> bool:
    if other.same_as(buffer) or other_storage is None:
        return True
    if storage.space != other_storage.space:
        return False
    if storage.space == "shared":
        ends = [s.base + s.count * BYTES[s.dtype] for s in (storage, other_storage)]
        return storage.base < ends[1] and other_storage.base < ends[0]
    return storage.space == "global" and aliased


def _distinct(indices: list[Any], variable: Any, extents: list[tuple[Any, int | None]]) -> bool:
    """True if in some dimension the index differs whenever `variable` does, whatever the other loops do.

    Sufficient: the index is linear in the loop variables it uses, and each coefficient exceeds what the smaller ones
    reach.
    """
    for index in indices:
        coefficients = linear(index)
        assert coefficients is not None
        mine = coefficients.get(variable, 0)
        if not mine:
            continue
        radix: list[tuple[int, int]] = []
        for other, extent in extents:
            factor = coefficients.get(other, 0)
            if factor is None or (factor and extent is None):
                break
            if factor and extent is not None:
                radix.append((abs(factor), extent))
        else:
            reach = 0
            for factor, extent in sorted(radix):
                if factor <= reach:
                    break
                reach += factor * (extent - 1)
            else:
                return True
    return False


def nesting(statement: Any) -> int:
    """How many constant loops are nested inside `statement` at most: the array axes that it may need."""
    if isinstance(statement, tir.For):
        return nesting(statement.body) + (constant(statement.extent) is not None)
    if isinstance(statement, tir.SeqStmt):
        return max((nesting(child) for child in statement.seq), default=0)
    if isinstance(statement, tir.IfThenElse):
        inner = nesting(statement.then_case)
        return max(inner, nesting(statement.else_case)) if statement.else_case is not None else inner
    return 0


def is_wide(loop: Any) -> bool:
    """A VECTORIZED loop of one store: its iterations are parts of one access."""
    return loop.kind == tir.ForKind.VECTORIZED and isinstance(loop.body, tir.BufferStore)
