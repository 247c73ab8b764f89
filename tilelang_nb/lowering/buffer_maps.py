"""Where lowering has put the tiles of a launch: the values of `k.layouts`."""

from __future__ import annotations

from typing import Any

from tvm import tirx as tir

from tilelang_nb.layout.maps import FragmentMap, SharedMap
from tilelang_nb.layout.swizzle import swizzle_for

from .annotated_layouts import FACTS as ANNOTATED
from .context import LaunchContext
from .hopper.operand_facts import tile_facts
from .rewrite import dtype_of, element_bytes, scope, walk
from .shared_memory import MBARRIER, PLACED, TILES
from .spans import source_span

DEMOTED = "no layout in registers serves all of its uses: it is kept in shared memory"


def buffer_maps(launch: LaunchContext, several: bool) -> tuple[FragmentMap | SharedMap, ...]:
    """Fragments, then shared tiles, each in the order of the text; those of the compiler's own last.

    several: the kernel has more launches, and the maps say of which they are.
    """
    known = _Known(launch, str(launch.function.attrs["global_symbol"]) if several else "")
    fragments = [known.fragment(buffer, layout) for buffer, layout in launch.layouts.items()]
    tiles = [known.tile(tile) for tile in launch.facts.get(PLACED, ()) if scope(tile.buffer) != MBARRIER]
    found: list[FragmentMap | SharedMap] = [*fragments, *tiles]
    return tuple(sorted(found, key=lambda one: (one.own, one.memory == "shared", one.line or 0)))


class _Known:
    """What the text and the stages say of tiles, by name and place of their allocation: stages make new buffers."""

    def __init__(self, launch: LaunchContext, symbol: str):
        self.launch, self.symbol = launch, symbol
        self.allocated: dict[Any, Any] = {}

        def allocated(node: Any) -> None:
            self.allocated.setdefault(node.buffer, node.span)

        walk(launch.function.body, (tir.AllocBuffer, allocated))
        self.versions = {
            tile.name: len(tile.shape) for plan in launch.facts.get("pipelines", ()) for tile in plan.tiles
        }
        self.swizzles = {buffer.name: swizzle for buffer, swizzle in launch.facts.get("swizzles", {}).items()}
        self.demoted = {buffer.name for buffer in launch.facts.get("demoted", ())}
        self.refused = {
            buffer.name: f"not as annotated: {annotation.refused}"
            for buffer, annotation in launch.facts.get(ANNOTATED, {}).items()
            if annotation.refused
        }
        self.spans = {buffer.name: span for buffer, span in self.allocated.items()}

    def _common(self, buffer: Any, span: Any) -> dict[str, Any]:
        place = source_span(span)
        own = self.launch.is_own(buffer.name)
        note = self.refused.get(buffer.name, "")
        if not note and buffer.name in self.demoted and scope(buffer) != "local.fragment":
            note = DEMOTED
        return {"line": None if place is None or own else place.line, "own": own, "launch": self.symbol, "note": note}

    def fragment(self, buffer: Any, layout: Any) -> FragmentMap:
        span = self.allocated.get(buffer, self.spans.get(buffer.name))
        return FragmentMap(buffer.name, dtype_of(buffer), layout, **self._common(buffer, span))

    def tile(self, placed: Any) -> SharedMap:
        buffer = placed.buffer
        shape, versions = tuple(int(extent) for extent in buffer.shape), 1
        order = self.launch.orders.get(buffer)
        if order is not None:
            versions = placed.bytes // max(order.given.size * element_bytes(buffer), 1)
            shape = order.given.shape
        elif self.versions.get(buffer.name) == len(shape) - 1:
            versions, shape = shape[0], shape[1:]
        places = order.given.table if order is not None and order.swizzle is None else None
        swizzle, piece = self.swizzles.get(buffer.name), None
        boxes = self.launch.facts.get(TILES, {}).get(buffer)
        if boxes is not None:  # as bulk copies write it, and matrix descriptors see it
            swizzle = swizzle_for(boxes.piece, boxes.itemsize) if boxes.swizzled else None
            piece = boxes.piece if boxes.boxes > 1 else None
        return SharedMap(
            buffer.name,
            dtype_of(buffer),
            shape,
            element_bytes(buffer),
            placed.offset,
            placed.bytes,
            versions,
            swizzle,
            piece,
            places,
            tile_facts(buffer, self.launch),
            **self._common(buffer, placed.span),
        )
