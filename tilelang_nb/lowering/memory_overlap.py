"""Which buffers of a launch can be in conflict with each other, and which of them share bytes."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import Any

import tvm
import tvm_ffi
from tvm import tirx as tir

from .index_sums import identity
from .rewrite import map_children, scope
from .views import root, view_source

ORDERED = "ordered tiles"  # the fact: shared tiles whose accesses have barriers of their own
SELF_ORDERED = "tiles of rings"  # the fact: shared tiles whose accesses have barriers of their own among themselves
PARALLEL = "tl.parallel"  # annotation of a lowered T.Parallel loop: its iterations have no order


@dataclass(frozen=True, eq=False)
class Memory:
    """A buffer as far as overlap goes: two memories share bytes only where their ranges of one space do.

    space: the arena, or the buffer itself where nothing else can lie in its place.
    key: equal for views that address the same elements by the same indices.
    self_ordered: its accesses need no barrier between each other.
    """

    space: Any
    begin: int
    end: int
    key: Any
    name: str
    is_shared: bool
    self_ordered: bool = False

    def overlaps(self, other: Memory) -> bool:
        return self.space == other.space and self.begin < other.end and other.begin < self.end


def tracked_memory(
    func: tir.PrimFunc, ordered: set[Any], self_ordered: frozenset[Any] | set[Any] = frozenset()
) -> dict[Any, Memory]:
    """The buffers whose accesses can conflict: all shared ones but those `ordered`, and global ones that the launch
    writes.

    self_ordered: shared tiles whose accesses are ordered among themselves.

    A view has the memory of the buffer it looks into; views in the arena have their place there.
    """
    memory: dict[Any, Memory] = {}
    sources: dict[Any, Any] = {}
    buffers: dict[int, Any] = {}
    stores: Counter[int] = Counter()
    used: set[int] = set()  # read, or touched through a pointer

    def declared(node: Any) -> None:
        buffer = node.buffer
        if isinstance(node, tir.AllocBuffer):
            if scope(buffer).startswith("shared"):
                memory[buffer] = Memory(buffer, 0, 1, buffer, buffer.name, True)
        elif getattr(node.data.op, "name", "") == "tirx.ptr_byte_offset":
            begin, arena = int(node.data.args[1]), view_source(node)
            dtype, shape = str(buffer.ty.dtype), tuple(int(extent) for extent in buffer.ty.shape)
            end = begin + -(-tvm.DataType(dtype).bits * math.prod(shape) // 8)
            own = buffer in self_ordered
            memory[buffer] = Memory(arena, begin, end, (begin, dtype, shape), buffer.name, True, own)
        else:
            sources[buffer] = view_source(node)

    def number(buffer: Any) -> int:
        key = identity(buffer)
        if key not in buffers:
            buffers[key] = buffer
        return key

    def stored(node: Any) -> None:
        stores[number(node.buffer)] += 1

    def pointed(variable: Any) -> None:
        if isinstance(variable.ty, tir.BufferType):
            stores[number(variable)] += 1
            used.add(identity(variable))

    def called(call: Any) -> None:
        if getattr(call.op, "name", "") in ("tirx.address_of", "tirx.buffer_data", "tirx.tvm_access_ptr"):
            tvm_ffi.structural_walk(call, (tvm.ir.Var, pointed))

    tvm_ffi.structural_walk(
        func.body,
        [
            ((tir.AllocBuffer, tir.DeclBuffer), declared),
            (tir.BufferStore, stored),
            (tvm.ir.TensorLoad, lambda load: used.add(number(load.source))),
            (tvm.ir.Call, called),
        ],
    )
    for tile in ordered:
        memory.pop(tile, None)
    arenas = {m.space for m in memory.values() if m.space is not m.key}
    for arena in arenas:  # touched through its views only
        memory.pop(arena, None)
    for view in sources:
        owner = root(view, sources)
        if owner in memory:
            memory[view] = Memory(owner, 0, 1, view, view.name, True)
    family: dict[int, list[int]] = {}  # global buffers by the one that owns the memory
    for key, buffer in buffers.items():
        if scope(buffer) == "global":
            family.setdefault(identity(root(buffer, sources)), []).append(key)
    for owner, members in family.items():
        count = sum(stores[key] for key in members)
        if count == 0:
            continue
        # one store, outside of loops that have an order, cannot conflict with itself
        if count > 1 or not used.isdisjoint(members) or _stored_in_order(func.body, set(members)):
            for key in members:
                buffer = buffers[key]
                memory[buffer] = Memory(owner, 0, 1, key, buffer.name, False)
    return memory


def _stored_in_order(body: tir.Stmt, buffers: set[int]) -> bool:
    """A store to one of the buffers is in a loop whose turns follow each other: the next may store there again."""
    found = False

    def visit(node: Any, ordered: bool) -> Any:
        nonlocal found
        if isinstance(node, tir.BufferStore):
            found = found or (ordered and identity(node.buffer) in buffers)
            return node
        if isinstance(node, tir.For):
            ordered = ordered or not (node.annotations and PARALLEL in node.annotations)
        ordered = ordered or isinstance(node, tir.While)
        return map_children(node, lambda child: visit(child, ordered))

    visit(body, False)
    return found
