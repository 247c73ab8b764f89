"""Random tile programs give on threads what they give one iteration after the other, and without races."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from lowering import lockstep, thread_machine
from lowering.programs import box, buffer, copy, fragment, load, parallel, program, serial, shared, store, tile
from tvm import tirx as tir

from tilelang_nb.lowering.pipeline import lower

SHAPES = [(61,), (100,), (128,), (5,), (13, 10), (8, 32), (16, 16), (7, 3), (4, 4, 6), (1, 40), (32, 1)]
THREADS = [1, 6, 12, 32, 48, 96, 128]


class Generator:
    """A random program over tiles of one shape, rows and columns of it, and global buffers of that and other shapes."""

    def __init__(self, seed: int):
        self.random = random.Random(seed)
        self.shape = self.random.choice(SHAPES)
        self.threads = self.random.choice(THREADS)
        self.dtype = self.random.choice(["float32", "int32"])
        pick = self.random.randint
        self.tiles = [fragment(f"f{k}", self.shape, self.dtype) for k in range(pick(1, 3))]
        self.shared = [shared(f"s{k}", self.shape, self.dtype) for k in range(pick(0, 2))]
        self.vectors = {dim: fragment(f"v{dim}", (extent,), self.dtype) for dim, extent in enumerate(self.shape)}
        self.inputs = [buffer(f"A{k}", self.shape, self.dtype) for k in range(2)]
        self.outputs = [buffer("B", self.shape, self.dtype), buffer("R", (max(self.shape),), self.dtype)]
        self.written: set[str] = set()

    def number(self, value: int) -> Any:
        return tir.const(float(value) if self.dtype == "float32" else value, self.dtype)

    def statements(self) -> list[Any]:
        """Fill everything first; then a few random statements; then write results out."""
        start = [self.assign_vector(dim, one, 0) for dim, one in self.vectors.items()]
        for one in self.tiles + self.shared:
            start.append(copy(self.random.choice(self.inputs), one))
            self.written.add(one.name)
        middle = [self.statement(2) for _ in range(self.random.randint(2, 7))]
        dim = self.random.randrange(len(self.shape))
        target, row = self.outputs
        end = [
            copy(self.random.choice(self.tiles), target),
            parallel([self.shape[dim]], lambda i: store(row, load(self.vectors[dim], i), i)),
        ]
        return [*start, *middle, *end]

    def statement(self, depth: int) -> Any:
        kind = self.random.choices(
            ["assign", "vector", "copy", "serial", "reduce", "conditional", "part"], [5, 2, 2, 1, 2, 2, 2]
        )[0]
        if kind == "assign":
            return self.assign(self.random.choice(self.tiles + self.shared), depth)
        if kind == "vector":
            dim = self.random.randrange(len(self.shape))
            return self.assign_vector(dim, self.vectors[dim], depth)
        if kind == "copy":
            source, target = (self.random.choice(self.tiles + self.shared) for _ in range(2))
            return self.assign(target, 1) if source is target else copy(source, target)
        if kind == "serial":
            return serial(
                self.random.randint(1, 3), lambda k: [self.statement(depth), self.assign(self.tiles[0], 1, k)]
            )
        if kind == "reduce" and len(self.shape) == 2:
            dim = self.random.randrange(2)
            operation, result = self.random.choice(["max", "min", "sum"]), self.vectors[1 - dim]
            return tile("reduce", operation, box(self.tiles[-1]), box(result), dim, True, True)
        if kind == "part":
            return self.assign_part(self.random.choice(self.tiles))
        return self.assign(self.random.choice(self.tiles + self.shared), depth, guarded=True)

    def assign(self, target: Any, depth: int, turn: Any = None, guarded: bool = False) -> Any:
        def body(*loops: Any) -> Any:
            value = self.value(loops, depth, target)
            if turn is not None:
                value = tir.Add(value, tir.Cast(self.dtype, turn))
            statement = store(target, value, *loops)
            if guarded:
                limit = self.random.randint(0, 20)
                return tir.IfThenElse(sum(loops[1:], loops[0]) < limit, statement, None)
            return statement

        return parallel(self.shape, body)

    def assign_part(self, target: Any) -> Any:
        """Only some of the elements, from an offset on."""
        begin = [self.random.randrange(extent) for extent in self.shape]
        extents = [self.random.randint(1, extent - first) for first, extent in zip(begin, self.shape)]

        def body(*loops: Any) -> Any:
            place = [loop + first for loop, first in zip(loops, begin)]
            return store(target, tir.Add(load(target, *place), self.number(1)), *place)

        return parallel(extents, body)

    def assign_vector(self, dim: int, target: Any, depth: int) -> Any:
        def body(i: Any) -> Any:
            value = self.combine(tir.Cast(self.dtype, i), self.number(self.random.randint(0, 9)))
            if depth:
                value = self.combine(value, load(target, i))
            return store(target, value, i)

        return parallel([self.shape[dim]], body)

    def combine(self, left: Any, right: Any) -> Any:
        return self.random.choice([tir.Add, tir.Sub, tir.Max, tir.Min])(left, right)

    def value(self, loops: tuple[Any, ...], depth: int, target: Any) -> Any:
        """An expression that reads no other element of the target than the one that is written."""
        if depth <= 0:
            return self.leaf(loops, target)
        return self.combine(self.value(loops, depth - 1, target), self.leaf(loops, target))

    def leaf(self, loops: tuple[Any, ...], target: Any) -> Any:
        others = [one for one in self.tiles + self.shared if one is not target and one.name in self.written]
        dim = self.random.randrange(len(self.shape))
        kind = self.random.choice(["input", "index", "constant", "tile", "vector", "moved"])
        if kind == "input":
            return load(self.random.choice(self.inputs), *loops)
        if kind == "index":
            return tir.Cast(self.dtype, self.random.choice(loops))
        if kind == "constant":
            return self.number(self.random.randint(-5, 5))
        if kind == "vector" and target not in self.vectors.values():
            return load(self.vectors[dim], loops[dim])
        if kind == "moved" and others and self.random.random() < 0.4:
            one = self.random.choice(others)
            moved = [
                self.random.choice([loop, extent - 1 - loop, tir.floormod(loop + 3, extent)])
                for loop, extent in zip(loops, self.shape)
            ]
            return load(one, *moved)
        return load(self.random.choice(others), *loops) if others else self.number(2)

    def program(self) -> Any:
        local = [*self.tiles, *self.shared, *self.vectors.values()]
        parameters = [*self.inputs, *self.outputs]
        return program(parameters, lambda _bx, _tx: self.statements(), threads=self.threads, local=local)

    def arrays(self) -> dict[str, np.ndarray]:
        numbers = np.random.default_rng(7)
        dtype = np.dtype(self.dtype)
        result = {one.name: numbers.integers(-9, 9, self.shape).astype(dtype) for one in self.inputs}
        result |= {"B": np.zeros(self.shape, dtype), "R": np.zeros(max(self.shape), dtype)}
        return result


def check(seed: int) -> None:
    generator = Generator(seed)
    tile_program = generator.program()
    expected, given = generator.arrays(), generator.arrays()
    lockstep.run(tile_program.function, single=True, **expected)
    lowered = lower(tile_program)
    errors = [str(found) for found in lowered.diagnostics if found.severity == "error"]
    assert not errors, errors
    races = thread_machine.run(lowered.launches[0], seed=seed, **given)
    assert not races
    for name in expected:
        np.testing.assert_array_equal(given[name], expected[name], err_msg=name)


@pytest.mark.parametrize("seed", range(40))
def test_threads_give_what_the_text_says(seed):
    check(seed)
