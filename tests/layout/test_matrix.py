"""Layouts of matrix instructions against the tables of the PTX manual, written out per thread."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilelang_nb.layout.matrix import Instruction, accumulator, operand_a, operand_b, same_threads, warp_grid

F16 = Instruction(16, 16, 2, "")
TF32 = Instruction(16, 8, 1, "")
INT8 = Instruction(16, 32, 4, "")
F64 = Instruction(8, 4, 1, "")
INSTRUCTIONS = [F16, TF32, INT8, F64]


def test_accumulator_of_one_instruction_is_as_documented():
    layout = accumulator((16, 8), warp_grid(16, 8, 32, "square", F16), F16)
    owners, registers = layout.owners(), layout.registers()
    for lane in range(32):
        for i in range(4):  # c0..c3 of m16n8
            row = lane // 4 if i < 2 else lane // 4 + 8
            column = lane % 4 * 2 + (i & 1)
            assert (owners[row, column], registers[row, column]) == (lane, i)


def test_a_of_one_f16_instruction_is_as_documented():
    layout = operand_a((16, 16), warp_grid(16, 8, 32, "square", F16), F16, False)
    owners, registers = layout.owners(), layout.registers()
    for lane in range(32):
        for i in range(8):  # a0..a7 of m16n8k16
            row = lane // 4 if i < 2 or 4 <= i < 6 else lane // 4 + 8
            column = lane % 4 * 2 + (i & 1) + (8 if i >= 4 else 0)
            assert (owners[row, column], registers[row, column]) == (lane, i)


def test_b_of_one_int8_instruction_is_as_documented():
    layout = operand_b((32, 8), warp_grid(16, 8, 32, "square", INT8), INT8, False)
    owners, registers = layout.owners(), layout.registers()
    for lane in range(32):
        for i in range(8):  # b0..b7 of m16n8k32
            row = lane % 4 * 4 + (i & 3) + (16 if i >= 4 else 0)
            assert (owners[row, lane // 4], registers[row, lane // 4]) == (lane, i)


@pytest.mark.parametrize("instruction", INSTRUCTIONS)
@settings(deadline=None)
@given(st.data())
def test_every_element_is_held_once_in_each_set_of_copies(instruction, data):
    warps = data.draw(st.integers(1, 16))
    rows = instruction.rows * data.draw(st.integers(1, 6))
    columns, depth = 8 * data.draw(st.integers(1, 6)), instruction.depth * data.draw(st.integers(1, 3))
    policy = data.draw(st.sampled_from(["square", "full_row", "full_col"]))
    grid = warp_grid(rows, columns, 32 * warps, policy, instruction)
    assert warps % (grid.down * grid.across) == 0
    for layout, shape in (
        (accumulator((rows, columns), grid, instruction), (rows, columns)),
        (operand_a((rows, depth), grid, instruction, False), (rows, depth)),
        (operand_a((depth, rows), grid, instruction, True), (depth, rows)),
        (operand_b((depth, columns), grid, instruction, False), (depth, columns)),
        (operand_b((columns, depth), grid, instruction, True), (columns, depth)),
    ):
        assert layout.covers
        assert layout.register_count * layout.threads == rows_times(shape) * layout.replicas
        slots = layout.owners() * layout.register_count + layout.registers()
        assert len(np.unique(slots)) == slots.size


def rows_times(shape: tuple[int, int]) -> int:
    return shape[0] * shape[1]


def test_transposed_operands_are_the_same_map_of_swapped_indices():
    grid = warp_grid(64, 32, 128, "square", F16)
    for operand in (operand_a, operand_b):
        plain, turned = operand((64, 32), grid, F16, False), operand((32, 64), grid, F16, True)
        np.testing.assert_array_equal(plain.owners(), turned.owners().T)
        np.testing.assert_array_equal(plain.registers(), turned.registers().T)


@pytest.mark.parametrize(
    ("policy", "threads", "expected"),
    [
        ("full_row", 128, (4, 1)),
        ("full_col", 128, (1, 4)),
        ("square", 128, (2, 2)),
        ("square", 256, (2, 4)),
        ("square", 32, (1, 1)),
        ("full_row", 512, (8, 2)),
    ],
)
def test_the_policy_says_how_warps_divide_the_tile(policy, threads, expected):
    grid = warp_grid(128, 256 if threads == 256 else 128, threads, policy, F16)
    assert (grid.down, grid.across) == expected


def test_rows_of_a_tile_do_not_depend_on_its_columns_when_all_warps_divide_the_rows():
    wide = accumulator((128, 128), warp_grid(128, 128, 256, "full_row", F16), F16)
    narrow = accumulator((128, 64), warp_grid(128, 64, 256, "full_row", F16), F16)
    assert wide.project([0]) == narrow.project([0])


def test_scores_feed_the_next_product_from_their_registers():
    grid = warp_grid(128, 128, 256, "full_row", F16)
    scores = accumulator((128, 128), grid, F16)
    assert same_threads(scores, operand_a((128, 128), grid, F16, False))
    assert not same_threads(scores, operand_a((128, 128), grid, INT8, False))


def test_tiles_of_part_of_an_instruction_have_no_grid():
    assert warp_grid(24, 8, 32, "square", F16) is None
    assert warp_grid(16, 12, 32, "square", F16) is None
    assert warp_grid(16, 8, 48, "square", F16) is None
