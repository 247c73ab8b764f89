"""Tiles that threads write and warp groups multiply, in launches and loops that no roles divide.

Such a tile has the order that wgmma reads (`tensor_tiles.py`); every other access finds its element there too, which
`swizzle-shared-memory` sees to.  What threads wrote is not seen by matrix instructions before a fence: the product
begins with one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import tvm
import tvm_ffi
from tvm import tirx as tir

from tilelang_nb.language.tile_program import TileCall, read
from tilelang_nb.layout.wgmma import GROUP

from ..context import FRAGMENT, LaunchContext
from ..gemm import wgmma
from ..gemm.engine import extents
from ..nests import WARP_GROUPS
from ..rewrite import element_bytes, map_children, scope, walk
from ..uniformity import Uniformity
from ..views import view_source
from .tensor_tiles import TensorTile, misfit, tensor_tile
from .tile_statements import is_product

ENABLE = "tl.enable_auto_warp_specialization"  # the option: True asks for warp groups where they are slower, too
REGISTERS, MOST_REGISTERS = 65536, 255  # of a block, and of a thread
OTHER_VALUES = 32  # registers of a thread beside accumulators and operands
# Bytes of depth up to which one warp group is faster by mma.sync: 390 against 450 TFLOP/s on an H200 for float16 tiles
# of 128x128x32 in three stages, as a turn of wgmma is too short to hide the wait for the next slot.
SHALLOW = 64
IN_PARTS = "in parts of the text"


@dataclass
class OperandTiles:
    """tiles: of products of warp groups, by buffer.  accumulators: of those products.  refused: why others are none,
    by accumulator.
    """

    tiles: dict[Any, TensorTile] = field(default_factory=dict)
    accumulators: set[Any] = field(default_factory=set)
    refused: dict[Any, str] = field(default_factory=dict)


def free_registers(threads: int) -> int:
    """Registers of a thread for accumulators and operands, in a block of so many threads."""
    return min(REGISTERS // threads // 8 * 8, MOST_REGISTERS) - OTHER_VALUES


def operand_tiles(function: Any, launch: LaunchContext, held: int = 0) -> OperandTiles:
    """The tiles and products of a launch whose threads are all in step.

    held: registers of a thread that hold accumulators already.
    """
    products = Products(function, launch)
    found = OperandTiles(refused=dict(products.refused))
    if launch.threads % GROUP:
        reason = f"{launch.threads} threads are no whole warp groups"
        found.refused.update({call["c"].buffer: reason for call in products.calls})
        return found
    wanted = [call for call in products.calls if call["c"].buffer not in found.refused]
    known = {call[name].buffer for call in wanted for name in "ab"} - products.addressed
    tiles = {
        buffer: tile
        for buffer in known
        if scope(buffer).startswith("shared") and buffer not in launch.orders
        if (tile := tensor_tile(buffer)) is not None
    }
    grids: dict[Any, Any] = {}
    room = free_registers(launch.threads) - held
    for call in wanted:
        target = call["c"].buffer
        reason = _no_tile(call, tiles, products, launch) or _misfit(call, tiles, launch, grids)
        if reason:
            found.refused.setdefault(target, reason)
    fitting = dict.fromkeys(call["c"].buffer for call in wanted if call["c"].buffer not in found.refused)
    left = {call["a"].buffer for call in wanted if call["c"].buffer in fitting and scope(call["a"].buffer) == FRAGMENT}
    needed = sum(wgmma.registers_of(target, launch.threads) for target in fitting)
    needed += sum(wgmma.operand_words(buffer, launch.threads) for buffer in left)
    if needed > room:
        reason = f"accumulators and operands take {needed} registers of a thread, and {room} are free for them"
        found.refused.update(dict.fromkeys(fitting, reason))
    taken = [call for call in wanted if call["c"].buffer not in found.refused]
    found.accumulators = {call["c"].buffer for call in taken}
    mine = {call[name].buffer for call in taken for name in "ab"}
    found.tiles = {buffer: tile for buffer, tile in tiles.items() if buffer in mine}
    return found


def shallow(call: TileCall, threads: int) -> str:
    """Why one warp group does not multiply tiles of little depth by wgmma; "" for other products."""
    tile = call["b"].buffer
    depth = extents(call["b"])[1 if call.boolean("transpose_b") else 0]
    item = element_bytes(tile)
    if threads == GROUP and item == 2 and depth * item <= SHALLOW:
        return f"one warp group multiplies tiles of depth {depth} faster by `mma.sync`"
    return ""


def _no_tile(call: TileCall, tiles: dict[Any, TensorTile], products: Products, launch: LaunchContext) -> str:
    """Why an operand or C lies where wgmma does not take it; "" where it does not."""
    if call["c"].buffer in launch.wanted:
        return f"`{call['c'].buffer.name}` has a layout of the text"
    for name in "ab":
        buffer = call[name].buffer
        if buffer in tiles or (name == "a" and scope(buffer) == FRAGMENT):
            continue
        if not scope(buffer).startswith("shared"):
            return f"wgmma takes B from shared memory, and `{buffer.name}` is a fragment"
        if buffer in products.addressed:
            return f"wgmma takes tiles in an order of its own, and `{buffer.name}` is a view, or is seen through one"
        if buffer in launch.orders:
            return f"`{buffer.name}` has a layout of the text"
        return misfit(buffer) or f"`{buffer.name}` is no tile that wgmma takes"
    return ""


def _misfit(call: TileCall, tiles: dict[Any, TensorTile], launch: LaunchContext, grids: dict[Any, Any]) -> str:
    """Why a product is none of warp groups; "" where it is."""
    target = call["c"].buffer
    engine = wgmma.choose(call, tiles, launch.threads)
    if isinstance(engine, str):
        return engine
    if grids.setdefault(target, engine.grid) != engine.grid:
        return f"products divide `{target.name}` in different ways"
    if engine.columns // 2 > free_registers(launch.threads):
        return f"one instruction takes {engine.columns // 2} registers of a thread"
    return "" if launch.options.get(ENABLE) is True else shallow(call, launch.threads)


def _by_threads(call: TileCall) -> str:
    """Why a product in a part of `T.ws` is none of warp groups, in a launch without bulk copies of the text."""
    names = [call[name].buffer.name for name in "ab" if scope(call[name].buffer).startswith("shared")]
    filled = f", and threads fill `{names[0]}`" if names else ""
    return f"in a part of `T.ws` wgmma takes tiles that only `T.tma_copy` fills{filled}"


class Products:
    """All of a launch.

    nodes, calls: of T.gemm.  refused: why not all threads of the block execute one together, by accumulator.
    addressed: buffers that are seen by other ways than their indices.
    """

    def __init__(self, function: Any, launch: LaunchContext):
        self.nodes: list[Any] = []
        self.calls: list[TileCall] = []
        self.refused: dict[Any, str] = {}
        self.addressed: set[Any] = set()
        self.uniformity = Uniformity(function.body, launch.axes)
        walk(function.body, (tir.DeclBuffer, self._view))
        tvm_ffi.structural_walk(function.body, (tvm.ir.Call, self._pointer))
        self._statement(function.body, "")

    def _view(self, node: Any) -> None:
        self.addressed |= {node.buffer, view_source(node)}

    def _pointer(self, call: Any) -> None:
        if getattr(call.op, "name", "") in ("tirx.address_of", "tirx.tvm_access_ptr", "tirx.buffer_data"):
            tvm_ffi.structural_walk(call, (tvm.ir.Var, self.addressed.add))

    def _statement(self, node: Any, divergent: str) -> None:
        """divergent: why not all threads of the block execute it together."""
        if is_product(node):
            call = read(node.value, node.span)
            self.nodes.append(node)
            self.calls.append(call)
            if divergent or scope(call["c"].buffer) != FRAGMENT:
                self.refused.setdefault(
                    call["c"].buffer,
                    _by_threads(call)
                    if divergent == IN_PARTS
                    else divergent
                    or f"wgmma accumulates in registers, and `{call['c'].buffer.name}` is in shared memory",
                )
        elif isinstance(node, tir.AttrStmt) and node.attr_key == WARP_GROUPS:
            divergent = divergent or IN_PARTS
        elif isinstance(node, tir.IfThenElse) and not self.uniformity.is_uniform(node.condition):
            divergent = divergent or "only some threads multiply"
        elif isinstance(node, tir.For | tir.While) and self.uniformity.divergent_loop(node):
            divergent = divergent or "threads multiply in different turns"

        def visit(child: Any) -> Any:
            self._statement(child, divergent)
            return child

        map_children(node, visit)
