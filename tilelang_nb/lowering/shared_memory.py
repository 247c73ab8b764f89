"""plan-shared-memory: all shared tiles of a launch in one arena.

Before: an AllocBuffer per tile. After: one byte array at the start of the launch, and every tile a view
(DeclBuffer) at its offset; tiles in an order by hand, other than a swizzle, are addressed by one index.

Tiles that are never alive at the same time share space. A tile is alive from its first
to its last access in the order of the text; a loop that uses it keeps it alive throughout, unless the tile was
allocated inside. Threads of different `T.ws` groups run at the same time, so what they use is alive together.
mbarriers have space of their own.

The arena is limited by the architecture: TL209.
"""

from __future__ import annotations

import math
from collections.abc import Set
from dataclasses import dataclass
from typing import Any

import tvm
import tvm_ffi
from tvm import tirx as tir

from tilelang_nb.language.tile_program import operation_name
from tilelang_nb.source import catalogue as say

from .annotated_layouts import ordered_tiles
from .architecture import capability
from .context import SHARED, LaunchContext, SharedBuffer
from .nests import WARP_GROUPS
from .rewrite import constant, elements, map_children, nothing, scope, sequence, substitute, with_body
from .signals import SIGNALS, TURNS, is_at
from .views import root, views

MBARRIER = "shared.barrier"
EXCEEDED = "shared memory exceeded"  # the fact that the tiles did not fit
PLACED = "placed tiles"  # the fact: every tile with its place
# Bytes of shared memory that one block may have, by compute capability.
LIMITS = {
    **dict.fromkeys((70, 72), 98304),
    75: 65536,
    **dict.fromkeys((80, 87), 166912),
    **dict.fromkeys((86, 88, 89, 120), 101376),
    90: 232448,
}
_TILE_ALIGNMENT = 128
SWIZZLE_ALIGNMENT = 1024  # where a tile begins that bulk copies swizzle
TILES = "tensor tiles"  # the fact: shared tiles in the layout of bulk copies
WRITTEN = "tiles of threads"  # the fact: those of them that ordinary instructions write
MAPPED = "mapped tiles"  # the fact: those of them that ordinary instructions read or write
DESCRIPTOR = "tl_wgmma_descriptor"  # of a matrix in a tile, which products of warp groups read
PRODUCTS_OVER = "tirx.ptx.wgmma_wait_group"
_EXTERN = ("tirx.call_extern", "tirx.call_pure_extern")
_SMALL = 1024  # bytes; sharing a smaller tile saves less than the barriers it costs


@dataclass
class _Tile:
    buffer: Any
    span: Any
    bytes: int
    begin: int = -1  # positions in the order of statements
    end: int = -1
    offset: int = 0
    swizzled: bool = False  # by a bulk copy

    @property
    def alignment(self) -> int:
        if self.swizzled:
            return SWIZZLE_ALIGNMENT
        return _TILE_ALIGNMENT if self.bytes >= _TILE_ALIGNMENT else 16

    def use(self, begin: int, end: int) -> None:
        self.begin = begin if self.begin < 0 else min(self.begin, begin)
        self.end = max(self.end, end)


def plan_shared_memory(func: tir.PrimFunc, launch: LaunchContext) -> tir.PrimFunc:
    """The stage.  `launch.facts["shared_memory"]` gets the SharedBuffers."""
    func = ordered_tiles(func, launch)
    lifetimes = _Lifetimes(func.body, launch.facts.get(TURNS, frozenset()))
    tiles = [tile for tile in lifetimes.tiles.values() if tile.begin >= 0]
    if not lifetimes.tiles:
        return func
    for tile in tiles:
        tile.swizzled = tile.buffer in launch.facts.get(TILES, {})
    limit = shared_memory_limit(launch.arch)
    size = _place(tiles, lifetimes, share_small=False)
    if size > limit:
        size = _place(tiles, lifetimes, share_small=True)
    launch.facts[PLACED] = tuple(tiles)
    launch.facts["shared_memory"] = tuple(SharedBuffer(tile.buffer.name, tile.offset, tile.bytes) for tile in tiles)
    if size > limit:
        launch.facts[EXCEEDED] = size
        _report(tiles, size, limit, launch)
        return func
    return func.with_body(_with_arena(func.body, tiles, lifetimes, size, launch))


def needed_shared_memory(body: tir.Stmt, turns: Set[str] = frozenset()) -> int:
    """Bytes that the shared tiles of a launch take when all of them share space as far as they can.

    turns: names of barriers at which the threads of the block stay in step.
    """
    lifetimes = _Lifetimes(body, turns)
    return _place([tile for tile in lifetimes.tiles.values() if tile.begin >= 0], lifetimes, share_small=True)


def shared_memory_limit(arch: str) -> int:
    """Bytes that one block may have on an architecture such as "sm_90a"."""
    number = capability(arch)
    known = [key for key in LIMITS if key <= number]
    return LIMITS[number] if number in LIMITS else LIMITS[max(known)] if known else 49152


class _Lifetimes:
    """Where each shared tile is used, as positions in the order of the text."""

    def __init__(self, body: tir.Stmt, turns: Set[str] = frozenset()):
        self.turns = turns  # names of barriers at which the threads of the block stay in step
        self.tiles: dict[Any, _Tile] = {}
        self.sources = views(body)  # views of tiles: using one is using the tile
        self.position = 0
        self.uses: list[set[Any]] = []  # of the loops around, innermost last
        self.signals = False  # mbarriers: threads are not in step, every tile is alive throughout
        self.read_on: set[Any] = set()  # by products of warp groups that nothing has waited for
        self.groups: list[tuple[int, int, set[Any]]] = []
        self._handlers = [(tvm.ir.Var, self._variable), (tvm.ir.Call, self._call)]
        self._statement(body)
        self._still_read()
        if self.groups:
            begin, end = self.groups[0][0], self.groups[-1][1]
            for buffer in set().union(*(used for _, _, used in self.groups)):
                self.tiles[buffer].use(begin, end)

    def _variable(self, variable: Any) -> None:
        owner = root(variable, self.sources)
        tile = self.tiles.get(owner)
        if tile is not None:
            tile.use(self.position, self.position)
            for used in self.uses:
                used.add(owner)

    def _call(self, call: Any) -> None:
        name = getattr(call.op, "name", "")
        if name in _EXTERN and str(call.args[0].value) == DESCRIPTOR:
            tvm_ffi.structural_walk(call, (tvm.ir.Var, lambda var: self.read_on.add(root(var, self.sources))))
        elif name == PRODUCTS_OVER:
            self._still_read()
            if constant(call.args[0]) == 0:
                self.read_on.clear()
        signal = name in SIGNALS and not is_at(call, self.turns)
        if signal or operation_name(call) in ("barrier_wait", "cluster_wait"):
            self.signals = True

    def _still_read(self) -> None:
        for owner in self.read_on:
            self._variable(owner)

    def _within(self, *parts: Any) -> tuple[int, int, set[Any]]:
        """Walk parts of a loop; positions of its start and end, and the tiles it uses."""
        begin, allocated = self.position, set(self.tiles)
        self.uses.append(set())
        for part in parts:
            self._part(part)
        return begin, self.position, self.uses.pop() & allocated

    def _part(self, node: Any) -> None:
        if isinstance(node, tir.Stmt):
            self._statement(node)
        elif self.tiles:
            tvm_ffi.structural_walk(node, self._handlers)

    def _statement(self, node: Any) -> None:
        self.position += 1
        kind = type(node)
        if kind is tir.SeqStmt:
            for child in elements(node.seq):
                self._statement(child)
        elif kind is tir.AllocBuffer:
            if scope(node.buffer).startswith("shared"):
                count = math.prod(int(extent) for extent in node.buffer.ty.shape)
                size = max(1, -(-tvm.DataType(str(node.buffer.ty.dtype)).bits // 8)) * count
                self.tiles[node.buffer] = _Tile(node.buffer, node.span, size)
        elif kind is tir.For or kind is tir.While:
            parts = (node.min, node.extent) if kind is tir.For else (node.condition,)
            begin, end, used = self._within(*parts, node.body)
            for buffer in used:
                self.tiles[buffer].use(begin, end)
        elif kind is tir.IfThenElse:
            for part in (node.condition, node.then_case, node.else_case):
                if part is not None:
                    self._part(part)
        elif kind is tir.AttrStmt:
            if node.attr_key == WARP_GROUPS:
                self.groups.append(self._within(node.body))
            else:
                self._statement(node.body)
        elif self.tiles and kind is not tir.DeclBuffer:
            tvm_ffi.structural_walk(node, self._handlers)


def _place(tiles: list[_Tile], lifetimes: _Lifetimes, share_small: bool) -> int:
    """Gives every tile its offset, the biggest first, at the lowest place free while it lives; size of the arena."""
    placed: list[_Tile] = []
    always = (0, lifetimes.position)

    def life(tile: _Tile) -> tuple[int, int]:
        if lifetimes.signals or (tile.bytes < _SMALL and not share_small):
            return always
        return tile.begin, tile.end

    ordinary = [tile for tile in tiles if scope(tile.buffer) != MBARRIER]
    for tile in sorted(ordinary, key=lambda tile: -tile.bytes):
        begin, end = life(tile)
        taken = sorted(
            (other.offset, other.offset + other.bytes)
            for other in placed
            if life(other)[0] <= end and begin <= life(other)[1]
        )
        tile.offset = 0
        for low, high in taken:
            if tile.offset + tile.bytes <= low:
                break
            tile.offset = max(tile.offset, -(-high // tile.alignment) * tile.alignment)
        placed.append(tile)
    size = max((tile.offset + tile.bytes for tile in placed), default=0)
    for tile in tiles:
        if scope(tile.buffer) == MBARRIER:
            tile.offset = -(-size // 16) * 16
            size = tile.offset + tile.bytes
    return -(-size // 16) * 16


def _report(tiles: list[_Tile], size: int, limit: int, launch: LaunchContext) -> None:
    biggest = sorted(tiles, key=lambda tile: -tile.bytes)[:3]

    def called(tile: _Tile) -> str:
        name = tile.buffer.name
        if name in moved:
            return f"`{name}`, a fragment whose uses no layout in registers serves,"
        return "a tile that the compiler adds" if launch.is_own(name) else f"`{name}`"

    moved = {buffer.name for buffer in launch.facts.get("demoted", ())}
    names = ", ".join(f"{called(tile)} {tile.bytes:,} bytes" for tile in biggest)
    message = say.SharedMemoryExceeded(needed=f"{size:,}", arch=launch.arch, available=f"{limit:,}", biggest=names)
    launch.report(message, biggest[0].span)


def _with_arena(
    body: tir.Stmt, tiles: list[_Tile], lifetimes: _Lifetimes, size: int, launch: LaunchContext
) -> tir.Stmt:
    alignment = max((tile.alignment for tile in tiles), default=_TILE_ALIGNMENT)
    arena = tir.decl_buffer(
        (size,), "uint8", launch.fresh("arena"), scope=SHARED, layout=None,
        data_alignment=max(alignment, _TILE_ALIGNMENT),
    )  # fmt: skip
    renamed: dict[Any, Any] = {}
    declarations = [tir.AllocBuffer(arena, None, max(tiles, key=lambda tile: tile.bytes).span)] if tiles else []

    def declare(buffer: Any, offset: int, span: Any) -> None:
        view = buffer
        if scope(view) != SHARED:
            view = tir.decl_buffer(list(view.ty.shape), str(view.ty.dtype), view.name, scope=SHARED, layout=None)
            renamed[buffer] = view
        data = tir.ptr_byte_offset(tir.buffer_data(arena), offset, str(view.ty.dtype))
        declarations.append(tir.DeclBuffer(view, data=data, span=span))

    placed = {tile.buffer: tile for tile in tiles}
    for tile in tiles:
        declare(tile.buffer, tile.offset, tile.span)
    owners = {view: root(view, lifetimes.sources) for view in lifetimes.sources}
    launch.facts["viewed tiles"] = {*owners, *owners.values()}
    for view, owner in owners.items():
        if owner in placed:
            declare(view, placed[owner].offset, placed[owner].span)

    def without_allocations(node: Any) -> Any:
        if isinstance(node, tir.AllocBuffer) and node.buffer in lifetimes.tiles:
            return nothing(node.span)
        if isinstance(node, tir.DeclBuffer) and owners[node.buffer] in lifetimes.tiles:
            return nothing(node.span)
        return map_children(node, without_allocations)

    def inside(node: Any) -> Any:
        if isinstance(node, tir.AttrStmt) and node.attr_key == "thread_extent":
            return with_body(node, inside(node.body))
        return sequence([*declarations, substitute(without_allocations(node), renamed)])

    return inside(body)
