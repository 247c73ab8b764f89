"""Loops of random statements give the same for any number of stages, and the simulated device finds no fault."""

from __future__ import annotations

import random

import numpy as np
import pytest
from lowering.products import compiled

ROWS, WIDTH = 6, 32
TILES = ("s", "t")
ARRAYS = ("A", "B")
ROW_NUMBERS = ("i", f"{ROWS - 1} - i", f"(i * 5) % {ROWS}", "I[i]", "v", "r")


def statement(draw: random.Random, depth: int = 0) -> list[str]:
    kind = draw.choice(["copy"] * 5 + ["use"] * 5 + ["update", "store", "atomic", "move", "count", "row", "if"])
    tile, array, row = draw.choice(TILES), draw.choice(ARRAYS), draw.choice(ROW_NUMBERS)
    every = f"for j in T.Parallel({WIDTH}):"
    mirrored = f"{tile}[{WIDTH - 1} - j]"
    if kind == "copy":
        return [f"T.copy({array}[{row}, :], {tile})"]
    if kind == "use":
        return [every, f"    C[i, j] += {mirrored}"]
    if kind == "update":
        return [every, f"    {tile}[j] = {tile}[j] + 1"]
    if kind == "store":
        return [every, f"    {array}[{row}, j] = {mirrored}"]
    if kind == "atomic":
        return [every, f"    T.atomic_add({array}[{row}, j], 1.0)"]
    if kind == "move":
        return [f"T.copy(s, {array}[{row}, :])"]
    if kind == "count":
        return [f"v = (v + {draw.randint(1, 3)}) % {ROWS}"]
    if kind == "row":
        return [f"r = (i * {draw.randint(1, 5)} + v) % {ROWS}"]
    if depth:
        return ["pass"]
    inner = [line for _ in range(draw.randint(1, 2)) for line in statement(draw, depth + 1)]
    return [f"if i % 2 == {draw.randint(0, 1)}:", *("    " + line for line in inner)]


def text(seed: int) -> str:
    draw = random.Random(seed)
    loops = []
    for _ in range(draw.choice([1, 1, 2])):
        body = [line for _ in range(draw.randint(2, 6)) for line in statement(draw)]
        loops.append(
            [
                f"for i in T.Pipelined({draw.choice(['0, ', '1, ', ''])}n, num_stages=stages):",
                "    r = i",
                *map("    {}".format, body),
            ]
        )
    lines = [" " * 8 + line for loop in loops for line in loop]
    return "\n".join(
        [
            "@T.prim_func",
            f'def k(A: T.Tensor(({ROWS}, {WIDTH}), "float32"), B: T.Tensor(({ROWS}, {WIDTH}), "float32"),',
            f'      I: T.Tensor(({ROWS},), "int32"), C: T.Tensor(({ROWS}, {WIDTH}), "float32"), n: T.int32):',
            "    with T.Kernel(1, threads=32) as bx:",
            *[f'        {tile} = T.alloc_shared(({WIDTH},), "float32")' for tile in TILES],
            '        v = T.alloc_var("int32", init=0)',
            *[f"        T.clear({tile})" for tile in TILES if draw.random() < 0.4],
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
