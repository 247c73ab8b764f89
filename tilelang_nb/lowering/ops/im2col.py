"""T.im2col: a tile of the unfolded image.

source: an image (N, H, W, C) in global memory; target: a tile (BM, BK). Element (i, j) is tap k = c_step * BK + j,
counted over (kernel row, kernel column, channel), of output pixel m = nhw_step * BM + i, counted over (image, row,
column). Taps outside the image read as 0: above and left of it, and below and right of it, by guard-accesses.
"""

from __future__ import annotations

from typing import Any

from tvm import tirx as tir

from tilelang_nb.language.tile_program import TileCall

from ..rewrite import constant, dtype_of
from .elementwise import loops_over


def expand(call: TileCall, launch: Any) -> Any:
    """The call as `T.Parallel` loops over the target."""
    image, target = call["source"].buffer, call["target"].buffer
    _, height, width, channels = (constant(extent) or 0 for extent in image.shape)
    kernel, stride, dilation, pad = (call.integer(name) for name in ("kernel", "stride", "dilation", "pad"))
    rows, columns = ((extent + 2 * pad - dilation * (kernel - 1) - 1) // stride + 1 for extent in (height, width))
    block = [constant(extent) for extent in target.shape]

    def body(loops: list[Any]) -> Any:
        pixel = call["nhw_step"] * block[0] + loops[0]
        tap = call["c_step"] * block[1] + loops[1]
        row = pixel % (rows * columns) // columns * stride + tap // (kernel * channels) * dilation - pad
        column = pixel % columns * stride + tap // channels % kernel * dilation - pad
        load = tir.BufferLoad(image, [pixel // (rows * columns), row, column, tap % channels])
        zero = tir.const(0, dtype_of(image))
        known = tir.LT(tap, tir.const(kernel * kernel * channels, dtype_of(tap)))
        return tir.BufferStore(target, tir.if_then_else(known, load, zero), loops, call.span)

    return loops_over(block, body, call.span, image, target)
