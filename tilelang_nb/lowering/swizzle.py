"""swizzle-shared-memory: tiles that matrix instructions read are stored in an order without bank conflicts.

Before: every access to such a tile has the indices of the text.  After: the last index is that of `layout/swizzle.py`,
in loads, stores and addresses alike.  Vectors of up to 16 bytes stay together.  A tile that is also seen through a
view keeps its order, and one whose order the text gives has that.
"""

from __future__ import annotations

from typing import Any

import tvm
import tvm_ffi
from tvm import tirx as tir
from tvm.ir import Range

from tilelang_nb.layout.swizzle import Swizzle, swizzle_for

from .context import LaunchContext
from .index_arithmetic import fold
from .rewrite import Load, constant, dtype_of, walk
from .shared_memory import TILES


def swizzle_shared_memory(function: Any, launch: LaunchContext) -> Any:
    """The stage.  `launch.facts["swizzles"]` gets the swizzle of every tile that has one."""
    swizzles = _swizzles(function.body, launch)
    launch.facts["swizzles"] = swizzles
    if not swizzles:
        return function
    analyzer = launch.analyzer

    def bind(loop: Any) -> None:
        low, extent = constant(loop.min), constant(loop.extent)
        if low is not None and extent is not None and extent > 0:
            analyzer.bind(loop.loop_var, Range(low, low + extent), True)

    walk(function.body, (tir.For, bind))

    def moved(buffer: Any, indices: Any) -> list[Any]:
        *outer, row, column = indices
        swizzle: Swizzle = swizzles[buffer]
        turned = fold(row // swizzle.every % swizzle.span if swizzle.every > 1 else row % swizzle.span, analyzer)
        chunk, inside = fold(column // swizzle.chunk, analyzer), fold(column % swizzle.chunk, analyzer)
        return [*outer, row, tir.bitwise_xor(chunk, turned) * swizzle.chunk + inside]

    def load(node: Any) -> Any:
        return tir.BufferLoad(node.source, moved(node.source, node.indices)) if node.source in swizzles else node

    def store(node: Any) -> Any:
        if node.buffer not in swizzles:
            return node
        return tir.BufferStore(node.buffer, node.value, moved(node.buffer, node.indices), node.span)

    return function.with_body(tvm_ffi.structural_map(function.body, [(Load, load), (tir.BufferStore, store)]))


def _swizzles(body: Any, launch: LaunchContext) -> dict[Any, Swizzle]:
    wanted = launch.facts.get("matrix tiles", {})
    declared: list[Any] = []
    walk(body, (tir.DeclBuffer, lambda node: declared.append(node.buffer)))
    viewed = launch.facts.get("viewed tiles", set())
    found: dict[Any, Swizzle] = {}
    for buffer in declared:
        if buffer in launch.facts.get(TILES, {}):
            continue  # bulk copies have an order of their own
        by_hand = launch.orders.get(buffer)
        if by_hand is not None:
            if by_hand.swizzle is not None and by_hand.swizzle.moves:
                found[buffer] = by_hand.swizzle
            continue
        if buffer not in wanted or buffer in viewed or len(buffer.shape) < 2:
            continue
        size = max(tvm.DataType(dtype_of(buffer)).bits // 8, 1)
        swizzle = swizzle_for(int(buffer.shape[-1]), size)
        if swizzle is not None and swizzle.moves:
            found[buffer] = swizzle
    return found
