"""Counters: operations, shared-memory wavefronts, global sectors."""

from __future__ import annotations

import numpy as np
import pytest
from simulator.nodes import *
from simulator.running import run

X, Y = buffer("X", (4096,), "float32"), buffer("Y", (4096,), "float32")


def counters(body, threads=32, blocks=4, allocate=()):
    arguments = {"X": np.ones(4096, np.float32), "Y": np.zeros(4096, np.float32)}
    _, report = run(launch([X, Y], body, threads=threads, blocks=blocks, allocate=allocate), arguments)
    return report.counters


@pytest.mark.parametrize(("stride", "wavefronts"), [(32, 32), (33, 1), (1, 1), (2, 2), (16, 16)])
def test_bank_conflicts_of_a_row_stride(stride, wavefronts):
    square = shared("square", 32 * 33, "float32")
    rows = counters(lambda t, b: [store(square, load(X, t), t * stride, line=3)], allocate=[square]).shared_banks
    (row,) = rows
    assert (row.line, row.buffer, row.access) == (3, "square", "write")
    assert (row.requests, row.used, row.ideal) == (4, 4 * wavefronts, 4)


def test_a_broadcast_is_one_wavefront():
    tile = shared("tile", 32, "float32")

    def body(t, b):
        return [
            store(tile, load(X, t), t),
            barrier(),
            store(Y, load(tile, 5) + load(tile, tir.floordiv(t, 8)), b * 32 + t, line=4),
        ]

    row = next(row for row in counters(body, allocate=[tile]).shared_banks if row.access == "read")
    assert (row.requests, row.used, row.ideal) == (8, 8, 8)


@pytest.mark.parametrize(("stride", "sectors"), [(1, 4), (2, 8), (8, 32), (32, 32)])
def test_sectors_of_a_stride(stride, sectors):
    row = next(
        row for row in counters(lambda t, b: [store(Y, load(X, t * stride), t * stride, line=2)]).global_sectors
        if row.access == "read"
    )  # fmt: skip
    assert (row.line, row.requests, row.used, row.ideal) == (2, 4, 4 * sectors, 16)


def test_a_vector_access_is_one_request():
    v = var("v")

    def body(t, b):
        g = b * 128 + t * 4 + v
        return [vector(v, 4, store(Y, load(X, g), g, line=2))]

    for row in counters(body).global_sectors:
        assert (row.requests, row.used, row.ideal) == (4, 64, 64)


def test_an_unrolled_access_is_several_requests():
    v = var("v")

    def body(t, b):
        g = b * 128 + t * 4 + v
        return [unroll(v, 4, store(Y, load(X, g), g, line=2))]

    for row in counters(body).global_sectors:
        assert (row.requests, row.used) == (16, 16 * 16)


def test_lanes_that_take_no_part_do_not_count():
    def body(t, b):
        return [when(t < 8, store(Y, load(X, t), b * 32 + t, line=2))]

    for row in counters(body).global_sectors:
        assert (row.requests, row.used, row.ideal) == (4, 4, 4)


def test_operations_by_kind():
    k = var("k")
    acc = local("acc", 4, "float32")

    def body(t, b):
        product = load(acc, k) + load(X, t) * f32(2)
        return [
            unroll(k, 4, store(acc, f32(0), k)),
            loop(k, 4, store(acc, product, k)),
            store(Y, tir.exp(load(acc, 0)) * load(acc, 1), b * 32 + t),
            barrier(),
        ]

    operations = counters(body, allocate=[acc]).operations
    lanes = 128
    assert operations["float32 fma"] == 4 * lanes
    assert operations["float32 mul"] == lanes and operations["float32 exp"] == lanes
    assert operations["global store"] == lanes and operations["barrier"] == 4


def test_operations_of_a_condition_count_the_lanes_that_run_them():
    def body(t, b):
        return [when(t < 10, store(Y, load(X, t) + f32(1), b * 32 + t))]

    assert counters(body).operations["float32 add"] == 40


def test_shuffles_and_atomics_are_counted():
    def body(t, b):
        return [
            store(Y, shuffle("_xor", "float32", load(X, t), i32(1)), b * 32 + t),
            evaluate(extern("float32", "tl_atomic_add", address(Y, b * 32 + t), f32(1))),
        ]

    operations = counters(body).operations
    assert operations["shuffle"] == 128 and operations["global atomic"] == 128


def test_the_lines_can_be_read():
    text = "\n".join(counters(lambda t, b: [store(Y, load(X, t) + f32(1), b * 32 + t, line=2)]).lines())
    assert "float32 add: 128" in text
    assert "global memory, line 2, read X: 16 sectors in 4 requests, 1.00 per ideal sector" in text
