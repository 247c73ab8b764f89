"""Tiles that warp groups multiply in launches and loops that no roles divide: those that threads write, and those of
bulk copies by hand.

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

from tilelang_nb.language.tile_program import TileCall, read, statement_name
from tilelang_nb.layout.wgmma import GROUP

from ..context import FRAGMENT, LaunchContext, ThreadSet
from ..gemm import wgmma
from ..gemm.engine import extents
from ..legalise import whole
from ..loop_effects import Effects
from ..nests import WARP_GROUPS, threads_of_part
from ..ops.mbarriers import BY_HAND
from ..rewrite import constant, dtype_of, each_statement, element_bytes, map_children, scope, variables, walk
from ..uniformity import Uniformity
from ..views import view_source, views
from .tensor_tiles import MOST_ROWS, ROWS_OF_SWIZZLE, TensorTile, is_multiple, misfit, tensor_tile
from .tile_statements import at_known_places, bindings, is_product

ENABLE = "tl.enable_auto_warp_specialization"  # the option: True asks for warp groups where they are slower, too
REGISTERS, MOST_REGISTERS = 65536, 255  # of a block, and of a thread
OTHER_VALUES = 32  # registers of a thread beside accumulators and operands
# Bytes of depth up to which one warp group is faster by mma.sync: 390 against 450 TFLOP/s on an H200 for float16 tiles
# of 128x128x32 in three stages, as a turn of wgmma is too short to hide the wait for the next slot.
SHALLOW = 64


@dataclass
class OperandTiles:
    """tiles: of products of warp groups, by buffer.  accumulators: of those products.  refused: why others are none,
    by accumulator.  running: accumulators of products that run on, with their threads.  written, touched: tiles that
    ordinary statements write, and that they use at all.
    """

    tiles: dict[Any, TensorTile] = field(default_factory=dict)
    accumulators: set[Any] = field(default_factory=set)
    refused: dict[Any, str] = field(default_factory=dict)
    running: dict[Any, ThreadSet] = field(default_factory=dict)
    written: set[Any] = field(default_factory=set)
    touched: set[Any] = field(default_factory=set)


def free_registers(threads: int) -> int:
    """Registers of a thread for accumulators and operands, in a block of so many threads."""
    return min(REGISTERS // threads // 8 * 8, MOST_REGISTERS) - OTHER_VALUES


def operand_tiles(function: Any, launch: LaunchContext, asked: set[Any], every: bool = True) -> OperandTiles:
    """The tiles and products of a launch that no roles divide.

    asked: accumulators of products that the text wants to be those of warp groups.  every: all others may be, too.
    """
    products, uses = Products(function, launch), TileUses(function.body)
    mine = [(call, part) for call, part in zip(products.calls, products.parts) if every or call["c"].buffer in asked]
    by_hand = {call["c"].buffer for call, _ in mine if BY_HAND in launch.facts or call["c"].buffer in asked}
    found = OperandTiles(written=uses.written, touched=uses.touched)
    for call, part in mine:
        target = call["c"].buffer
        if target in products.refused:
            found.refused[target] = products.refused[target]
        elif part.count % GROUP:
            found.refused[target] = f"{part.count} threads are no whole warp groups"
    wanted = [(call, part) for call, part in mine if call["c"].buffer not in found.refused]
    known = {call[name].buffer for call, _ in wanted for name in "ab"} - products.addressed - uses.cut.keys()
    tiles = {
        buffer: tile
        for buffer in known
        if scope(buffer).startswith("shared") and not _ordered(buffer, launch)
        if (tile := tensor_tile(buffer, None)) is not None
    }
    grids: dict[Any, Any] = {}
    for call, part in wanted:
        target = call["c"].buffer
        reason = _no_tile(call, tiles, products, uses, launch)
        reason = reason or _misfit(call, tiles, part.count, launch, grids, target in by_hand)
        if reason:
            found.refused.setdefault(target, reason)
    wanted = [(call, part) for call, part in wanted if call["c"].buffer not in found.refused]
    room = free_registers(launch.threads)
    sizes = {call["c"].buffer: wgmma.registers_of(call["c"].buffer, part.count) for call, part in wanted}
    for target in by_hand & sizes.keys():
        if sizes[target] > room:
            reason = f"`{target.name}` takes {sizes[target]} registers of a thread, and {room} are free for it"
            found.refused[target] = reason
    for part in dict.fromkeys(part for _, part in wanted):
        mine = [(call, other) for call, other in wanted if part.meets(other)]  # what its threads hold
        left = {call["a"].buffer: other.count for call, other in mine if scope(call["a"].buffer) == FRAGMENT}
        targets = dict.fromkeys(call["c"].buffer for call, _ in mine)
        needed = sum(sizes[target] for target in targets)
        needed += sum(wgmma.operand_words(buffer, count) for buffer, count in left.items())
        if needed > room:
            reason = f"accumulators and operands take {needed} registers of a thread, and {room} are free for them"
            found.refused.update(dict.fromkeys(targets.keys() - by_hand, reason))
    wanted = [(call, part) for call, part in wanted if call["c"].buffer not in found.refused]
    running = [(call["c"].buffer, part) for call, part in wanted if call["asynchronous"] is not None]
    found.running = {target: part for target, part in running if dtype_of(target) == "float32"}
    taken = [call for call, _ in wanted]
    found.accumulators = {call["c"].buffer for call in taken}
    operands = {call[name].buffer for call in taken for name in "ab"}
    found.tiles = {buffer: tile for buffer, tile in tiles.items() if buffer in operands}
    return found


def shallow(call: TileCall, threads: int) -> str:
    """Why one warp group does not multiply tiles of little depth by wgmma; "" for other products."""
    tile = call["b"].buffer
    depth = extents(call["b"])[1 if call.boolean("transpose_b") else 0]
    item = element_bytes(tile)
    if threads == GROUP and item == 2 and depth * item <= SHALLOW:
        return f"one warp group multiplies tiles of depth {depth} faster by `mma.sync`"
    return ""


def _ordered(buffer: Any, launch: LaunchContext) -> bool:
    """Does the text give a tile an order that is no swizzle?  Swizzles are for products, which have their own."""
    order = launch.orders.get(buffer)
    return order is not None and (order.swizzle is None or not order.swizzle.moves)


def _no_tile(
    call: TileCall, tiles: dict[Any, TensorTile], products: Products, uses: TileUses, launch: LaunchContext
) -> str:
    """Why an operand or C lies where wgmma does not take it; "" where it does not."""
    if call["c"].buffer in launch.wanted:
        return f"`{call['c'].buffer.name}` has a layout of the text"
    if not whole(call["c"]):
        return f"wgmma accumulates into a whole fragment, and this is a part of `{call['c'].buffer.name}`"
    for name in "ab":
        buffer = call[name].buffer
        if buffer in tiles or (name == "a" and scope(buffer) == FRAGMENT):
            continue
        if not scope(buffer).startswith("shared"):
            return f"wgmma takes B from shared memory, and `{buffer.name}` is a fragment"
        if buffer in products.addressed:
            return f"wgmma takes tiles in an order of its own, and `{buffer.name}` is a view, or is seen through one"
        if _ordered(buffer, launch):
            return f"`{buffer.name}` has a layout of the text"
        if buffer in uses.cut:
            return uses.cut[buffer]
        return misfit(buffer) or f"`{buffer.name}` is no tile that wgmma takes"
    return ""


def _misfit(
    call: TileCall,
    tiles: dict[Any, TensorTile],
    threads: int,
    launch: LaunchContext,
    grids: dict[Any, Any],
    by_hand: bool,
) -> str:
    """Why a product of so many threads is none of warp groups; "" where it is.

    by_hand: the text asks for it, be it slower or not.
    """
    target = call["c"].buffer
    engine = wgmma.choose(call, tiles, threads)
    if isinstance(engine, str):
        return engine
    if grids.setdefault(target, engine.grid) != engine.grid:
        return f"products divide `{target.name}` in different ways"
    if engine.columns // 2 > free_registers(launch.threads):
        return f"one instruction takes {engine.columns // 2} registers of a thread"
    return "" if by_hand or launch.options.get(ENABLE) is True else shallow(call, threads)


class TileUses:
    """What a launch does with shared tiles, beside multiplying them.

    written, touched: by ordinary statements, and used by them at all.  cut: why a tile cannot lie in swizzled boxes, as
    bulk copies of the text move a part of it that is none, or take its bytes as they are.
    """

    def __init__(self, body: Any):
        self.written: set[Any] = set()
        self.touched: set[Any] = set()
        self.cut: dict[Any, str] = {}
        sources, values = views(body), bindings(body)
        for node in each_statement(body):
            name = statement_name(node)
            if name == "tma_copy":
                self._moved(at_known_places(read(node.value, node.span), values))
            elif name in ("copy_to_block", "copy_to_blocks"):
                call = read(node.value, node.span)
                reason = "`{}` is copied between blocks as its bytes lie"
                self.cut |= {call[side].buffer: reason.format(call[side].buffer.name) for side in ("source", "target")}
            elif isinstance(node, tir.BufferStore | tir.Bind) or (isinstance(node, tir.Evaluate) and name != "gemm"):
                effects = Effects(node, sources)
                self.written |= effects.writes
                self.touched |= effects.reads | effects.writes | effects.other
            for expression in conditions_of(node):
                self.touched |= variables(expression)

    def _moved(self, call: TileCall) -> None:
        side = call["source" if call["barrier"] is None else "target"]
        begin, extents = side.begin, [constant(extent) for extent in side.extent]
        rows, name = extents[-2] if len(extents) > 1 else None, side.buffer.name
        if rows is None or rows % ROWS_OF_SWIZZLE or rows > MOST_ROWS:
            self.cut[side.buffer] = f"`T.tma_copy` moves no up to {MOST_ROWS} rows, in whole eights, of `{name}`"
        elif extents[-1] != constant(side.buffer.shape[-1]) or not is_multiple(begin[-2], ROWS_OF_SWIZZLE):
            self.cut[side.buffer] = f"`T.tma_copy` moves rows of `{name}` that begin at no known multiple of 8"


def conditions_of(node: Any) -> tuple[Any, ...]:
    """The expressions that say whether and how often a statement does what is inside it."""
    if isinstance(node, tir.For):
        return node.min, node.extent
    return (node.condition,) if isinstance(node, tir.IfThenElse | tir.While) else ()


class Products:
    """All of a launch.

    nodes, calls: of T.gemm.  parts: the threads of each, those of the block or of a part of `T.ws`.  refused: why not
    all of these execute one together, by accumulator.
    addressed: buffers that are seen by other ways than their indices.
    """

    def __init__(self, function: Any, launch: LaunchContext):
        self.nodes: list[Any] = []
        self.calls: list[TileCall] = []
        self.parts: list[ThreadSet] = []
        self.launch, self.values = launch, bindings(function.body)
        self.refused: dict[Any, str] = {}
        self.addressed: set[Any] = set()
        self.uniformity = Uniformity(function.body, launch.axes)
        walk(function.body, (tir.DeclBuffer, self._view))
        tvm_ffi.structural_walk(function.body, (tvm.ir.Call, self._pointer))
        self._statement(function.body, "", launch.set)

    def _view(self, node: Any) -> None:
        self.addressed |= {node.buffer, view_source(node)}

    def _pointer(self, call: Any) -> None:
        if getattr(call.op, "name", "") in ("tirx.address_of", "tirx.tvm_access_ptr", "tirx.buffer_data"):
            tvm_ffi.structural_walk(call, (tvm.ir.Var, self.addressed.add))

    def _statement(self, node: Any, divergent: str, part: ThreadSet) -> None:
        """divergent: why not all threads of the part execute it together."""
        if is_product(node):
            call = at_known_places(read(node.value, node.span), self.values)
            self.nodes.append(node)
            self.calls.append(call)
            self.parts.append(part)
            target = call["c"].buffer
            reason = divergent
            if not reason and scope(target) != FRAGMENT:
                reason = f"wgmma accumulates in registers, and `{target.name}` is in shared memory"
            if reason:
                self.refused.setdefault(target, reason)
        elif isinstance(node, tir.AttrStmt) and node.attr_key == WARP_GROUPS:
            part = threads_of_part(node, self.launch) or part
        elif isinstance(node, tir.IfThenElse) and not self.uniformity.is_uniform(node.condition):
            divergent = divergent or "only some threads multiply"
        elif isinstance(node, tir.For | tir.While) and self.uniformity.divergent_loop(node):
            divergent = divergent or "threads multiply in different turns"

        def visit(child: Any) -> Any:
            self._statement(child, divergent, part)
            return child

        map_children(node, visit)
