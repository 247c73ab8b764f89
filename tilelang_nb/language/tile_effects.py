"""Facts of a tile program for those who hold it without reading it: which parameters it writes, and whether two are
the same.
"""

from __future__ import annotations

from typing import Any

import tvm
import tvm_ffi
from tvm import tirx as tir

from .tile_program import RegionOperand, operation_name, read

# Operands that an operation writes.
WRITTEN: dict[str, tuple[str, ...]] = {
    "copy": ("target",),
    "async_copy": ("target",),
    "fill": ("target",),
    "transpose": ("target",),
    "im2col": ("target",),
    "tma_copy": ("target",),
    "copy_to_block": ("target",),
    "copy_to_blocks": ("target",),
    "tensor_load": ("target",),
    "tensor_store": ("target",),
    "accumulator_store": ("target", "staging"),
    "gemm": ("c",),
    "reduce": ("target",),
    "cumulate": ("target",),
    "thread_reduce": ("target",),
    "reducer": ("buffer",),
    "finalize_reducer": ("buffer", "target"),
    "atomic_region": ("target",),
    "atomic_element": ("target",),
    "atomic_store": ("target",),
    "cp_async": ("target",),
}


def written_parameters(function: Any) -> frozenset[str]:
    """Names of the parameters whose memory the program writes, by stores, tile operations or calls that take an
    address.
    """
    written: set[Any] = set()
    views: dict[Any, Any] = {}

    def note_view(declared: Any) -> None:
        owners: list[Any] = []
        tvm_ffi.structural_walk(declared.data, (tvm.ir.Var, owners.append))
        if owners:
            views[declared.buffer] = owners[0]

    def note_call(call: Any) -> None:
        name = operation_name(call)
        if name in WRITTEN:
            operands = read(call).operands
            for field in WRITTEN[name]:
                if isinstance(operands.get(field), RegionOperand):
                    written.add(operands[field].buffer)
        elif getattr(call.op, "name", "") == "tirx.address_of":
            written.add(call.args[0].source)

    tvm_ffi.structural_walk(
        function.body,
        [
            (tir.BufferStore, lambda store: written.add(store.buffer)),
            (tir.DeclBuffer, note_view),
            (tvm.ir.Call, note_call),
        ],
    )
    owners = set()
    for buffer in written:
        while buffer in views:
            buffer = views[buffer]
        owners.add(buffer)
    return frozenset(param.name for param in function.params if param in owners)


def fingerprint(function: Any) -> int:
    """A number that differs for programs that differ in structure or in the places of their statements (but for
    collisions).
    """
    places: list[Any] = []

    def note(statement: Any) -> None:
        span = statement.span
        places.append(span and (span.line, span.column, span.end_line, span.end_column))

    tvm_ffi.structural_walk(function.body, (tir.Stmt, note))
    return hash((tvm_ffi.structural_hash(function, map_free_vars=True), tuple(places)))


def same_structure(one: Any, other: Any) -> bool:
    """Are they the same program up to the places of statements and the names of variables?"""
    return bool(tvm_ffi.structural_equal(one, other, map_free_vars=True))
