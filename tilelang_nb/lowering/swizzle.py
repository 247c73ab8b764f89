"""swizzle-shared-memory: tiles that matrix instructions read are stored in an order without bank conflicts.

Before: every access to such a tile has the indices of the text.  After: the last index is that of `layout/swizzle.py`,
in loads, stores and addresses alike.  Vectors of up to 16 bytes stay together.  A tile that is also seen through a
view keeps its order, and one whose order the text gives has that.  Tiles in the layout of bulk copies are addressed by
these and by matrix descriptors as they lie already; ordinary accesses find their elements there, too.
"""

from __future__ import annotations

from typing import Any

import tvm
import tvm_ffi
from tvm import tirx as tir
from tvm.ir import Range

from tilelang_nb.layout.swizzle import Swizzle, swizzle_for

from .accesses import BULK_COPY
from .context import SHARED, LaunchContext
from .gemm.wgmma import DESCRIPTOR
from .hopper.tensor_tiles import TensorTile
from .index_arithmetic import fold
from .rewrite import Load, constant, dtype_of, element_bytes, map_children, sequence, walk
from .shared_memory import MAPPED, TILES

BARRIERS = ("tirx.tvm_storage_sync", "tirx.ptx.bar_sync_count")


def swizzle_shared_memory(function: Any, launch: LaunchContext) -> Any:
    """The stage.  `launch.facts["swizzles"]` gets the swizzle of every tile that has one."""
    swizzles = _swizzles(function.body, launch)
    launch.facts["swizzles"] = dict(swizzles)
    boxes = {tile: found for tile in launch.facts.get(MAPPED, ()) if (found := launch.facts[TILES][tile]).swizzled}
    if not swizzles and not boxes:
        return function
    body, own = _set_apart(_in_order(function.body), boxes) if boxes else (function.body, {})
    analyzer = launch.analyzer

    def bind(loop: Any) -> None:
        low, extent = constant(loop.min), constant(loop.extent)
        if low is not None and extent is not None and extent > 0:
            analyzer.bind(loop.loop_var, Range(low, low + extent), True)

    walk(function.body, (tir.For, bind))

    def moved(buffer: Any, indices: Any) -> list[Any]:
        *outer, row, column = indices
        if buffer in boxes:
            return [*outer, *boxed(boxes[buffer], row, column)]
        swizzle: Swizzle = swizzles[buffer]
        turned = fold(row // swizzle.every % swizzle.span if swizzle.every > 1 else row % swizzle.span, analyzer)
        chunk, inside = fold(column // swizzle.chunk, analyzer), fold(column % swizzle.chunk, analyzer)
        return [*outer, row, tir.bitwise_xor(chunk, turned) * swizzle.chunk + inside]

    def boxed(tile: TensorTile, row: Any, column: Any) -> list[Any]:
        box, within = fold(column // tile.piece, analyzer), fold(column % tile.piece, analyzer)
        swizzle = swizzle_for(tile.piece, tile.itemsize)
        assert swizzle is not None
        within = swizzle.column(row, within, tir.bitwise_xor)
        if tile.boxes == 1:
            return [row, fold(within, analyzer)]
        line = box * tile.rows + row  # of `piece` elements
        return [
            fold(line // tile.boxes, analyzer),
            fold(line % tile.boxes, analyzer) * tile.piece + fold(within, analyzer),
        ]

    def load(node: Any) -> Any:
        if node.source not in swizzles and node.source not in boxes:
            return tir.BufferLoad(own[node.source], list(node.indices)) if node.source in own else node
        return tir.BufferLoad(node.source, moved(node.source, node.indices))

    def store(node: Any) -> Any:
        if node.buffer not in swizzles and node.buffer not in boxes:
            return node
        return tir.BufferStore(node.buffer, node.value, moved(node.buffer, node.indices), node.span)

    return function.with_body(tvm_ffi.structural_map(body, [(Load, load), (tir.BufferStore, store)]))


def _set_apart(body: Any, boxes: Any) -> tuple[Any, dict[Any, Any]]:
    """The body with names of their own for tiles in matrix descriptors and bulk copies; those names."""
    other = {
        tile: tir.decl_buffer(list(tile.shape), dtype_of(tile), tile.name, scope=SHARED, layout=None) for tile in boxes
    }

    def load(node: Any) -> Any:
        return tir.BufferLoad(other[node.source], list(node.indices)) if node.source in other else node

    def call(node: Any) -> Any:
        name = getattr(node.op, "name", "")
        if name == "tirx.call_pure_extern" and str(node.args[0].value) == DESCRIPTOR:
            return tvm_ffi.structural_map(node, (Load, load))
        return tvm_ffi.structural_map(node, (Load, load)) if name.startswith(BULK_COPY) else node

    return tvm_ffi.structural_map(body, (tvm.ir.Call, call)), {name: tile for tile, name in other.items()}


def _in_order(node: Any) -> Any:
    """The barrier in front of a product's operands stands in front of the fence that begins the product."""
    if not isinstance(node, tir.SeqStmt):
        return map_children(node, _in_order)
    parts = [_in_order(one) for one in node.seq]
    for at in range(len(parts) - 1):
        if _called(parts[at]) == "tirx.ptx.wgmma_fence" and _called(parts[at + 1]) in BARRIERS:
            parts[at], parts[at + 1] = parts[at + 1], parts[at]
    return sequence(parts, node.span)


def _called(node: Any) -> str:
    return str(getattr(getattr(node.value, "op", None), "name", "")) if isinstance(node, tir.Evaluate) else ""


def _swizzles(body: Any, launch: LaunchContext) -> dict[Any, Swizzle]:
    wanted = launch.facts.get("matrix tiles", {})
    declared: list[Any] = []
    walk(body, (tir.DeclBuffer, lambda node: declared.append(node.buffer)))
    viewed = launch.facts.get("viewed tiles", set())
    found: dict[Any, Swizzle] = {}
    for buffer in declared:
        if buffer in launch.facts.get(TILES, {}) or buffer in launch.facts.get("raw tiles", ()):
            continue  # bulk copies have an order of their own
        by_hand = launch.orders.get(buffer)
        if by_hand is not None:
            if by_hand.swizzle is not None and by_hand.swizzle.moves:
                found[buffer] = by_hand.swizzle
            continue
        if buffer not in wanted or buffer in viewed or len(buffer.shape) < 2:
            continue
        swizzle = swizzle_for(int(buffer.shape[-1]), element_bytes(buffer))
        if swizzle is not None and swizzle.moves:
            found[buffer] = swizzle
    return found
