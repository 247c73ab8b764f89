"""Random ways to index one tile: split and permuted loop dimensions, parts, broadcasts, loops larger than the tile."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from lowering import lockstep, thread_machine
from lowering.programs import box, buffer, copy, fragment, load, parallel, program, serial, shared, store, tile
from tvm import tirx as tir

from tilelang_nb.lowering.pipeline import lower


class Generator:
    """A tile of (r1 * r2, c1 * c2) elements; every loop walks it by some order and grouping of the four factors."""

    def __init__(self, seed: int):
        self.random = random.Random(seed)
        choice = self.random.choice
        self.rows = [choice([1, 2, 3, 4, 8]), choice([1, 2, 4, 5])]
        self.columns = [choice([1, 2, 3, 8]), choice([1, 2, 4, 6])]
        self.shape = (self.rows[0] * self.rows[1], self.columns[0] * self.columns[1])
        self.threads = choice([1, 6, 12, 24, 32, 64, 96, 128])
        self.A, self.B = buffer("A", self.shape, "int32"), buffer("B", self.shape, "int32")
        self.f, self.g = fragment("f", self.shape, "int32"), fragment("g", self.shape, "int32")
        self.s = shared("s", self.shape, "int32")
        self.r, self.c = fragment("r", self.shape[:1], "int32"), fragment("c", self.shape[1:], "int32")

    def program(self) -> Any:
        local = [self.f, self.g, self.s, self.r, self.c]
        return program([self.A, self.B], lambda _bx, _tx: self.statements(), threads=self.threads, local=local)

    def statements(self) -> list[Any]:
        one = tir.const(1, "int32")
        start = [
            copy(self.A, self.f),
            parallel(self.shape, lambda i, j: store(self.g, i - j, i, j)),
            parallel(self.shape[:1], lambda i: store(self.r, i + one, i)),
            parallel(self.shape[1:], lambda j: store(self.c, j * 2, j)),
            copy(self.A, self.s),
        ]
        steps = [self.split, self.split, self.split, self.part, self.larger, self.turns, self.reduced, self.blocks]
        middle = [self.random.choice(steps)() for _ in range(self.random.randint(1, 5))]
        end = parallel(
            self.shape, lambda i, j: store(self.B, load(self.g, i, j) + load(self.r, i) + load(self.c, j), i, j)
        )
        return [*start, *middle, copy(self.f, self.s), end, self.add(self.s, self.B)]

    def add(self, source: Any, target: Any) -> Any:
        return parallel(self.shape, lambda i, j: store(target, load(target, i, j) + load(source, i, j), i, j))

    def pair(self) -> tuple[Any, Any]:
        return tuple(self.random.sample([self.f, self.g, self.s], 2))

    def split(self) -> Any:
        """All four factors as loops in any order."""
        order = self.random.sample(range(4), 4)
        extents = [*self.rows, *self.columns]
        source, target = self.pair()
        extra = self.random.choice([self.r, self.c, None])

        def body(*loops: Any) -> Any:
            by = dict(zip(order, loops))
            i, j = by[0] * self.rows[1] + by[1], by[2] * self.columns[1] + by[3]
            value = load(source, i, j) + load(target, i, j)
            if extra is not None:
                value = value + load(extra, i if extra is self.r else j)
            return store(target, value, i, j)

        return parallel([extents[factor] for factor in order], body)

    def part(self) -> Any:
        """Every second block of rows, from an offset on."""
        source, target = self.pair()
        first = self.random.randrange(self.rows[0])
        base = first * self.rows[1]
        return parallel(
            [self.rows[1], self.shape[1]],
            lambda i, j: store(target, load(source, i + base, j) - load(target, i + base, j), i + base, j),
        )

    def larger(self) -> Any:
        """A loop over more than the tile, with a condition."""
        source, target = self.pair()
        rows, columns = self.shape[0] + self.random.randint(0, 9), self.shape[1] + self.random.randint(0, 5)

        def body(i: Any, j: Any) -> Any:
            inside = tir.And(i < self.shape[0], j < self.shape[1])
            return tir.IfThenElse(inside, store(target, load(source, i, j) + load(target, i, j) * 2, i, j), None)

        return parallel([rows, columns], body)

    def turns(self) -> Any:
        """A serial loop picks the block, a parallel one walks it."""
        source, target = self.pair()

        def turn(k: Any) -> Any:
            def body(i: Any, j: Any) -> Any:
                row = k * self.rows[1] + i
                return store(target, load(source, row, j) + load(target, row, j) + k, row, j)

            return parallel([self.rows[1], self.shape[1]], body)

        return serial(self.rows[0], turn)

    def reduced(self) -> Any:
        dim = self.random.randrange(2)
        source, target = self.random.choice([self.f, self.g]), self.c if dim == 0 else self.r
        return tile("reduce", self.random.choice(["sum", "max", "min"]), box(source), box(target), dim, True, True)

    def blocks(self) -> Any:
        """A flat loop: division and remainder."""
        source, target = self.pair()
        width = self.shape[1]

        def body(t: Any) -> Any:
            i, j = tir.floordiv(t, width), tir.floormod(t, width)
            return store(target, load(source, i, j) - load(target, i, j), i, j)

        return parallel([self.shape[0] * width], body)

    def arrays(self) -> dict[str, np.ndarray]:
        numbers = np.random.default_rng(5)
        return {
            "A": numbers.integers(-9, 9, self.shape).astype(np.int32),
            "B": np.zeros(self.shape, np.int32),
        }


def check(seed: int) -> None:
    generator = Generator(seed)
    tile_program = generator.program()
    lowered = lower(tile_program)
    errors = [str(found) for found in lowered.diagnostics if found.severity == "error"]
    assert not errors, errors
    expected, given = generator.arrays(), generator.arrays()
    lockstep.run(tile_program.function, single=True, **expected)
    assert not thread_machine.run(lowered.launches[0], seed=seed, **given)
    np.testing.assert_array_equal(given["B"], expected["B"])


@pytest.mark.parametrize("seed", range(40))
def test_threads_give_what_the_text_says(seed):
    check(seed)
