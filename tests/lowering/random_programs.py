"""Random thread programs with their meaning: every statement is done by all its threads before the next one begins."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
from lowering import thread_programs as tp
from tvm import tirx as tir

THREADS = 16
ROWS = 3


class RandomProgram:
    """`function()` is the program without barriers, `expected(out)` what it does to the global buffer."""

    def __init__(self, seed: int):
        self.random = random.Random(seed)
        self.launch = tp.Launch(THREADS)
        self.out = tp.buffer("out", (THREADS,))
        self.line, self.table = tp.shared("line", (THREADS,)), tp.shared("table", (ROWS, THREADS))
        self.loops: list[tuple[Any, str]] = []
        self.values: list[tuple[Any, str]] = []
        self.count = 0
        self.filled = False
        start = [self._store(self.line), *[self._store(self.table, row) for row in range(ROWS)]]
        self.filled = True
        self.body = [*start, *[self._statement(0) for _ in range(self.random.randint(2, 6))], self._store(self.out)]

    def function(self) -> Any:
        allocated = [tir.AllocBuffer(self.line), tir.AllocBuffer(self.table)]
        return self.launch.function([self.out], *allocated, *[statement for statement, _ in self.body])

    def expected(self, out: np.ndarray) -> np.ndarray:
        state = {
            "out": out.copy(),
            "line": np.zeros(THREADS, np.int32),
            "table": np.zeros((ROWS, THREADS), np.int32),
            "tx": np.arange(THREADS),
        }
        for _, run in self.body:
            run(state, np.ones(THREADS, bool))
        return state["out"]

    # ---- expressions: the TIR form and a function of the state ----

    def _column(self, injective: bool) -> tuple[Any, Any]:
        tx, n = self.launch.tx, THREADS
        choices = ["same", "same", "mirror", "turned", "pair"] + ([] if injective else ["fixed", "half"])
        kind = self.random.choice(choices)
        if kind == "same":
            return tx, lambda s: s["tx"]
        if kind == "mirror":
            return n - 1 - tx, lambda s: n - 1 - s["tx"]
        if kind == "turned":
            by = self.random.randint(1, n - 1)
            if self.loops and not injective and self.random.random() < 0.5:
                var, name = self.random.choice(self.loops)
                return tir.floormod(tx + var + by, n), lambda s: (s["tx"] + s[name] + by) % n
            return tir.floormod(tx + by, n), lambda s: (s["tx"] + by) % n
        if kind == "pair":
            swapped = tir.floordiv(tx, 2) * 2 + 1 - tir.floormod(tx, 2)
            return swapped, lambda s: s["tx"] // 2 * 2 + 1 - s["tx"] % 2
        if kind == "half":
            return tir.floordiv(tx, 2), lambda s: s["tx"] // 2
        at = self.random.randint(0, n - 1)
        return tp.integer(at), lambda s: np.full(n, at)

    def _row(self) -> tuple[Any, Any]:
        if self.loops and self.random.random() < 0.5:
            var, name = self.random.choice(self.loops)
            return var, lambda s: s[name]
        row = self.random.randint(0, ROWS - 1)
        return tp.integer(row), lambda s: row

    def _load(self) -> tuple[Any, Any]:
        column, column_of = self._column(False)
        name = self.random.choice(["line", "table", "out"])
        if name == "table":
            row, row_of = self._row()
            return tp.load(self.table, row, column), lambda s: s["table"][row_of(s), column_of(s)]
        source = self.line if name == "line" else self.out
        return tp.load(source, column), lambda s: s[name][column_of(s)]

    def _value(self, depth: int = 0) -> tuple[Any, Any]:
        kind = self.random.choice(["load", "load", "thread", "constant", "bound", "sum"] if self.filled else ["thread"])
        if kind == "bound" and self.values:
            var, name = self.random.choice(self.values)
            return var, lambda s: s[name]
        if kind == "sum" and depth < 2:
            (a, a_of), (b, b_of) = self._value(depth + 1), self._value(depth + 1)
            return tir.floormod(a + b * 3, 251), lambda s: (a_of(s) + b_of(s) * 3) % 251
        if kind == "thread":
            return self.launch.tx * 7, lambda s: s["tx"] * 7
        if kind == "constant":
            number = self.random.randint(0, 50)
            return tp.integer(number), lambda s: np.full(THREADS, number)
        return self._load()

    # ---- statements: the TIR form and a function of state and mask ----

    def _store(self, target: Any, row: int | None = None) -> tuple[Any, Any]:
        value, value_of = self._value()
        if row is not None:
            column, column_of = self.launch.tx, lambda s: s["tx"]
            row_expr, row_of = tp.integer(row), lambda s: row
        else:
            column, column_of = self._column(True)
            row_expr, row_of = self._row()

        def run(state: dict[str, Any], mask: np.ndarray) -> None:
            new, at = np.broadcast_to(value_of(state), (THREADS,)).copy(), column_of(state)
            if target is self.table:
                state["table"][row_of(state), at[mask]] = new[mask]
            else:
                state["line" if target is self.line else "out"][at[mask]] = new[mask]

        if target is self.table:
            return tp.store(target, value, row_expr, column), run
        return tp.store(target, value, column), run

    def _block(self, depth: int, size: int) -> tuple[list[Any], Any]:
        values = list(self.values)
        pairs = [self._statement(depth) for _ in range(size)]
        self.values = values

        def run(state: dict[str, Any], mask: np.ndarray) -> None:
            for _, one in pairs:
                one(state, mask)

        return [statement for statement, _ in pairs], run

    def _statement(self, depth: int) -> tuple[Any, Any]:
        kind = self.random.choice(["store"] * 4 + ["bind"] + (["for", "some", "some", "all"] if depth < 2 else []))
        size = self.random.randint(1, 3)
        if kind == "store":
            return self._store(self.random.choice([self.line, self.table, self.out]))
        self.count += 1
        if kind == "bind":
            value, value_of = self._value()
            name = f"v{self.count}"
            var = tir.Var(name, "int32")
            self.values.append((var, name))

            def bind(state: dict[str, Any], mask: np.ndarray) -> None:
                state[name] = np.broadcast_to(value_of(state), (THREADS,)).copy()

            return tir.Bind(var, value), bind
        if kind == "for":
            var, name, extent = tir.Var(f"k{self.count}", "int32"), f"k{self.count}", self.random.randint(1, ROWS)
            self.loops.append((var, name))
            body, run = self._block(depth + 1, size)
            self.loops.pop()

            def repeat(state: dict[str, Any], mask: np.ndarray) -> None:
                for turn in range(extent):
                    state[name] = turn
                    run(state, mask)

            return tir.For(var, 0, extent, tir.ForKind.SERIAL, tp_sequence(body)), repeat
        return self._branch(kind, depth, size)

    def _branch(self, kind: str, depth: int, size: int) -> tuple[Any, Any]:
        if kind == "all":
            at = self.random.randint(0, THREADS - 1)
            condition = tir.floormod(tp.load(self.line, at), 2) == 0
            test = lambda s: np.full(THREADS, s["line"][at] % 2 == 0)
        elif self.random.random() < 0.3:
            load, load_of = self._load()
            condition, test = tir.floormod(load, 2) == 0, lambda s: load_of(s) % 2 == 0
        else:
            bound = self.random.randint(0, THREADS)
            condition, test = self.launch.tx < bound, lambda s: s["tx"] < bound
        condition = (
            tir.EQ(condition.a, condition.b) if kind == "all" or not isinstance(condition, tir.LT) else condition
        )
        then, run_then = self._block(depth + 1, size)
        other, run_other = self._block(depth + 1, 1) if self.random.random() < 0.4 else (None, None)

        def run(state: dict[str, Any], mask: np.ndarray) -> None:
            taken = np.asarray(test(state), bool)
            if (mask & taken).any():
                run_then(state, mask & taken)
            if run_other is not None and (mask & ~taken).any():
                run_other(state, mask & ~taken)

        return tir.IfThenElse(condition, tp_sequence(then), None if other is None else tp_sequence(other)), run


def tp_sequence(statements: list[Any]) -> Any:
    """One statement from several."""
    return statements[0] if len(statements) == 1 else tir.SeqStmt(statements)
