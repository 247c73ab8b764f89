"""T.im2col: the tile of an image that a product needs to be a convolution."""

from __future__ import annotations

from typing import Any

from .calling import bad_argument, checked_call
from .operands import GLOBAL, SHARED, described, dtype_mismatch, integer, require_memory, shape_mismatch, shown, whole
from .promotion import is_integer
from .values import Buffer, Value, builder, number


@checked_call
def im2col(
    img: Any,
    col: Any,
    nhw_step: Any,
    c_step: Any,
    kernel: int,
    stride: int,
    dilation: int,
    pad: int,
    eviction_policy: str | None = None,
    annotations: dict | None = None,
) -> None:
    """Copies into `col` what rows of a convolution read: `col[i, j]` is the pixel under tap k of output pixel m, with
    m = nhw_step * BM + i over (batch, output row, output column) and k = c_step * BK + j over (kernel row, kernel
    column, channel).

    img: (N, H, W, C) in global memory, H, W and C constants.  col: (BM, BK) in shared memory, of the same dtype.
    nhw_step, c_step: which tile, integers or device values.  kernel, stride, dilation, pad: pixels, the same along
    both directions.  Taps outside the image give 0.  eviction_policy, annotations: hints.
    Errors: TL204 (shapes), TL205 (dtypes), TL004 (operands).  Source: upstream `T.im2col`.
    """
    called = "T.im2col"
    for value, role in ((img, "its image"), (col, "its tile")):
        if not isinstance(value, Buffer):
            bad_argument(f"`{called}` takes a buffer as {role}, {described(value)} given", "give the buffer itself")
    require_memory(img, (GLOBAL,), called, "its image", "the image is a tensor of the kernel")
    require_memory(col, (SHARED,), called, "its tile", "allocate it with `T.alloc_shared`")
    if len(img.shape) != 4 or not all(isinstance(extent, int) for extent in img.shape[1:]):
        shape_mismatch(
            f"`{called}` of `{img.name}`, shape {shown(img.shape)}",
            "give an image of constant shape (N, H, W, C)",
        )
    if len(col.shape) != 2:
        shape_mismatch(f"`{called}` into `{col.name}`, shape {shown(col.shape)}", "give a tile of two dimensions")
    if img.dtype != col.dtype:
        dtype_mismatch(f"`{called}` from {img.dtype} into {col.dtype}", f"allocate `{col.name}` as {img.dtype}")
    size = integer(kernel, called, "kernel", 1)
    step, spread = integer(stride, called, "stride", 1), integer(dilation, called, "dilation", 1)
    border = integer(pad, called, "pad", 0)
    if any(extent + 2 * border - spread * (size - 1) < 1 for extent in img.shape[1:3]):
        shape_mismatch(
            f"a kernel of {size} pixels, {spread} apart, does not fit `{img.name}`, shape {shown(img.shape)}",
            "make the image or `pad` larger",
        )
    tiles = [_step(nhw_step, "nhw_step"), _step(c_step, "c_step")]
    builder().operation("im2col", whole(img), whole(col), *tiles, size, step, spread, border)


c2d_im2col = im2col  # the older name


def _step(value: Any, name: str) -> Any:
    found = number(value)
    if found is None or isinstance(found, float) or (isinstance(found, Value) and not is_integer(found.dtype)):
        bad_argument(f"`{name}` of `T.im2col` is {described(value)}", "give the number of the tile, an integer")
    return found
