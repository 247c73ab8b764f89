"""Loops of random statements give the same for any number of stages, and the simulated device finds no fault."""

from __future__ import annotations

import random

import numpy as np
import pytest
from lowering.products import compiled

ROWS, WIDTH = 6, 32
TILES = ("s", "t", "u")
ARRAYS = ("A", "B")
HARMLESS_ROWS = ("i", "i", f"{ROWS - 1} - i", f"(i * 5) % {ROWS}", "I[i]", "r")
EVERY = f"for j in T.Parallel({WIDTH}):"


def copy_of(draw: random.Random, tile: str) -> list[str]:
    return [f"T.copy({draw.choice(ARRAYS)}[{draw.choice(HARMLESS_ROWS)}, :], {tile})"]


def use_of(draw: random.Random, tile: str) -> list[str]:
    lines = [EVERY, f"    C[i, j] += {tile}[{WIDTH - 1} - j] * {draw.randint(1, 3)}"]
    return [f"if i % 2 == {draw.randint(0, 1)}:", *("    " + line for line in lines)] if draw.random() < 0.2 else lines


def hazard(draw: random.Random) -> list[str]:
    """A statement that may keep a copy from running ahead."""
    tile, array = draw.choice(TILES), draw.choice(ARRAYS)
    row = draw.choice([*HARMLESS_ROWS, "v", f"(i + 1) % {ROWS}"])
    found = [
        [f"T.copy({array}[{row}, :], {tile})"],
        [EVERY, f"    C[i, j] -= {tile}[j]"],
        [EVERY, f"    {tile}[j] = {tile}[j] + 1"],
        [EVERY, f"    {array}[{row}, j] = {tile}[{WIDTH - 1} - j]"],
        [EVERY, f"    T.atomic_add({array}[{row}, j], 1.0)"],
        [f"T.copy({tile}, {array}[{row}, :])"],
        [f"v = (v + {draw.randint(1, 3)}) % {ROWS}", f"r = (i * {draw.randint(1, 5)} + v) % {ROWS}"],
        [f"I[(i + {draw.randint(0, 2)}) % {ROWS}] = {ROWS - 1} - i"],
        [f"if i % 2 == {draw.randint(0, 1)}:", f"    T.copy({array}[{row}, :], {tile})"],
    ]
    return draw.choice(found)


def conditional(draw: random.Random) -> list[str]:
    """A copy and its use under one condition, in this order more often than not."""
    tile, condition = draw.choice(TILES), draw.choice(["i % 2 == 0", "I[i] % 2 == 1", "v % 2 == 0", "n > 3"])
    parts = [copy_of(draw, tile), use_of(draw, tile)]
    if draw.random() < 0.2:
        parts.reverse()
    if draw.random() < 0.3:
        parts.insert(draw.randint(0, len(parts)), hazard(draw))
    return [f"if {condition}:", *("    " + line for part in parts for line in part)]


def text(seed: int) -> str:
    draw = random.Random(seed)
    loops = []
    for _ in range(draw.choice([1, 1, 2])):
        tiles = draw.sample(TILES, draw.randint(1, 3))
        parts = [copy_of(draw, tile) for tile in tiles]
        for tile in tiles:
            parts.insert(draw.randint(parts.index(parts[tiles.index(tile)]) + 1, len(parts)), use_of(draw, tile))
        for _ in range(draw.choice([0, 0, 1, 1, 2])):
            parts.insert(draw.randint(0, len(parts)), hazard(draw))
        if draw.random() < 0.4:
            parts.insert(draw.randint(0, len(parts)), conditional(draw))
        start = draw.choice(["0, ", "1, ", ""])
        head = f"for i in T.Pipelined({start}n, num_stages=stages):"
        loops.append([head, "    r = i", *("    " + line for part in parts for line in part)])
    if draw.random() < 0.2:
        loops.append([EVERY, f"    C[0, j] += {draw.choice(TILES)}[j]"])
    lines = [" " * 8 + line for loop in loops for line in loop]
    return "\n".join(
        [
            "@T.prim_func",
            f'def k(A: T.Tensor(({ROWS}, {WIDTH}), "float32"), B: T.Tensor(({ROWS}, {WIDTH}), "float32"),',
            f'      I: T.Tensor(({ROWS},), "int32"), C: T.Tensor(({ROWS}, {WIDTH}), "float32"), n: T.int32):',
            "    with T.Kernel(1, threads=32) as bx:",
            *[f'        {tile} = T.alloc_shared(({WIDTH},), "float32")' for tile in TILES],
            '        v = T.alloc_var("int32", init=0)',
            *[f"        T.clear({tile})" for tile in TILES if draw.random() < 0.15],
            *lines,
        ]
    )


def results(source: str, stages: int, turns: int) -> list[np.ndarray]:
    kernel = compiled(source, stages=stages)
    rng = np.random.default_rng(0)
    arrays = [rng.integers(-4, 5, (ROWS, WIDTH)).astype(np.float32) for _ in range(2)]
    table, total = rng.integers(0, ROWS, ROWS).astype(np.int32), np.zeros((ROWS, WIDTH), np.float32)
    kernel(*arrays, table, total, turns)
    unexpected = [finding for finding in kernel.findings if finding.code != "TL403"]
    assert not unexpected, "\n".join([source, *map(str, unexpected)])
    return [*arrays, total]


@pytest.mark.filterwarnings("ignore::tilelang_nb.runtime.kernel.SimulatorFindings")
@pytest.mark.parametrize("seed", range(40))
def test_a_random_loop_does_not_depend_on_its_stages(seed):
    source = text(seed)
    for turns in (ROWS, 2):
        expected = results(source, 0, turns)
        for stages in (2, 3, 4):
            for got, wanted in zip(results(source, stages, turns), expected, strict=True):
                np.testing.assert_array_equal(got, wanted, err_msg=source)
