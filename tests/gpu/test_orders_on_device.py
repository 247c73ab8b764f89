"""Blocks of a GPU hand over data by atomic operations with an order, in the texts of the tests on the simulated device."""

from __future__ import annotations

import numpy as np
import pytest
from simulator.test_block_order import HEAD, LAST_BLOCK, LOCK, TOGETHER

import tilelang_nb


def compiled(body: str, blocks: int, threads: int):
    lines = "\n".join("        " + line for line in body.strip("\n").splitlines())
    cell = tilelang_nb.compile_cell(HEAD.format(blocks=blocks, threads=threads, body=lines), {}, target="cuda")
    assert cell.ok, cell.to_text()
    return cell.namespace["k"]


def test_the_last_block_adds_up_what_all_have_stored() -> None:
    kernel = compiled(LAST_BLOCK.format(store=TOGETHER, order='"acq_rel"'), 4, 64)
    for _ in range(200):
        p, f, y = (np.zeros(size, np.int32) for size in (64, 4, 64))
        kernel(p, f, y)
        assert y[0] == 10 and f[0] == 4


@pytest.mark.parametrize("turn", ["b", "63 - b"])
def test_blocks_take_turns(turn: str) -> None:
    kernel = compiled(
        f"""
while T.atomic_load(F[0], memory_order="acquire") != {turn}:
    pass
Y[b] = P[0]
P[0] = P[0] + 1
T.atomic_store(F[0], {turn} + 1, memory_order="release")
""",
        64,
        1,
    )
    for _ in range(20):
        p, f, y = (np.zeros(size, np.int32) for size in (64, 4, 64))
        kernel(p, f, y)
        assert p[0] == 64
        np.testing.assert_array_equal(y, np.arange(64) if turn == "b" else np.arange(64)[::-1])


def test_a_lock_keeps_blocks_apart() -> None:
    kernel = compiled(LOCK.format(order='"acquire"'), 64, 1)
    for _ in range(20):
        p, f, y = (np.zeros(size, np.int32) for size in (64, 4, 64))
        kernel(p, f, y)
        assert p[0] == 64 * 65 // 2 and f[0] == 0
