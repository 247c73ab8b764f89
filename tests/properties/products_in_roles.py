"""Random products for sm_90a, pipelined or not: texts, arguments, and what they give.

The operands are small integers, so that every sum is a number of every type that holds it.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
from lowering.products import numpy_type

ROLES = {"tl.enable_auto_warp_specialization": True}
BYTES = {"float16": 2, "bfloat16": 2, "tfloat32": 4, "float8_e4m3fn": 1, "float8_e5m2": 1, "int8": 1, "uint8": 1}


class Product:
    """A kernel's text, its arguments and what it gives."""

    def __init__(self, source: random.Random):
        self.random, self.lines = source, []
        pick = self.pick
        self.dtype = pick("float16", "float16", "float16", "bfloat16", *list(BYTES)[2:])
        self.other = pick("float8_e4m3fn", "float8_e5m2") if self.dtype.startswith("float8") else self.dtype
        self.out = pick("float32", "float32", "float16", "bfloat16")
        self.total = "float32"
        if self.dtype.endswith("int8"):
            self.total, self.out = "int32", pick("int32", "int32", "float32")
        elif self.dtype == "float16" or self.dtype.startswith("float8"):
            self.total = pick("float32", "float32", "float16")
        # Where the operands come from: tiles that are copied, a fragment, tiles that the threads write.
        self.left = pick("copied", "copied", "copied", "fragment", "changed")
        self.right = pick("copied", "copied", "copied", "widened") if self.dtype == "float16" else "copied"
        self.loop = pick(*["T.Pipelined"] * 5, "T.serial")
        self.groups = pick(1, 1, 2, 2, 2, 3)
        self.bm = 64 * self.groups * pick(1, 1, 2) if self.chance(0.8) else pick(64, 128, 192)
        self.bn = pick(8, 16, 32, 64, 64, 96, 128, 128, 192, 256)
        self.bk = pick(16, 32, 64, 64, 128) * 2 // BYTES[self.dtype]
        self.stages = pick(1, 2, 2, 3, 4)
        turned = BYTES[self.dtype] == 2
        self.ta, self.tb = turned and self.chance(0.3), self.chance(0.4) if turned else True
        ragged = self.chance(0.4)
        grid = pick((1, 1), (1, 2), (2, 2), (3, 2), (1, 5))
        step = 16 // BYTES[self.dtype]
        self.m = grid[0] * self.bm - (step * pick(1, 3) if ragged else 0)
        self.n = grid[1] * self.bn - (step * pick(0, 1) if ragged and self.bn > step else 0)
        self.k = self.bk * pick(1, 2, 3, 5) - (step if ragged and self.chance(0.5) else 0)
        if self.chance(0.05):
            self.k += 3  # rows that no bulk copy takes
        self.batch = pick(0, 0, 0, 2)
        self.batches = self.batch if self.chance(0.5) else 0  # of B
        self.symbolic = self.chance(0.2) and not self.ta
        if self.left == "fragment" and self.ta:
            self.left = "copied"
        self.options = {**ROLES, **pick({}, {"tl.persistent_blocks": 2}, {"tl.persistent_blocks": 3})}
        self._write()

    def pick(self, *items: Any) -> Any:
        return self.random.choice(items)

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def put(self, indent: int, line: str) -> None:
        self.lines.append("    " * indent + line)

    # ---- the text ----

    def _write(self) -> None:
        host, other = self.host, "int8" if self.right == "widened" else self.other.replace("tfloat32", "float32")
        rows = "m" if self.symbolic else str(self.m)
        lead = f"{self.batch}, " if self.batch else ""
        a = f"{lead}{self.k}, {rows}" if self.ta else f"{lead}{rows}, {self.k}"
        b = f"{self.n}, {self.k}" if self.tb else f"{self.k}, {self.n}"
        b = f"{self.batches}, {b}" if self.batches else b
        if self.symbolic:
            self.put(0, 'm = T.symbolic("m")')
        self.put(0, "@T.prim_func")
        self.put(0, f'def k(A: T.Tensor(({a}), "{host}"), B: T.Tensor(({b}), "{other}"), I: T.Tensor((4,), "int32"),')
        self.put(0, f'      C: T.Tensor(({lead}{rows}, {self.n}), "{self.out}"), R: T.Tensor(({self.n},), "float32")):')
        extents = [f"T.ceildiv({self.n}, {self.bn})", f"T.ceildiv({rows}, {self.bm})"]
        names = "bx, by"
        if self.batch:
            extents, names = [*extents, str(self.batch)], "bx, by, bz"
        self.put(1, f"with T.Kernel({', '.join(extents)}, threads={128 * self.groups}) as ({names}):")
        if self.chance(0.3):
            self.put(2, f"T.use_swizzle({self.pick(1, 2, 4)})")
        self.put(2, f'A_s = T.alloc_shared({(self.bk, self.bm) if self.ta else (self.bm, self.bk)}, "{self.dtype}")')
        right = (self.bn, self.bk) if self.tb else (self.bk, self.bn)
        self.put(2, f'B_s = T.alloc_shared({right}, "{self.other}")')
        if self.right == "widened":
            self.put(2, f'W_s = T.alloc_shared({right}, "int8")')
            self.put(2, f'W = T.alloc_fragment({right}, "int8")')
            self.put(2, f'V = T.alloc_fragment({right}, "{self.dtype}")')
        if self.left == "fragment":
            self.put(2, f'A_f = T.alloc_fragment(({self.bm}, {self.bk}), "{self.dtype}")')
        self.put(2, f'C_l = T.alloc_fragment(({self.bm}, {self.bn}), "{self.total}")')
        self.added: Any = 0
        self.first = self.pick(0, 0, 1, 2)
        if self.first == 1 or self.chance(0.2):
            self.put(2, "v = I[1]")
            self.put(2, "w = v * 2 + 1" if self.chance(0.5) else "w = T.max(v, by) + v - v")
            self.added = "w"
        self.put(2, f"T.fill(C_l, {self.first})" if self.first else "T.clear(C_l)")
        self._loops()
        self._ending()
        self.text = "\n".join(self.lines) + "\n"

    def _loops(self) -> None:
        turns = -(-self.k // self.bk)
        self.left_out, self.even = 0, False
        indent, ko = 2, "ko"
        kind = self.pick("plain", "plain", "split", "repeat", "condition", "range", "skip", "growing")
        self.parts = [turns]  # turns of each execution of the loop
        if kind == "split" and turns > 1:
            self.put(indent, f"for s in T.serial({turns}):")
            indent, ko = indent + 1, "s + ko"
            bounds = "1"
        elif kind == "repeat":
            self.parts = [turns] * self.pick(2, 3)
            self.put(indent, f"for s in T.{self.pick('serial', 'unroll')}({len(self.parts)}):")
            indent, bounds = indent + 1, str(turns)
        elif kind == "skip":
            self.parts = [turns, 0, turns]
            self.put(indent, "for s in T.serial(3):")
            self.put(indent + 1, f"if {self.pick('s != 1', 's % 2 == 0', 's * 2 != by * 0 + 2')}:")
            indent, bounds = indent + 2, str(turns)
        elif kind == "growing":
            self.parts = [min(s, turns) for s in range(3)]
            self.put(indent, "for s in T.serial(3):")
            indent, bounds = indent + 1, f"T.min(s, {turns})"
        elif kind == "condition":
            self.even = True
            self.put(indent, "if by % 2 == 0:")
            indent, bounds = indent + 1, str(turns)
        elif kind == "range":
            self.left_out = 1
            bounds = f"1, {turns}"
        else:
            bounds = f"T.ceildiv({self.k}, {self.bk})"
        stages = f", num_stages={self.stages}" if self.loop == "T.Pipelined" else ""
        self.put(indent, f"for ko in {self.loop}({bounds}{stages}):")
        bz = "bz, " if self.batch else ""
        at, depth = indent + 1, f"({ko}) * {self.bk}"
        bb = "bz, " if self.batches else ""
        right = "W_s" if self.right == "widened" else "B_s"
        copies = [
            f"T.copy(A[{bz}{depth}, by * {self.bm}], A_s)"
            if self.ta
            else f"T.copy(A[{bz}by * {self.bm}, {depth}], A_s)",
            f"T.copy(B[{bb}bx * {self.bn}, {depth}], {right})"
            if self.tb
            else f"T.copy(B[{bb}{depth}, bx * {self.bn}], {right})",
        ]
        if self.chance(0.3):
            copies.reverse()
        policy = self.pick("Square", "FullRow", "FullCol")
        options = f"transpose_A={self.ta}, transpose_B={self.tb}, policy=T.GemmWarpPolicy.{policy}"
        for line in copies:
            self.put(at, line)
        left, one = "A_s", "1" if self.total == "int32" else "1.0"
        if self.left == "fragment":
            left = "A_f"
            self.put(at, "T.copy(A_s, A_f)")
        elif self.left == "changed":
            self.put(at, f"for i, j in T.Parallel({', '.join(map(str, self.tile))}):")
            self.put(at + 1, "A_s[i, j] = A_s[i, j] + A_s[i, j]")
        if self.right == "widened":
            self.put(at, "T.copy(W_s, W)")
            self.put(
                at, f"for i, j in T.Parallel({self.bn if self.tb else self.bk}, {self.bk if self.tb else self.bn}):"
            )
            self.put(at + 1, f'V[i, j] = T.cast(W[i, j], "{self.dtype}")')
            self.put(at, "T.copy(V, B_s)")
        self.put(at, f"T.gemm({left}, B_s, C_l, {options})")
        self.each = self.pick(0, 0, 0, 1)
        if self.each:
            self.put(at, f"for i, j in T.Parallel({self.bm}, {self.bn}):")
            self.put(at + 1, f"C_l[i, j] += {one}")

    def _ending(self) -> None:
        place = f"{'bz, ' if self.batch else ''}by * {self.bm}, bx * {self.bn}"
        kind = self.pick("copy", "copy", "row", "shared", "relu", "after")
        self.relu, self.row = kind == "relu", kind == "row"
        if self.added or self.row or self.relu:
            value = "C_l[i, j]"
            if self.added:
                value = f"{value} + w"
            if self.row and self.total == "int32":
                value = f'T.cast({value}, "float32")'
            if self.row:
                value = f"{value} + R[bx * {self.bn} + j]"
            if self.relu:
                value = f"T.max({value}, 0)"
            self.put(2, f"for i, j in T.Parallel({self.bm}, {self.bn}):")
            self.put(3, f"C_l[i, j] = {value}")
        if kind == "shared" and self.bm * self.bn <= 128 * 128:
            self.put(2, f'C_s = T.alloc_shared(({self.bm}, {self.bn}), "{self.out}")')
            self.put(2, "T.copy(C_l, C_s)")
            self.put(2, f"T.copy(C_s, C[{place}])")
        else:
            self.put(2, f"T.copy(C_l, C[{place}])")
        if kind == "after":
            self.put(2, "if bx == 0 and by == 0:")
            self.put(3, "I[3] = 7")

    # ---- what it gives ----

    @property
    def host(self) -> str:
        return self.dtype.replace("tfloat32", "float32")

    @property
    def tile(self) -> tuple[int, int]:
        return (self.bk, self.bm) if self.ta else (self.bm, self.bk)

    def arguments(self) -> dict[str, np.ndarray]:
        rng = np.random.default_rng(self.random.getrandbits(32))
        lead = (self.batch,) if self.batch else ()

        def numbers(dtype: str, *shape: int) -> np.ndarray:
            low = 0 if dtype == "uint8" else -1
            return rng.integers(low, 2, shape).astype(np.float32).astype(numpy_type(dtype))

        other = "int8" if self.right == "widened" else self.other.replace("tfloat32", "float32")
        more = (self.batches,) if self.batches else ()
        return {
            "A": numbers(self.host, *lead, *((self.k, self.m) if self.ta else (self.m, self.k))),
            "B": numbers(other, *more, *((self.n, self.k) if self.tb else (self.k, self.n))),
            "I": np.array([0, 3, 0, 0], np.int32),
            "C": np.full((*lead, self.m, self.n), 99, np.float32).astype(numpy_type(self.out)),
            "R": rng.integers(-4, 5, self.n).astype(np.float32),
        }

    def expected(self, arguments: dict[str, np.ndarray]) -> np.ndarray:
        a, b = arguments["A"].astype(np.float64), arguments["B"].astype(np.float64)
        a = np.swapaxes(a, -1, -2) if self.ta else a
        b = np.swapaxes(b, -1, -2) if self.tb else b
        a = a * 2 if self.left == "changed" else a
        begin, total = self.left_out, np.float64(0)
        for turns in self.parts:
            part = slice(begin * self.bk, turns * self.bk)
            total = total + a[..., part] @ b[..., part, :] + self.each * (turns - begin)
        by = np.arange(self.m)[:, None] // self.bm
        if self.even:
            total = np.where(by % 2 == 0, total, 0)
        total = total + self.first
        if self.added:
            total = total + (7 if "w = v * 2 + 1" in self.text else np.maximum(3, by))
        if self.row:
            total = total + arguments["R"].astype(np.float64)
        if self.relu:
            total = np.maximum(total, 0)
        return total.astype(numpy_type(self.out)).astype(np.float64)
