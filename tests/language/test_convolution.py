"""T.im2col: convolutions as products of tiles, against NumPy, and its mistakes."""

from __future__ import annotations

import numpy as np
import pytest

import tilelang_nb

TEXT = """
@T.prim_func
def convolution(X: T.Tensor({image}, "float16"), W: T.Tensor(({taps}, {F}), "float16"), Y: T.Tensor(({pixels}, {F}), "float32")):
    with T.Kernel(T.ceildiv({F}, 32), T.ceildiv({pixels}, 64), threads=128) as (bx, by):
        tile = T.alloc_shared((64, {BK}), "float16")
        weights = T.alloc_shared(({BK}, 32), "float16")
        total = T.alloc_fragment((64, 32), "float32")
        T.clear(total)
        for k in T.Pipelined(T.ceildiv({taps}, {BK}), num_stages={stages}):
            T.im2col(X, tile, by, k, {kernel}, {stride}, {dilation}, {pad})
            T.copy(W[k * {BK}, bx * 32], weights)
            T.gemm(tile, weights, total)
        T.copy(total, Y[by * 64, bx * 32])
"""


def convolved(x: np.ndarray, w: np.ndarray, stride: int, dilation: int, pad: int) -> np.ndarray:
    kernel = len(w)
    x = np.pad(x.astype(np.float32), ((0, 0), (pad, pad), (pad, pad), (0, 0)))
    rows, columns = ((n - dilation * (kernel - 1) - 1) // stride + 1 for n in x.shape[1:3])
    result = np.zeros((len(x), rows, columns, w.shape[-1]), np.float32)
    for i in range(kernel):
        for j in range(kernel):
            top, left = i * dilation, j * dilation
            part = x[:, top : top + stride * rows : stride, left : left + stride * columns : stride]
            result += part[:, :rows, :columns] @ w[i, j].astype(np.float32)
    return result


@pytest.mark.parametrize(
    ("image", "F", "kernel", "stride", "dilation", "pad", "stages"),
    [
        ((2, 8, 8, 16), 32, 3, 1, 1, 1, 2),
        ((1, 9, 7, 32), 40, 3, 2, 1, 1, 0),
        ((2, 10, 10, 8), 32, 3, 1, 2, 2, 2),
        ((3, 6, 5, 12), 16, 2, 1, 1, 0, 0),
        ((1, 12, 12, 3), 32, 5, 2, 1, 2, 3),
        ((2, 4, 4, 64), 32, 1, 1, 1, 0, 2),
    ],
)
def test_a_convolution(image: tuple, F: int, kernel: int, stride: int, dilation: int, pad: int, stages: int) -> None:
    random = np.random.default_rng(5)
    x = random.integers(-3, 4, image).astype(np.float16)
    w = random.integers(-3, 4, (kernel, kernel, image[3], F)).astype(np.float16)
    wanted = convolved(x, w, stride, dilation, pad)
    pixels, taps = wanted.size // F, kernel * kernel * image[3]
    text = TEXT.format(
        image=image, taps=taps, F=F, pixels=pixels, BK=32, stages=stages, kernel=kernel, stride=stride,
        dilation=dilation, pad=pad,
    )  # fmt: skip
    cell = tilelang_nb.compile_cell(text, {}, target="sim")
    assert cell.ok, cell.to_text()
    found = np.zeros((pixels, F), np.float32)
    cell.namespace["convolution"](x, w.reshape(taps, F), found)
    assert np.array_equal(found, wanted.reshape(pixels, F))


@pytest.mark.parametrize(
    ("call", "code", "said"),
    [
        ("T.im2col(X, tile, 0, 0, 3, 1, 1, 0)", None, ""),
        ("T.c2d_im2col(X, tile, 0, 0, 3, 1, 1, 0)", None, ""),
        ("T.im2col(X, tile, 0, 0, 9, 1, 1, 0)", "TL204", "does not fit"),
        ("T.im2col(X, wide, 0, 0, 3, 1, 1, 0)", "TL205", "from float16 into float32"),
        ("T.im2col(tile, tile, 0, 0, 3, 1, 1, 0)", "TL004", "takes its image from"),
        ("T.im2col(X, X, 0, 0, 3, 1, 1, 0)", "TL004", "takes its tile from"),
        ("T.im2col(Y, tile, 0, 0, 3, 1, 1, 0)", "TL204", "(N, H, W, C)"),
        ("T.im2col(X, tile, 0.5, 0, 3, 1, 1, 0)", "TL004", "the number of the tile"),
        ("T.im2col(X, tile, 0, 0, 3, 0, 1, 0)", "TL004", "stride"),
        ("T.im2col(X, tile[0:4, :], 0, 0, 3, 1, 1, 0)", "TL004", "takes a buffer"),
    ],
)
def test_mistakes(call: str, code: str | None, said: str) -> None:
    text = f"""
@T.prim_func
def wrong(X: T.Tensor((2, 8, 8, 16), "float16"), Y: T.Tensor((16, 16), "float16")):
    with T.Kernel(1, threads=128):
        tile = T.alloc_shared((64, 16), "float16")
        wide = T.alloc_shared((64, 16), "float32")
        {call}
"""
    cell = tilelang_nb.compile_cell(text, {}, target="sim")
    assert [found.code for found in cell.diagnostics if found.severity == "error"] == [code] * (code is not None)
    assert said in cell.to_text()
