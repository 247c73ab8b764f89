"""Swizzles move chunks of 16 bytes inside their rows, and keep 8 rows that are read together in different banks."""

from __future__ import annotations

import numpy as np
import pytest

from tilelang_nb.layout.swizzle import swizzle_for


@pytest.mark.parametrize("itemsize", [1, 2, 4, 8])
@pytest.mark.parametrize("row_bytes", [16, 32, 48, 64, 80, 96, 128, 160, 192, 256, 384, 512])
def test_eight_rows_of_one_column_lie_in_different_banks(row_bytes, itemsize):
    columns = row_bytes // itemsize
    swizzle = swizzle_for(columns, itemsize)
    rows = np.arange(32)
    for first in range(0, columns, 16 // itemsize):
        byte = rows * row_bytes + swizzle.column(rows, np.full(32, first)) * itemsize
        for eight in byte.reshape(-1, 8):
            assert len(set(eight // 16 % 8)) == 8


@pytest.mark.parametrize("itemsize", [1, 2, 4, 8])
@pytest.mark.parametrize("row_bytes", [16, 32, 96, 128, 256])
def test_a_swizzle_keeps_every_row_and_the_order_inside_a_chunk(row_bytes, itemsize):
    columns, each = row_bytes // itemsize, 16 // itemsize
    swizzle = swizzle_for(columns, itemsize)
    for row in range(16):
        moved = swizzle.column(row, np.arange(columns))
        assert sorted(moved) == list(range(columns))
        assert (moved.reshape(-1, each) - moved.reshape(-1, each)[:, :1] == np.arange(each)).all()


@pytest.mark.parametrize(("row_bytes", "bits"), [(128, 7), (64, 3), (32, 1)])
def test_rows_of_one_line_and_less_are_swizzled_as_tma_does(row_bytes, bits):
    """TMA takes the byte address: bits 4 to 6 are changed by bits 7 to 9, as many as the swizzle has."""
    swizzle = swizzle_for(row_bytes, 1)
    for row in range(32):
        for column in range(0, row_bytes, 16):
            address = row * row_bytes + column
            assert row * row_bytes + swizzle.column(row, column) == address ^ ((address >> 7 & bits) << 4)


def test_rows_of_part_of_a_chunk_have_no_swizzle():
    assert swizzle_for(12, 2) is None
