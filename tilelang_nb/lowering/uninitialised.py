"""TL211: memory of the kernel that is read before anything writes it.

A scan of the statements in text order.  Any write to a buffer counts as a write of all of it, and a read under a
condition
inside a loop that writes the buffer further on is given the benefit of the doubt: the warning is for plain mistakes,
the simulator finds the others.
"""

from __future__ import annotations

from typing import Any

import tvm
import tvm_ffi
from tvm import tirx as tir

from tilelang_nb.language.tile_effects import WRITTEN
from tilelang_nb.language.tile_program import RegionOperand, operation_name, read
from tilelang_nb.source import catalogue as say

from .context import LaunchContext
from .nests import WARP_GROUPS
from .rewrite import Load, scope, walk
from .views import root, views

WATCHED = ("local.fragment", "shared.dyn", "local", "local.var")
# Operands that are only written, never read, by an operation that also has other operands.
_ONLY_WRITTEN = {
    *("copy", "async_copy", "tma_copy", "fill", "transpose", "cumulate", "reducer", "finalize_reducer", "atomic_store"),
    "thread_reduce",
    "im2col",
    "cp_async",
    *("copy_to_block", "copy_to_blocks"),
}


def warn_uninitialised_reads(body: Any, launch: LaunchContext) -> None:
    """Report TL211 at the first read of each buffer that nothing wrote before it in the order of the text."""
    sources = views(body)
    if not _suspects(body, sources):
        return
    written: set[Any] = set()
    warned: set[Any] = set()
    allocated: set[Any] = set()
    later: list[tuple[set[Any], int]] = []  # per enclosing loop: what it writes, and how many conditions were around it

    def note_read(buffer: Any, span: Any, conditions: int) -> None:
        owner = root(buffer, sources)
        if owner in written or owner in warned or owner not in allocated:
            return
        if any(conditions > around and owner in writes for writes, around in later):
            return
        warned.add(owner)
        launch.report(say.UninitialisedRead(buffer=owner.name), span)

    def expression(expr: Any, span: Any, conditions: int) -> None:
        def call(node: Any) -> Any:
            # An address is written or read by the call around it; a region is looked at by its operation.
            name = getattr(node.op, "name", "")
            if name == "tirx.address_of" or operation_name(node) is not None:
                operands(node, span, conditions)
                return tvm_ffi.WalkResult.SKIP
            return None

        tvm_ffi.structural_walk(
            expr, [(tvm.ir.Call, call), (Load, lambda load: note_read(load.source, span, conditions))], order="pre"
        )

    def operands(call: Any, span: Any, conditions: int) -> None:
        name = operation_name(call)
        if name is None or name == "region":
            return
        tile = read(call)
        for field, value in tile.operands.items():
            if isinstance(value, RegionOperand):
                for begin in value.begin:
                    expression(begin, span, conditions)
                if field not in WRITTEN.get(name, ()) and name not in ("annotate_layout", "annotate_safe_value"):
                    note_read(value.buffer, span, conditions)
            elif value is not None and not isinstance(value, str):
                expression(value, span, conditions)
        for field in WRITTEN.get(name, ()):
            value = tile.operands.get(field)
            if not isinstance(value, RegionOperand):
                continue
            if reads_target(tile) and not _may_clear(tile):
                note_read(value.buffer, span, conditions)
            written.add(root(value.buffer, sources))

    def statement(node: Any, conditions: int) -> None:
        kind = type(node)
        if kind is tir.SeqStmt:
            for one in node.seq:
                statement(one, conditions)
        elif kind is tir.AllocBuffer:
            if scope(node.buffer) in WATCHED:
                allocated.add(node.buffer)
        elif kind is tir.BufferStore:
            expression(node.value, node.span, conditions)
            for index in node.indices:
                if not isinstance(index, tir.IntImm | tvm.ir.Var):
                    expression(index, node.span, conditions)
            written.add(root(node.buffer, sources))
        elif kind is tir.Evaluate or kind is tir.Bind:
            expression(node.value, node.span, conditions)
        elif kind is tir.IfThenElse:
            expression(node.condition, node.span, conditions)
            statement(node.then_case, conditions + 1)
            if node.else_case is not None:
                statement(node.else_case, conditions + 1)
        elif kind is tir.For or kind is tir.While:
            for part in (node.min, node.extent) if kind is tir.For else (node.condition,):
                expression(part, node.span, conditions)
            later.append((_writes(node.body, sources), conditions))
            statement(node.body, conditions)
            later.pop()
        elif kind is tir.AttrStmt:
            if node.attr_key == WARP_GROUPS:  # the other warp groups run at the same time
                for other in groups:
                    if not other.same_as(node):
                        written.update(_writes(other.body, sources))
            statement(node.body, conditions)

    groups: list[Any] = []
    walk(body, (tir.AttrStmt, lambda node: groups.append(node) if node.attr_key == WARP_GROUPS else None))
    statement(body, 0)


def _suspects(body: Any, sources: dict[Any, Any]) -> bool:
    """Does a read of the kernel's own memory come before any write of it?  A quick look, without places."""
    written: set[Any] = set()
    watched: set[Any] = set()
    reads: list[Any] = []  # since the last write
    found: list[Any] = []

    def flush() -> None:
        for buffer in reads:
            owner = root(buffer, sources)
            if owner in watched and owner not in written:
                found.append(owner)
        reads.clear()

    def allocate(node: Any) -> None:
        if scope(node.buffer) in WATCHED:
            watched.add(node.buffer)

    def load(node: Any) -> None:
        reads.append(node.source)

    def store(node: Any) -> None:
        flush()
        written.add(root(node.buffer, sources))

    def call(node: Any) -> None:
        name = operation_name(node)
        if name == "region":
            # The element that stands for the region; its operation says whether it is read.
            reads.remove(node.args[1].source)
        elif name is not None:
            flush()
            tile = read(node)
            for field, value in tile.operands.items():
                if isinstance(value, RegionOperand) and (field not in WRITTEN.get(name, ()) or reads_target(tile)):
                    reads.append(value.buffer)
            flush()
            written.update(
                root(tile.operands[field].buffer, sources)
                for field in WRITTEN.get(name, ())
                if isinstance(tile.operands.get(field), RegionOperand)
            )

    events = [(tir.AllocBuffer, allocate), (Load, load), (tir.BufferStore, store), (tvm.ir.Call, call)]
    tvm_ffi.structural_walk(body, events)
    flush()
    return bool(found)


def reads_target(tile: Any) -> bool:
    """Does an operation use what its target holds?"""
    if tile.name in _ONLY_WRITTEN:
        return False
    flag = {"gemm": "clear_accum", "reduce": "clear"}.get(tile.name)
    if flag is None:
        return True
    value = tile[flag]
    return not (isinstance(value, tir.IntImm) and int(value.value) == 1)


def _may_clear(tile: Any) -> bool:
    """Does a condition of the kernel say whether an operation clears its target, such as `clear_accum=k == 0`?"""
    return tile.name == "gemm" and not isinstance(tile["clear_accum"], tir.IntImm)


def _writes(body: Any, sources: dict[Any, Any]) -> set[Any]:
    found: set[Any] = set()

    def call(node: Any) -> None:
        name = operation_name(node)
        for field in WRITTEN.get(name or "", ()):
            value = read(node).operands.get(field)
            if isinstance(value, RegionOperand):
                found.add(root(value.buffer, sources))

    tvm_ffi.structural_walk(
        body, [(tir.BufferStore, lambda store: found.add(root(store.buffer, sources))), (tvm.ir.Call, call)]
    )
    return found
