"""What bulk copies and products of warp groups make of shared tiles, in words: boxes and swizzles, the tensor maps that
fill or empty them, the matrix descriptors that see them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ..gemm.wgmma import OPERANDS, GroupEngine
from ..rewrite import constant
from ..shared_memory import TILES
from ..spans import line_of
from .tensor_maps import MOVED, Moved
from .tensor_tiles import ALIGNMENT, PLAIN_ALIGNMENT, STEP, TURNED_DEPTH, TensorTile


@dataclass(frozen=True)
class TileFact:
    """subject: "boxes", "tensor map" or "descriptor".  value: what it is; reason: what that means.  line: of the cell,
    None for what holds wherever the tile is used.
    """

    subject: str
    value: str
    reason: str = ""
    line: int | None = None

    def __str__(self) -> str:
        return f"{self.value}; {self.reason}" if self.reason else self.value


def tile_facts(buffer: Any, launch: Any) -> tuple[TileFact, ...]:
    """Of a shared tile that bulk copies or products of warp groups use; nothing for any other tile."""
    tile = launch.facts.get(TILES, {}).get(buffer)
    return () if tile is None else tuple(dict.fromkeys(_facts(buffer, tile, launch)))


def _facts(buffer: Any, tile: TensorTile, launch: Any) -> Iterator[TileFact]:
    yield _boxes(tile)
    for moved in launch.facts.get(MOVED, ()):
        if moved.tile.same_as(buffer):
            yield _map(moved)
    for call, engine in launch.facts.get(OPERANDS, ()):
        for operand, turned in zip("ab", engine.turned):
            if call[operand].buffer.same_as(buffer):
                yield _descriptor(operand.upper(), tile, turned, engine, line_of(call.span))


def _boxes(tile: TensorTile) -> TileFact:
    if not tile.swizzled:
        return TileFact("boxes", "row by row", f"each version at a multiple of {PLAIN_ALIGNMENT} bytes")
    count = f"{tile.boxes} box" + ("es, one after the other, each" if tile.boxes > 1 else "")
    value = f"{count} of {tile.rows} rows of {tile.span} bytes"
    every = 128 // tile.span
    row = f"r / {every}" if every > 1 else "r"
    chunks = f"16-byte chunk c of row r at c xor ({row} mod {tile.span // 16})"
    return TileFact("boxes", value, f"{chunks}; each version at a multiple of {ALIGNMENT:,} bytes")


def _map(moved: Moved) -> TileFact:
    tensor = moved.map
    copies = f"{moved.boxes} bulk cop{'y' if moved.boxes == 1 else 'ies'} of {tensor.box_bytes:,} bytes"
    where, edge = ("from", "0 beyond the edge") if moved.loading else ("to", "nothing is stored beyond the edge")
    dims = " × ".join(map(_extent, tensor.dims))
    strides = f", {', '.join(map(_extent, tensor.strides))} bytes apart" if tensor.strides else ""
    swizzle = f"swizzle {tensor.swizzle} bytes" if tensor.swizzle else "no swizzle"
    text = f"{dims}{strides}, box {' × '.join(map(str, tensor.box))}, {swizzle}; {edge}"
    return TileFact("tensor map", f"{copies} {where} {tensor.buffer.name}", text, line_of(moved.span))


def _extent(extent: Any) -> str:
    known = extent if isinstance(extent, int) else constant(extent)
    return str(extent) if known is None else f"{known:,}"


def _descriptor(operand: str, tile: TensorTile, turned: bool, engine: GroupEngine, line: int | None) -> TileFact:
    leading, stride, layout = tile.descriptor(turned)
    rows = "K" if turned else "M" if operand == "A" else "N"
    offset = f"leading offset {leading * 16:,} bytes" if turned else "no leading offset"
    step = TURNED_DEPTH * tile.span if turned else STEP
    text = f"rows along {rows}, {offset}, stride {stride * 16:,} bytes, layout {layout} ({tile.span}-byte swizzle)"
    steps = f"{engine.depth} of K are {step:,} bytes"
    if not turned and tile.boxes > 1:  # K runs along the rows of memory, and over the edges of boxes
        steps += f"; after {tile.piece} of K the next box, {tile.box_bytes:,} bytes on"
    return TileFact("descriptor", f"{operand} of {engine.name}", f"{text}; {steps}", line)
