"""Random kernels over re-bound names and nested control flow of both kinds, and the same text as CPython runs it."""

from __future__ import annotations

import itertools
import random
from typing import Any

from frontend.random_expressions import HELPERS, MACROS, RandomExpressions

HEAD = (
    "import tilelang.language as T\n"
    + MACROS
    + HELPERS
    + """@T.prim_func
def k(a: T.Tensor((8,), "int32"), out: T.Tensor((8,), "int32"), n: T.int32, m: T.int32):
    with T.Kernel(1, threads=1):
"""
)


class RandomKernel(RandomExpressions):
    """The body of a kernel from a seed, or from the choices of another source of random numbers.

    unbound: how likely a name is left without a first binding.
    """

    def __init__(self, source: int | random.Random, unbound: float = 0.06):
        self.random = random.Random(source) if isinstance(source, int) else source
        self.unbound = unbound
        self.lines: list[str] = []
        self.names = ["x", "y", "z"]
        self.loops: list[tuple[str, str]] = []
        self.conditions = [0]  # how many `if`s are open in the body of each loop around
        self.number = 0

    def fresh(self, stem: str) -> str:
        self.number += 1
        return f"{stem}{self.number}"

    def put(self, indent: int, text: str) -> None:
        self.lines.append("    " * indent + text)

    def block(self, indent: int, depth: int) -> None:
        for _ in range(self.random.randrange(1, 4)):
            self.statement(indent, depth)

    def statement(self, indent: int, depth: int) -> None:
        simple = ["bind", "bind", "bind", "augment", "store", "pair", "leave", "walrus", "python", "own", "flag"]
        nested = ["if", "if", "range", "tuple", "list", "while", "unroll", "enumerate", "match", "grid", "forever"]
        nested += ["kind", "items"]
        kind = self.pick(*simple, *(nested if depth < 3 else []))
        if kind == "grid" and self.random.random() < 0.6:
            kind = "parallel"
        getattr(self, "put_" + kind)(indent, depth)

    def put_bind(self, indent: int, depth: int) -> None:
        self.put(indent, f"{self.pick(*self.names)} = {self.expression()}")

    def put_augment(self, indent: int, depth: int) -> None:
        name = self.pick(*self.names)
        if self.random.random() < 0.3:
            self.put(
                indent, f"{name} {self.pick('//= 3', '%= 7', '>>= 1', '&= 14', '<<= 2', '**= 2', '//= -2', '%= -5')}"
            )
        else:
            self.put(indent, f"{name} {self.pick('+', '-', '*', '|', '^', '&')}= {self.operand()}")
        self.put(indent, f"{name} %= 29")

    def put_store(self, indent: int, depth: int) -> None:
        place = f"out[{self.random.randrange(8)}]"
        if self.random.random() < 0.3:
            self.put(indent, f"{place} += {self.operand()}")
            self.put(indent, f"{place} %= 37")
        else:
            self.put(indent, f"{place} = {self.expression()}")

    def put_own(self, indent: int, depth: int) -> None:
        """An array of the thread."""
        place = f"own[{self.pick('0', '1', '3', '-1', f'{self.operand()} % 4')}]"
        if self.random.random() < 0.3:
            self.put(indent, f"keep({self.pick('own', 'out')}, {self.random.randrange(4)}, {self.operand()})")
        elif self.random.random() < 0.4:
            self.put(indent, f"{place} {self.pick('+', '-', '|', '^')}= {self.operand()}")
            self.put(indent, "own[0] %= 31")
            self.put(indent, "for c in T.unroll(4):")
            self.put(indent + 1, "own[c] = own[c] % 51")
        else:
            self.put(indent, f"{place} = {self.expression()}")

    def put_flag(self, indent: int, depth: int) -> None:
        """A truth value with a name."""
        flag = self.fresh("flag")
        p = self.operand()
        self.put(indent, f"{flag} = {p} > {self.operand()}")
        name = self.pick(*self.names)
        use = self.pick(f"{flag} + {p}", f"({p} if {flag} else 3)", f"({flag} and {p} > 1) * 4", f"({p} + 1) * {flag}")
        if self.random.random() < 0.5:
            self.put(indent, f"if {self.pick('', 'not ')}{flag}{self.pick('', f' and {self.condition()}')}:")
            indent += 1
        self.put(indent, f"{name} = {use}")

    def put_pair(self, indent: int, depth: int) -> None:
        first, second = self.random.sample(self.names, 2)
        self.put(indent, f"{first}, {second} = {self.operand()}, {self.operand()}")

    def put_walrus(self, indent: int, depth: int) -> None:
        name = self.pick(*self.names)
        self.put(indent, f"out[{self.random.randrange(8)}] = ({name} := {self.expression()}) % 7")

    def put_python(self, indent: int, depth: int) -> None:
        """Bindings of Python's less common kinds."""
        x, y, z = self.random.sample(self.names, 3)
        p, q, r = self.operand(), self.operand(), self.operand()
        box = self.fresh("box")
        self.put(indent, self.pick(
            f"{x}: T.int32 = {p}",
            f"{x}, {y} = {y}, {x}",
            f"{x}, ({y}, {z}) = {p}, ({q}, {r})",
            f"{x}, *{box} = {p}, {q}, {r}; {y} = {box}[1]",
            f"{box} = []; {box}.append({p}); {box}.append({q}); {x} = sum({box}) % 17",
            f"{box} = {{0: {p}}}; {box}[1] = {q}; {x} = {box}[1]",
            f"{box} = [{p}, 1]; {box}[0] += {q}; {x} = {box}[0] % 23",
            f"{box} = lambda v: (v + {p}) % 29; {x} = {box}({q})",
            f"{box} = (v + {p} for v in (1, 2)); {x} = sum({box}) % 31",
            f"{x} = [({y} := v) for v in ({p}, {q})][0]",
            f"{x} = {p} if ({y} := {q}) > 1 else {r}",
            f"pass; {x} = {p}; del {x}; {x} = {q if q != x else 4}",
            f"{x} = ({p}, {q}); {x} = {x}[1]" if self.random.random() < 0.1 else f"{box} = ({p}, {q}); {x} = {box}[1]",
            f"{box} = {x}, {y}; {y}, {x} = {box}",
            f"[{x}, *{box}] = ({p}, {q}); {y} = {box}[0]",
            f"{x} = {p}; {y} = {x}; {x} += 1; {x} %= 19; {z} = {y}",
            f"{box}: T.int32; {x} = {p}",
            f"({x}) = ({p})",
            f"{x} = {y} = {q}" if self.random.random() < 0.02 else f"{x} = {q}; {y} = {q}",
            f"{box} = {x}; {x} = {p}; {y} = {box} - {x}; {y} %= 37",
        ))  # fmt: skip

    def put_forever(self, indent: int, depth: int) -> None:
        count = self.fresh("w")
        self.put(indent, f"{count} = {self.pick('0', 'n % 2', '1')}")
        self.put(indent, "while True:")
        self.put(indent + 1, f"{count} += 1")
        self.put(indent + 1, f"if {count} > {self.pick('2', 'n', '3')}{self.pick('', f' or {self.condition()}')}:")
        self.put(indent + 2, "break")
        self.body(indent + 1, depth, count, "device")

    def put_leave(self, indent: int, depth: int) -> None:
        """`break` and `continue` where the language has them; seldom of a compile-time loop under a runtime condition."""
        kind = self.loops[-1][1] if self.loops else None
        if kind in (None, "vectorized"):
            self.put_bind(indent, depth)
            return
        condition = self.condition()
        if kind == "compile-time" and self.random.random() < 0.97:
            if self.conditions[-1]:
                self.put_bind(indent, depth)
                return
            condition = self.pick("len('ab') > 2", "n is None", "'x' in 'xyz'", "not (1, 2)", "T.int32 != 'float32'")
        words = ["continue"] if kind in ("parallel", "grid") else ["break", "continue"]
        self.put(indent, f"if {condition}:")
        if self.random.random() < 0.5:
            self.put_bind(indent + 1, depth)
        self.put(indent + 1, self.pick(*words))
        if self.random.random() < 0.3:
            self.put(indent, "else:")
            self.put_bind(indent + 1, depth)

    def put_if(self, indent: int, depth: int) -> None:
        self.put(indent, f"if {self.condition()}:")
        self.conditions[-1] += 1
        self.block(indent + 1, depth + 1)
        if self.random.random() < 0.3:
            self.put(indent, f"elif {self.condition()}:")
            self.block(indent + 1, depth + 1)
        if self.random.random() < 0.5:
            self.put(indent, "else:")
            self.block(indent + 1, depth + 1)
        self.conditions[-1] -= 1

    def loop(self, indent: int, depth: int, variable: str, kind: str, text: str) -> None:
        self.put(indent, text)
        self.body(indent + 1, depth, variable, kind)

    def body(self, indent: int, depth: int, variable: str, kind: str) -> None:
        self.loops.append((variable, kind))
        self.conditions.append(0)
        self.block(indent, depth + 1)
        self.conditions.pop()
        self.loops.pop()

    def put_range(self, indent: int, depth: int) -> None:
        variable = f"i{len(self.loops)}"
        bounds = self.pick(
            "n",
            "m",
            "3",
            "x % 4",
            "1, 6, 2",
            "n, 0, -1",
            "0, n, m",
            "a[0], 4",
            "2, -1, -1",
            "0, 6, n % 3 + 1",
            "m, n, -(n % 2) - 1",
            "4, m, n",
        )
        self.loop(indent, depth, variable, "device", f"for {variable} in range({bounds}):")

    def put_unroll(self, indent: int, depth: int) -> None:
        variable = f"i{len(self.loops)}"
        self.loop(indent, depth, variable, "device", f"for {variable} in T.unroll(3):")

    def put_parallel(self, indent: int, depth: int) -> None:
        """Names of the iteration; or names from outside, bound first of all in it and bound anew after the loop.

        A few carry a name from one iteration to another, or out of the loop, and are refused.
        """
        variable, outside = f"i{len(self.loops)}", self.names
        form = self.pick("own", "own", "again")
        text = self.pick(
            f"for {variable} in T.Parallel(3):",
            f"for {variable} in T.Parallel(n & 3):",
            f"for j{len(self.loops)}, {variable} in T.Parallel(2, 3):",
        )
        if form == "own":
            self.names = [f"{name}{len(self.loops)}" for name in "pqs"]
        self.put(indent, text)
        self.loops.append((variable, "parallel"))
        if form == "again" and self.random.random() < 0.06:
            form = "carried"
        for name in self.names if form != "carried" else ():
            self.put(indent + 1, f"{name} = {self.pick(variable, 'n', '2', *(outside if form == 'own' else ()))}")
        self.conditions.append(0)
        self.block(indent + 1, depth + 1)
        self.conditions.pop()
        self.loops.pop()
        self.names = outside
        for name in self.names if form == "again" else ():
            self.put(indent, f"{name} = {self.pick('n', '3', 'a[2]')}")

    def put_kind(self, indent: int, depth: int) -> None:
        """The other loops of the language."""
        variable, at = f"i{len(self.loops)}", len(self.loops)
        text, kind = self.pick(
            (f"for {variable} in T.serial(n):", "device"),
            (f"for {variable} in T.serial(1, m):", "device"),
            (f"for {variable} in T.serial(5, n, -2):", "device"),
            (f"for {variable} in T.Serial(0, 6, n * n + 1):", "device"),
            (f"for {variable} in T.unroll(1, 4):", "device"),
            (f"for {variable} in T.unroll(0, 5, 2):", "device"),
            (f"for {variable} in T.vectorized(4):", "vectorized"),
            (f"for {variable} in T.Vectorized(1, 3):", "vectorized"),
            (f"for {variable} in T.Pipelined(3, num_stages=2):", "vectorized"),
            (f"for {variable} in T.Pipelined(n):", "vectorized"),
            (f"for h{at}, j{at}, {variable} in T.grid(2, 1, 2):", "grid"),
            (f"for {variable} in range(*(1, 4)):", "device"),
            (f"for {variable} in (lambda: range(m))():", "device"),
        )
        self.loop(indent, depth, variable, kind, text)

    def put_items(self, indent: int, depth: int) -> None:
        """Compile-time loops over what Python makes."""
        variable, at = f"i{len(self.loops)}", len(self.loops)
        p, q = self.operand(), self.operand()
        target, items = self.pick(
            (f"(j{at}, {variable})", f"zip((1, 2), [{p}, {q}])"),
            (f"{variable}, j{at}", f"pairs({p}, {q})"),
            (f"j{at}, {variable}", f"{{0: {p}, 3: {q}}}.items()"),
            (f"j{at}, ({variable}, *k{at})", f"enumerate([({p}, 1), ({q}, 2, 3)])"),
            (variable, f"reversed(({p}, {q}))"),
            (variable, f"map(lambda v: v + 1, ({p}, 2))"),
            (variable, f"(v for v in ({p}, {q}))"),
            (variable, "filter(lambda v: v != 1, (0, 1, 3))"),
            (variable, "sorted({3, 1})"),
            (variable, f"[{p}] * 2"),
            (variable, f"({p}, {q})[::-1]"),
        )
        self.loop(indent, depth, variable, "compile-time", f"for {target} in {items}:")

    def put_grid(self, indent: int, depth: int) -> None:
        variable = f"i{len(self.loops)}"
        self.loop(
            indent, depth, variable, "grid", f"for j{len(self.loops)}, {variable} in T.grid(2, {self.pick('n', '2')}):"
        )

    def put_tuple(self, indent: int, depth: int) -> None:
        variable = f"i{len(self.loops)}"
        self.loop(indent, depth, variable, "compile-time", f"for {variable} in ({self.operand()}, {self.operand()}):")

    def put_list(self, indent: int, depth: int) -> None:
        variable = f"i{len(self.loops)}"
        self.loop(indent, depth, variable, "compile-time", f"for {variable} in [v * 2 for v in range(3)]:")

    def put_enumerate(self, indent: int, depth: int) -> None:
        variable = f"i{len(self.loops)}"
        text = f"for at{len(self.loops)}, {variable} in enumerate([{self.operand()}, {self.operand()}]):"
        self.loop(indent, depth, variable, "compile-time", text)

    def put_while(self, indent: int, depth: int) -> None:
        count = self.fresh("w")
        self.put(indent, f"{count} = {self.pick('0', 'n', '1')}")
        self.put(indent, f"while {count} < {self.pick('3', 'n', 'm')} and ({self.condition()}):")
        self.put(indent + 1, f"{count} += 1")
        self.body(indent + 1, depth, count, "device")

    def put_match(self, indent: int, depth: int) -> None:
        self.put(indent, f"match {self.random.randrange(3)}:")
        self.put(indent + 1, "case 0 | 1:")
        self.block(indent + 2, depth + 1)
        self.put(indent + 1, "case other:")
        self.block(indent + 2, depth + 1)

    def text(self) -> str:
        self.put(2, 'own = T.alloc_local((4,), "int32")')
        self.put(2, "for c in T.unroll(4):")
        self.put(3, f"own[c] = {self.pick('c', '2', 'n')}")
        for name in self.names:
            if self.random.random() >= self.unbound:
                first = self.pick("0", "1", "n", "a[1]", "5", "5", 'T.alloc_var("int32", init=m)')
                self.put(2, f"{name} = {first}")
        self.block(2, 0)
        self.block(2, 0)
        for at, name in enumerate(self.names):
            self.put(2, f"out[{at}] = {name}")
        return HEAD + "\n".join(self.lines) + "\n"


def run_by_python(source: str, a: list[int], out: list[int], n: int, m: int) -> None:
    """The kernel's text as CPython runs it, on lists, in place."""

    class T:
        int32 = "int32"
        max, min, abs = max, min, abs

        @staticmethod
        def serial(*bounds: int, num_stages: int = 0) -> range:
            return range(*bounds)

        Serial = unroll = vectorized = Vectorized = Pipelined = serial

        @staticmethod
        def grid(*extents: int) -> Any:
            return itertools.product(*map(range, extents))

        @staticmethod
        def Parallel(*extents: int) -> Any:
            return range(*extents) if len(extents) == 1 else itertools.product(*map(range, extents))

        @staticmethod
        def alloc_var(dtype: str, init: int) -> int:
            return init

        @staticmethod
        def alloc_local(shape: tuple[int], dtype: str) -> list[int]:
            return [0] * shape[0]

        @staticmethod
        def if_then_else(condition: Any, x: int, y: int) -> int:
            return x if condition else y

        @staticmethod
        def cast(value: int, dtype: str) -> int:
            size = 1 << int(dtype.lstrip("uint"))
            value %= size
            return value - size if dtype[0] == "i" and value >= size // 2 else value

    body = MACROS.replace("@T.macro", "") + HELPERS + "def k(a, out, n, m):\n    if True:\n" + source[len(HEAD) :]
    namespace: dict[str, Any] = {"T": T}
    exec(body, namespace)
    namespace["k"](a, out, n, m)
