"""ldmatrix, stmatrix and mma.sync against NumPy, with fragments built here from the layouts that PTX documents."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from simulator.nodes import (
    address,
    barrier,
    buffer,
    evaluate,
    f32,
    i32,
    launch,
    load,
    local,
    ptx,
    shared,
    store,
    unroll,
    var,
    when,
)
from simulator.running import clean, found, run

BF16, E4M3, E5M2 = ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2
LANE = np.arange(32)
G, Q = LANE // 4, LANE % 4


def registers(name: Any, first: int, count: int) -> list[Any]:
    return [load(name, i32(first + k)) for k in range(count)]


def a_registers(tile: np.ndarray) -> np.ndarray:
    """(registers, 32) of the A operand."""
    rows, depth = tile.shape
    each = max(4 // tile.itemsize, 1)
    result = []
    for r in range(rows // 8 * (depth // (4 * each))):
        half, block = r % (rows // 8), r // (rows // 8)
        columns = (4 * each * block + each * Q)[:, None] + np.arange(each)
        values = np.ascontiguousarray(tile[(G + 8 * half)[:, None], columns])
        result.append(values.view(np.uint64 if tile.itemsize == 8 else np.uint32)[:, 0])
    return np.array(result)


def b_registers(tile: np.ndarray) -> np.ndarray:
    """(registers, 32) of the B operand."""
    depth = tile.shape[0]
    each = max(4 // tile.itemsize, 1)
    result = []
    for r in range(depth // (4 * each)):
        rows = (4 * each * r + each * Q)[:, None] + np.arange(each)
        values = np.ascontiguousarray(tile[rows, G[:, None]])
        result.append(values.view(np.uint64 if tile.itemsize == 8 else np.uint32)[:, 0])
    return np.array(result)


def product_kernel(text: str, na: int, nb: int, nc: int, types: tuple[str, str], warps: int) -> Any:
    """D[register, thread] = C + A @ B from registers that are given as arrays."""
    operand, total = types
    a, b = buffer("A", (na, 32 * warps), operand), buffer("B", (nb, 32 * warps), operand)
    c, d = buffer("C", (nc, 32 * warps), total), buffer("D", (nc, 32 * warps), total)
    ra, rb, rc = local("ra", na, operand), local("rb", nb, operand), local("rc", nc, total)

    def body(t: Any, _: Any) -> list[Any]:
        i = [var("i") for _ in range(4)]
        sources = [*registers(rc, 0, nc), *registers(ra, 0, na), *registers(rb, 0, nb), *registers(rc, 0, nc)]
        return [
            unroll(i[0], na, store(ra, load(a, i[0], t), i[0])),
            unroll(i[1], nb, store(rb, load(b, i[1], t), i[1])),
            unroll(i[2], nc, store(rc, load(c, i[2], t), i[2])),
            evaluate(ptx[f"mma.sync.aligned.{text}"](*sources)),
            unroll(i[3], nc, store(d, load(rc, i[3]), i[3], t)),
        ]

    return launch([a, b, c, d], body, threads=32 * warps, allocate=[ra, rb, rc])


CASES = [
    ("m16n8k16.row.col.f32.f16.f16.f32", (16, 16), np.float16, np.float16, np.float32),
    ("m16n8k8.row.col.f32.f16.f16.f32", (16, 8), np.float16, np.float16, np.float32),
    ("m16n8k16.row.col.f32.bf16.bf16.f32", (16, 16), BF16, BF16, np.float32),
    ("m16n8k8.row.col.f32.tf32.tf32.f32", (16, 8), np.float32, np.float32, np.float32),
    ("m16n8k4.row.col.f32.tf32.tf32.f32", (16, 4), np.float32, np.float32, np.float32),
    ("m16n8k32.row.col.f32.e4m3.e4m3.f32", (16, 32), E4M3, E4M3, np.float32),
    ("m16n8k32.row.col.f32.e5m2.e4m3.f32", (16, 32), E5M2, E4M3, np.float32),
    ("m16n8k32.row.col.s32.s8.s8.s32", (16, 32), np.int8, np.int8, np.int32),
    ("m16n8k16.row.col.s32.u8.s8.s32", (16, 16), np.uint8, np.int8, np.int32),
    ("m16n8k16.row.col.f16.f16.f16.f16", (16, 16), np.float16, np.float16, np.float16),
    ("m8n8k4.row.col.f64.f64.f64.f64", (8, 4), np.float64, np.float64, np.float64),
    ("m16n8k8.row.col.f64.f64.f64.f64", (16, 8), np.float64, np.float64, np.float64),
]


def values(rng: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    if np.dtype(dtype).kind in "iu":
        return rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, shape, endpoint=True).astype(dtype)
    return rng.standard_normal(shape).astype(dtype)


@pytest.mark.parametrize(("text", "shape", "left", "right", "total"), CASES, ids=[case[0] for case in CASES])
def test_mma_multiplies_the_tiles_of_every_warp(text, shape, left, right, total):
    rng, warps = np.random.default_rng(3), 3
    rows, depth = shape
    a = [values(rng, (rows, depth), left) for _ in range(warps)]
    b = [values(rng, (depth, 8), right) for _ in range(warps)]
    c = [values(rng, (rows, 8), total) for _ in range(warps)]
    held = np.uint32 if total in (np.int32, np.float16) else total
    places = [(2 * h + p, G + 8 * h, 2 * Q + p) for h in range(rows // 8) for p in range(2)]
    start = [np.array([tile[row, column] for _, row, column in places]) for tile in c]
    if total is np.float16:  # two in a register
        start = [s.reshape(-1, 2, 32).swapaxes(1, 2).copy().view(np.uint32)[..., 0] for s in start]
    elif total is np.int32:
        start = [s.view(np.uint32) for s in start]
    words = "float64" if total is np.float64 else "uint32"
    arguments = {
        "A": np.concatenate([a_registers(tile) for tile in a], 1),
        "B": np.concatenate([b_registers(tile) for tile in b], 1),
        "C": np.ascontiguousarray(np.concatenate(start, 1)),
    }
    if words == "float64":
        arguments["A"], arguments["B"] = arguments["A"].view(np.float64), arguments["B"].view(np.float64)
    arguments["D"] = np.zeros_like(arguments["C"])
    counts = [len(arguments[name]) for name in "ABC"]
    kernel = product_kernel(text, *counts, (words, np.dtype(held).name), warps)
    result = clean(kernel, arguments)["D"]
    for warp in range(warps):
        mine = result[:, 32 * warp : 32 * warp + 32]
        if total is np.float16:
            mine = np.ascontiguousarray(mine)[..., None].view(np.float16).swapaxes(1, 2).reshape(-1, 32)
        elif total is np.int32:
            mine = np.ascontiguousarray(mine).view(np.int32)
        got = np.zeros((rows, 8), total)
        for register, row, column in places:
            got[row, column] = mine[register]
        wide = np.int64 if total is np.int32 else np.float64
        x, y = a[warp], b[warp]
        if "tf32" in text:
            x, y = ((part.view(np.uint32) & 0xFFFFE000).view(np.float32) for part in (x, y))
        expected = c[warp].astype(wide) + x.astype(wide) @ y.astype(wide)
        if total is np.int32:
            np.testing.assert_array_equal(got, expected.astype(np.int32))
        else:
            limit = {np.float64: 1e-14, np.float16: 4e-3}.get(total, 4e-6)
            np.testing.assert_allclose(got.astype(np.float64), expected, rtol=limit, atol=limit * 8)


def test_products_of_infinities_and_nan_stay_what_they_are():
    a, b = np.ones((16, 16), np.float16), np.ones((16, 8), np.float16)
    a[0, 0], a[1, 0], b[0, 1] = np.inf, np.nan, 0
    kernel = product_kernel("m16n8k16.row.col.f32.f16.f16.f32", 4, 2, 4, ("uint32", "float32"), 1)
    arguments = {"A": a_registers(a), "B": b_registers(b)}
    arguments |= {"C": np.zeros((4, 32), np.float32), "D": np.zeros((4, 32), np.float32)}
    result = clean(kernel, arguments)["D"]
    assert result[0, 0] == np.inf and np.isnan(result[1, 0])  # row 0: inf + 15, inf * 0
    assert np.isnan(result[0, 4]) and result[0, 8] == 16


def matrix_kernel(count: int, trans: bool, pitch: int, fence: bool = True, row_of: Any = None) -> Any:
    """O[k, t] = register k of thread t after ldmatrix from a tile that other threads wrote."""
    a, o = buffer("A", (8 * count, 8), "uint16"), buffer("O", (count, 32), "uint32")
    s, r = shared("s", (8 * count, pitch), "uint16"), local("r", count, "uint32")
    text = f"ldmatrix.sync.aligned.m8n8.x{count}{'.trans' if trans else ''}.shared.b16"

    def body(t: Any, _: Any) -> list[Any]:
        i, j = var("i"), var("j")
        row = (row_of or (lambda t: t % (8 * count)))(t)
        return [
            unroll(i, 2 * count, store(s, load(a, i * 4 + t // 8, t % 8), i * 4 + t // 8, t % 8, line=1)),
            *([barrier()] if fence else []),
            evaluate(ptx[text](*registers(r, 0, count), address(s, row, i32(0))), line=2),
            unroll(j, count, store(o, load(r, j), j, t)),
        ]

    return launch([a, o], body, threads=32, allocate=[s, r])


@pytest.mark.parametrize("trans", [False, True])
@pytest.mark.parametrize("count", [1, 2, 4])
def test_ldmatrix_gives_each_thread_two_neighbours_of_a_row_or_column(count, trans):
    tile = np.arange(64 * count, dtype=np.uint16).reshape(-1, 8)
    result = clean(matrix_kernel(count, trans, 8), {"A": tile, "O": np.zeros((count, 32), np.uint32)})["O"]
    for matrix in range(count):
        part = tile[8 * matrix : 8 * matrix + 8]
        part = part.T if trans else part
        pairs = np.stack([part[G, 2 * Q], part[G, 2 * Q + 1]], 1)
        np.testing.assert_array_equal(result[matrix], pairs.copy().view(np.uint32)[:, 0])


@pytest.mark.parametrize("trans", [False, True])
@pytest.mark.parametrize("count", [1, 2, 4])
def test_stmatrix_undoes_ldmatrix(count, trans):
    a, o = buffer("A", (8 * count, 8), "uint16"), buffer("O", (8 * count, 8), "uint16")
    s, back, r = (
        shared("s", (8 * count, 8), "uint16"),
        shared("z", (8 * count, 8), "uint16"),
        local("r", count, "uint32"),
    )
    form = f".sync.aligned.m8n8.x{count}{'.trans' if trans else ''}.shared.b16"

    def body(t: Any, _: Any) -> list[Any]:
        i, j = var("i"), var("j")
        return [
            unroll(i, 2 * count, store(s, load(a, i * 4 + t // 8, t % 8), i * 4 + t // 8, t % 8)),
            barrier(),
            evaluate(ptx["ldmatrix" + form](*registers(r, 0, count), address(s, t % (8 * count), i32(0)))),
            evaluate(ptx["stmatrix" + form](address(back, t % (8 * count), i32(0)), *registers(r, 0, count))),
            barrier(),
            unroll(j, 2 * count, store(o, load(back, j * 4 + t // 8, t % 8), j * 4 + t // 8, t % 8)),
        ]

    tile = np.arange(64 * count, dtype=np.uint16).reshape(-1, 8)
    kernel = launch([a, o], body, threads=32, allocate=[s, back, r])
    np.testing.assert_array_equal(clean(kernel, {"A": tile, "O": np.zeros_like(tile)})["O"], tile)


def test_ldmatrix_of_rows_that_other_threads_wrote_needs_a_barrier():
    arguments = {"A": np.ones((32, 8), np.uint16), "O": np.zeros((4, 32), np.uint32)}
    assert ("TL401", 2, (1,)) in found(matrix_kernel(4, False, 8, fence=False), arguments)


@pytest.mark.parametrize(("pitch", "wavefronts"), [(8, 4), (16, 8), (32, 16), (64, 32), (72, 4), (24, 4)])
def test_bank_conflicts_of_ldmatrix_are_counted(pitch, wavefronts):
    """A quarter of the warp reads 8 rows: they must lie in different 16-byte columns of a 128-byte line."""
    arguments = {"A": np.ones((32, 8), np.uint16), "O": np.zeros((4, 32), np.uint32)}
    _, report = run(matrix_kernel(4, False, pitch), arguments)
    (row,) = [row for row in report.counters.shared_banks if row.access == "read"]
    assert (row.requests, row.used, row.ideal) == (1, wavefronts, 4)


def test_a_matrix_outside_of_its_buffer_is_found():
    arguments = {"A": np.ones((8, 8), np.uint16), "O": np.zeros((1, 32), np.uint32)}
    kernel = matrix_kernel(1, False, 8, row_of=lambda t: t % 8 + 1)
    assert [code for code, *_ in found(kernel, arguments)] == ["TL402"]


def test_a_register_operand_that_nothing_wrote_is_found():
    o = buffer("O", (4, 32), "float32")
    ra, rb, rc = local("ra", 4, "uint32"), local("rb", 2, "uint32"), local("rc", 4, "float32")

    def body(t: Any, _: Any) -> list[Any]:
        i, j, k = var("i"), var("j"), var("k")
        operands = [*registers(rc, 0, 4), *registers(ra, 0, 4), *registers(rb, 0, 2), *registers(rc, 0, 4)]
        return [
            unroll(i, 4, store(rc, f32(0), i)),
            unroll(j, 3, store(ra, t.astype("uint32"), j)),
            store(rb, t.astype("uint32"), i32(0)),
            store(rb, t.astype("uint32"), i32(1)),
            evaluate(ptx["mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"](*operands), line=5),
            unroll(k, 4, store(o, load(rc, k), k, t)),
        ]

    kernel = launch([o], body, threads=32, allocate=[ra, rb, rc])
    assert ("TL403", 5, ()) in found(kernel, {"O": np.zeros((4, 32), np.float32)})


def test_only_the_warps_that_take_part_multiply():
    c = buffer("C", (64,), "float32")
    ra, rb, rc = local("ra", 4, "uint32"), local("rb", 2, "uint32"), local("rc", 4, "float32")

    def body(t: Any, _: Any) -> list[Any]:
        i, j, k = var("i"), var("j"), var("k")
        ones = i32(0x3C003C00).astype("uint32")
        operands = [*registers(rc, 0, 4), *registers(ra, 0, 4), *registers(rb, 0, 2), *registers(rc, 0, 4)]
        product = evaluate(ptx["mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"](*operands))
        return [
            unroll(i, 4, store(rc, f32(1), i)),
            unroll(j, 4, store(ra, ones, j)),
            unroll(k, 2, store(rb, ones, k)),
            when(t >= 32, product),
            store(c, load(rc, i32(0)), t),
        ]

    kernel = launch([c], body, threads=64, allocate=[ra, rb, rc])
    result = clean(kernel, {"C": np.zeros(64, np.float32)})["C"]
    np.testing.assert_array_equal(result, [1] * 32 + [17] * 32)
