"""Random index arithmetic in parallel loops: over the edge of global buffers, flattened tiles, conditions, loops."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from lowering import lockstep, thread_machine
from lowering.programs import box, buffer, copy, fragment, load, parallel, program, serial, shared, store
from tvm import tirx as tir

from tilelang_nb.lowering.pipeline import lower

THREADS = [1, 6, 12, 32, 64, 96, 128]


class Generator:
    """Loops over (rows, columns) or their product, tiles of both shapes and a global matrix that does not fit them."""

    def __init__(self, seed: int):
        self.random = random.Random(seed)
        choice = self.random.choice
        self.rows, self.columns = choice([1, 2, 5, 8, 13, 16]), choice([1, 3, 4, 8, 10, 32, 33])
        self.threads = choice(THREADS)
        self.dtype = choice(["float32", "int32", "float16", "int8"])
        self.grid = (choice([1, 2, 3]), choice([1, 2]))
        self.height = self.rows * self.grid[1] - self.random.randint(0, 3) * (self.rows > 3)
        self.width = max(1, self.columns * self.grid[0] - choice([0, 0, 1, 2, 4]))
        matrix = (self.height, self.width)
        size = self.rows * self.columns
        self.A, self.B = buffer("A", matrix, self.dtype), buffer("B", matrix, self.dtype)
        self.index = buffer("index", (size,), "int32")
        self.n = tir.Var("n", "int32")
        self.two = choice([fragment, shared])("two", (self.rows, self.columns), self.dtype)
        self.flat = choice([fragment, shared])("flat", (size,), self.dtype)
        self.row = fragment("row", (self.rows,), self.dtype)

    def number(self, value: int) -> Any:
        return tir.const(float(value) if self.dtype.startswith("float") else value, self.dtype)

    def program(self) -> Any:
        return program(
            [self.A, self.B, self.index, self.n],
            self.body,
            threads=self.threads,
            grid=self.grid,
            local=[self.two, self.flat, self.row],
        )

    def body(self, bx: Any, by: Any, _tx: Any) -> list[Any]:
        x, y = bx * self.columns, by * self.rows
        whole = [tir.const(self.rows, "int32"), tir.const(self.columns, "int32")]
        start = [
            copy(box(self.A, [y, x], whole), self.two),
            parallel([self.rows * self.columns], lambda t: store(self.flat, self.number(1), t)),
            parallel([self.rows], lambda i: store(self.row, tir.Cast(self.dtype, i), i)),
        ]
        steps = [
            self.edge,
            self.flatten,
            self.unflatten,
            self.gather,
            self.branches,
            self.inner,
            self.dynamic,
            self.scaled,
        ]
        middle = [self.random.choice(steps)(y, x) for _ in range(self.random.randint(1, 4))]
        return [*start, *middle, copy(self.two, box(self.B, [y, x], whole)), self.last(y, x)]

    # Each step writes every element it writes once, and reads none that another iteration writes.

    def edge(self, y: Any, x: Any) -> Any:
        down, right = self.random.randint(-2, 2), self.random.randint(-2, 2)
        return parallel(
            [self.rows, self.columns],
            lambda i, j: store(
                self.two, tir.Max(load(self.two, i, j), load(self.A, y + i + down, x + j + right)), i, j
            ),
        )

    def flatten(self, y: Any, x: Any) -> Any:
        return parallel(
            [self.rows, self.columns],
            lambda i, j: store(self.flat, tir.Add(load(self.two, i, j), load(self.row, i)), i * self.columns + j),
        )

    def unflatten(self, y: Any, x: Any) -> Any:
        return parallel(
            [self.rows * self.columns],
            lambda t: store(
                self.two,
                tir.Min(load(self.flat, t), self.number(7)),
                tir.floordiv(t, self.columns),
                tir.floormod(t, self.columns),
            ),
        )

    def gather(self, y: Any, x: Any) -> Any:
        return parallel(
            [self.rows, self.columns],
            lambda i, j: store(self.two, load(self.flat, load(self.index, i * self.columns + j)), i, j),
        )

    def branches(self, y: Any, x: Any) -> Any:
        limit = self.random.randint(0, 12)

        def body(i: Any, j: Any) -> Any:
            value = tir.Var("value", self.dtype)
            return tir.SeqStmt(
                [
                    tir.Bind(value, load(self.A, y + i, x + j)),
                    tir.IfThenElse(
                        tir.Or(i + j < limit, value > self.number(2)),
                        store(self.two, tir.Add(value, self.number(1)), i, j),
                        tir.IfThenElse(j < limit, store(self.two, load(self.row, i), i, j), tir.Continue()),
                    ),
                    store(self.flat, value, i * self.columns + j),
                ]
            )

        return parallel([self.rows, self.columns], body)

    def inner(self, y: Any, x: Any) -> Any:
        """A serial loop around a parallel one, with a tile row that the turn picks; and one inside."""

        def turn(k: Any) -> Any:
            return parallel([self.columns], lambda j: store(self.two, tir.Cast(self.dtype, j - k), k, j))

        def inside(i: Any) -> Any:
            return serial(
                self.columns, lambda k: store(self.row, tir.Max(load(self.row, i), load(self.A, y + i, x + k)), i)
            )

        return self.random.choice([serial(self.rows, turn), parallel([self.rows], inside)])

    def dynamic(self, y: Any, x: Any) -> Any:
        return parallel([self.n], lambda t: store(self.B, self.number(3), y, x + t * 0 + t))

    def scaled(self, y: Any, x: Any) -> Any:
        half = max(1, self.columns // 2)
        offset = self.random.choice([0, self.columns - half])
        return parallel(
            [self.rows, half],
            lambda i, j: store(self.two, tir.Add(load(self.two, i, j + offset), self.number(1)), i, j + offset),
        )

    def last(self, y: Any, x: Any) -> Any:
        return parallel(
            [self.rows, self.columns],
            lambda i, j: tir.IfThenElse(
                j < 2,
                store(self.B, tir.Add(load(self.row, i), load(self.flat, i * self.columns + j)), y + i, x + j),
                None,
            ),
        )

    def arguments(self) -> dict[str, Any]:
        numbers = np.random.default_rng(3)
        dtype, size = np.dtype(self.dtype), self.rows * self.columns
        return {
            "A": numbers.integers(-5, 6, (self.height, self.width)).astype(dtype),
            "B": np.zeros((self.height, self.width), dtype),
            "index": numbers.integers(0, size, size).astype(np.int32),
            "n": min(self.columns, 3),
        }


def check(seed: int) -> None:
    generator = Generator(seed)
    tile_program = generator.program()
    lowered = lower(tile_program)
    errors = [str(found) for found in lowered.diagnostics if found.severity == "error"]
    assert not errors, errors
    expected, given = generator.arguments(), generator.arguments()
    lockstep.run(tile_program.function, single=True, **expected)
    races = thread_machine.run(lowered.launches[0], seed=seed, **given)
    assert not races
    for name in ("A", "B"):
        np.testing.assert_array_equal(given[name], expected[name], err_msg=name)


@pytest.mark.parametrize("seed", range(25))
def test_threads_give_what_the_text_says(seed):
    check(seed)
