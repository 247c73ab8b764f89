"""Random thread programs: the simulated device computes what a scalar interpreter computes, bit by bit."""

from __future__ import annotations

import random

import numpy as np
import pytest
from simulator import scalar
from simulator.nodes import *
from simulator.running import computed

T, B, SLOTS = 8, 3, 4
X, F = buffer("X", (B * T, SLOTS), "int32"), buffer("F", (B * T, SLOTS), "float32")
Y, G = buffer("Y", (B * T, SLOTS), "int32"), buffer("G", (B * T, SLOTS), "float32")
N = var("n")


class Programs:
    """Draws statements.  Registers: i (int32, 1), v (int32, SLOTS), w (float32, SLOTS)."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.i, self.v, self.w = local("i", 1, "int32"), local("v", SLOTS, "int32"), local("w", SLOTS, "float32")
        self.numbers: list = []  # integer variables in scope
        self.indices: list = []  # variables known to lie in [0, SLOTS)
        self.loops = 0

    def pick(self, *options):
        return self.random.choice(options)

    def coin(self):
        return self.random.random() < 0.5

    def slot(self):
        """An index in [0, SLOTS)."""
        if self.indices and self.coin():
            return self.pick(*self.indices)
        if self.random.randint(0, 3) == 0:
            return tir.floormod(self.integer(1), SLOTS)
        return i32(self.random.randint(0, SLOTS - 1))

    def integer(self, depth):
        if depth == 0:
            kind = self.pick("constant", "variable", "variable", "register", "load", "guarded", "parameter")
            if kind == "constant":
                return i32(self.pick(0, 1, 2, 3, 7, -1, -5, 100, 2**31 - 1, -(2**31)))
            if kind == "variable":
                return self.pick(*self.numbers)
            if kind == "register":
                return load(self.v, self.slot()) if self.coin() else load(self.i, 0)
            if kind == "load":
                return load(X, self.g, self.slot())
            if kind == "guarded":
                index = self.pick(*self.numbers)
                return tir.if_then_else(tir.And(index >= 0, index < SLOTS), load(X, self.g, index), i32(-3))
            return N
        kind = self.pick("binary", "binary", "binary", "binary", "select", "cast", "shift", "narrow")
        if kind == "binary":
            operation = self.pick(
                lambda a, b: a + b, lambda a, b: a - b, lambda a, b: a * b, tir.floordiv, tir.floormod, tir.truncdiv,
                tir.truncmod, tir.bitwise_and, tir.bitwise_or, tir.bitwise_xor, tir.max, tir.min,
            )  # fmt: skip
            return self.folding(operation, self.integer(depth - 1), self.integer(depth - 1))
        if kind == "select":
            return tir.if_then_else(self.condition(depth - 1), self.integer(depth - 1), self.integer(depth - 1))
        if kind == "cast":
            return tir.Cast("int32", self.floating(depth - 1))
        if kind == "shift":
            operation = self.pick(tir.shift_left, tir.shift_right)
            return self.folding(operation, self.integer(depth - 1), self.integer(depth - 1))
        narrow, value = self.pick("int8", "uint8", "int16", "int64"), self.integer(depth - 1)
        return tir.Cast("int32", tir.Cast(narrow, load(self.i, 0) if isinstance(value, tir.IntImm) else value))

    def folding(self, operation, a, b, instead=None):
        """TVM folds constants while a node is built; it refuses a division by 0 and a shift by the width there."""
        try:
            return operation(a, b)
        except tvm.error.InternalError:
            return operation(a, i32(1) if instead is None else instead)

    def floating(self, depth):
        if depth == 0:
            kind = self.pick("constant", "register", "load")
            if kind == "constant":
                return f32(self.pick(0.0, 1.0, -2.5, float(np.float32(0.1)), float(np.float32(1e30))))
            return load(self.w, self.slot()) if kind == "register" else load(F, self.g, self.slot())
        kind = self.pick("binary", "binary", "select", "cast", "half")
        if kind == "binary":
            operation = self.pick(lambda a, b: a + b, lambda a, b: a - b, lambda a, b: a * b, tir.div, tir.max, tir.min)
            return self.folding(operation, self.floating(depth - 1), self.floating(depth - 1), f32(1))
        if kind == "select":
            return tir.Select(self.condition(depth - 1), self.floating(depth - 1), self.floating(depth - 1))
        if kind == "half":
            return tir.Cast("float32", tir.Cast("float16", self.floating(depth - 1)))
        return tir.Cast("float32", self.integer(depth - 1))

    def condition(self, depth):
        kind = self.pick("int", "int", "float", "and", "or", "not") if depth else "int"
        if kind in ("and", "or"):
            return (tir.And if kind == "and" else tir.Or)(self.condition(depth - 1), self.condition(depth - 1))
        if kind == "not":
            return tir.Not(self.condition(depth - 1))
        of = self.floating if kind == "float" else self.integer
        a, b = of(min(depth, 1)), of(min(depth, 1))
        return self.pick(lambda a, b: a < b, lambda a, b: a >= b, lambda a, b: a.equal(b), lambda a, b: tir.NE(a, b))(
            a, b
        )

    def statement(self, depth):
        kinds = ["int", "int", "float", "float", "own"]
        if depth:
            kinds += ["if", "if", "for", "for", "vector", "vector", "while", "bind"]
        if self.loops:
            kinds += ["jump"]
        kind = self.pick(*kinds)
        if kind == "int":
            if self.coin():
                return store(self.v, self.integer(2), self.slot())
            return store(self.i, self.integer(2), 0)
        if kind == "float":
            return store(self.w, self.floating(2), self.slot())
        if kind == "own":
            return store(Y, self.integer(2), self.g, self.slot())
        if kind == "if":
            other = self.block(depth - 1) if self.coin() else None
            return when(self.condition(2), self.block(depth - 1), other)
        if kind in ("for", "vector"):
            counter = var("k")
            extent = self.random.randint(1, SLOTS)
            self.numbers.append(counter)
            self.indices.append(counter)
            self.loops += kind == "for"
            outer, self.loops = self.loops, self.loops if kind == "for" else 0
            body = self.block(depth - 1)
            self.loops = outer - (kind == "for")
            self.indices.pop()
            self.numbers.pop()
            limit = i32(extent)
            if kind == "for" and self.coin():
                limit = tir.min(i32(extent), tir.floormod(self.integer(1), 5))
            return loop(counter, limit, body, kind=SERIAL if kind == "for" else self.pick(UNROLLED, VECTORIZED, SERIAL))
        if kind == "while":
            fuel = local("fuel", 1, "int32")
            self.loops += 1
            body = self.block(depth - 1)
            self.loops -= 1
            turn = seq(store(fuel, load(fuel, 0) + 1, 0), body)
            start = store(fuel, i32(0), 0)
            return seq(tir.AllocBuffer(fuel), start, tir.While(tir.And(load(fuel, 0) < 4, self.condition(1)), turn))
        if kind == "bind":
            name = var("name")
            value = tir.Bind(name, self.integer(2))
            self.numbers.append(name)
            rest = [self.statement(depth - 1), self.statement(depth - 1)]
            self.numbers.pop()
            return seq(value, *rest)
        return when(self.condition(1), self.pick(tir.Break, tir.Continue)())

    def block(self, depth):
        return seq(*[self.statement(depth) for _ in range(self.random.randint(1, 3))])

    def program(self):
        def body(t, b):
            self.g = b * T + t
            self.numbers += [t, b, self.g]
            k = var("k")
            start = [store(self.i, i32(0), 0), unroll(k, SLOTS, store(self.v, t + k, k))]
            start.append(unroll(k, SLOTS, store(self.w, load(F, self.g, k), k)))
            statements = [self.statement(3) for _ in range(self.random.randint(1, 5))]
            end = [unroll(k, SLOTS, store(Y, load(self.v, k) + load(self.i, 0), self.g, k))]
            end.append(unroll(k, SLOTS, store(G, load(self.w, k), self.g, k)))
            return [*start, *statements, *end]

        return launch([X, F, Y, G, N], body, threads=T, blocks=B, allocate=[self.i, self.v, self.w])


@pytest.mark.parametrize("seed", range(60))
def test_random_programs(seed):
    func, n = Programs(seed).program(), seed % 14 - 4
    rng = np.random.default_rng(seed)
    shape = (B * T, SLOTS)
    arguments = {
        "X": rng.integers(-20, 20, shape).astype(np.int32),
        "F": rng.standard_normal(shape).astype(np.float32),
        "Y": np.zeros(shape, np.int32),
        "G": np.zeros(shape, np.float32),
        "n": n,
    }
    wanted = {name: a.copy() if isinstance(a, np.ndarray) else a for name, a in arguments.items()}
    scalar.run(func, wanted)
    got = computed(func, arguments)
    assert (got["Y"] == wanted["Y"]).all()
    np.testing.assert_array_equal(got["G"], wanted["G"])
