"""Tiles that are copied once for all turns of the pipelined loops, such as the queries of an attention.

Where blocks do one work after the other, such a tile has versions as those of the loops have: while one work computes
with its own, the copying role fills that of the next.  "loaded" counts the bytes that arrive, "unused" the warps that
are done with a version.
"""

from __future__ import annotations

from typing import Any

from tvm import tirx as tir

from tilelang_nb.language.tile_program import TileCall, region
from tilelang_nb.layout.matrix import WARP

from ..context import SHARED, LaunchContext
from ..plan_pipelines import in_version
from ..rewrite import dtype_of, sequence
from ..shared_memory import MBARRIER
from .tensor_tiles import TensorTile
from .tile_statements import element, evaluate, is_copy


class ResidentTiles:
    """calls: the copies.  versions: of each tile; more than one only where `work`, the number of the block's work, is
    given.  warps: that compute.
    """

    def __init__(self, calls: tuple[TileCall, ...], versions: int, work: Any, warps: int, launch: LaunchContext):
        self.calls, self.versions, self.warps, self.launch = calls, versions, warps, launch
        self.tiles: dict[Any, Any] = {}  # with their versions
        self.barriers: list[tuple[TileCall, Any]] = []  # where bytes arrive
        self.unused: Any = None
        self.slot, self.lap = tir.const(0, "int32"), tir.const(0, "int32")
        for call in calls:
            self.barriers.append((call, self._barrier("loaded")))
        if work is None or not calls:
            return
        self.slot, self.lap = tir.floormod(work, versions), tir.floormod(tir.floordiv(work, versions), 2)
        self.unused = self._barrier("unused")
        for call in calls:
            tile = call["target"].buffer
            shape = [versions, *tile.shape]
            self.tiles[tile] = tir.decl_buffer(shape, dtype_of(tile), tile.name, scope=SHARED, layout=None)

    def _barrier(self, name: str) -> Any:
        return tir.decl_buffer((self.versions,), "uint64", self.launch.fresh(name), scope=MBARRIER, layout=None)

    def declared(self, span: Any) -> list[Any]:
        """The barriers."""
        unused = [] if self.unused is None else [self.unused]
        return [tir.AllocBuffer(one, None, span) for one in [*(barrier for _, barrier in self.barriers), *unused]]

    def started(self, span: Any) -> list[Any]:
        """The barriers begin to count."""
        parts = []
        for version in range(self.versions):
            at = tir.const(version, "int32")
            parts += [evaluate("barrier_init", span, element(barrier, at), 1) for _, barrier in self.barriers]
            if self.unused is not None:
                parts.append(evaluate("barrier_init", span, element(self.unused, at), self.warps))
        return parts

    def barrier_of(self, node: Any) -> tuple[TileCall, Any] | None:
        """The copy that a statement is, and its barrier; None for any other statement."""
        return next((one for one in self.barriers if is_copy(node, one[0])), None)

    def waited(self, barrier: Any, span: Any) -> Any:
        """The computing role needs the tile from here on."""
        return evaluate("barrier_wait", span, element(barrier, self.slot), self.lap)

    def copied(self, call: TileCall, barrier: Any, shapes: dict[Any, TensorTile]) -> Any:
        """The copying role fills the tile, when nobody needs what it held."""
        source, target = call["source"], call["target"]
        full, size = element(barrier, self.slot), shapes[target.buffer].bytes
        into = region(target.buffer, target.begin, target.extent)
        parts: list[Any] = []
        if self.unused is not None:
            if call is self.calls[0]:
                unused = element(self.unused, self.slot)
                parts.append(evaluate("barrier_wait", call.span, unused, tir.bitwise_xor(self.lap, 1)))
            one = tir.const(1, "int32")
            into = region(self.tiles[target.buffer], [self.slot, *target.begin], [one, *target.extent])
        parts += [evaluate("barrier_expect_tx", call.span, full, size), evaluate("barrier_arrive", call.span, full)]
        from_array = region(source.buffer, source.begin, source.extent)
        return sequence([*parts, evaluate("tensor_load", call.span, from_array, into, full)], call.span)

    def in_versions(self, work: Any) -> Any:
        """What the computing role does, with this work's versions."""
        return in_version(work, self.tiles, self.slot) if self.tiles else work

    def released(self, thread: Any, span: Any) -> list[Any]:
        """One lane of each warp says that it is done with this work's versions."""
        if self.unused is None:
            return []
        lane = tir.EQ(tir.floormod(thread, WARP), tir.const(0, "int32"))
        arrive = evaluate("barrier_arrive", span, element(self.unused, self.slot))
        return [tir.IfThenElse(lane, arrive, None, span)]
