"""Random kernels over re-bound names and nested control flow of both kinds, and the same text as CPython runs it."""

from __future__ import annotations

import random
from typing import Any

MACROS = """@T.macro
def clip(v, low):
    r = v
    if v < low:
        r = low
    w = r
    return w + low

@T.macro
def total(buf, count):
    s = 0
    for i in range(count):
        if buf[i] > 3:
            s += 2
            continue
        s += buf[i]
    return s

@T.macro
def climb(v, depth):
    if depth == 0:
        return v
    return climb((v + depth) % 13, depth - 1)

"""
HEAD = (
    "import tilelang.language as T\n"
    + MACROS
    + """@T.prim_func
def k(a: T.Tensor((8,), "int32"), out: T.Tensor((8,), "int32"), n: T.int32, m: T.int32):
    with T.Kernel(1, threads=1):
"""
)


class RandomKernel:
    """The body of a kernel from a seed, or from the choices of another source of random numbers.

    unbound: how likely a name is left without a first binding.
    """

    def __init__(self, source: int | random.Random, unbound: float = 0.06):
        self.random = random.Random(source) if isinstance(source, int) else source
        self.unbound = unbound
        self.lines: list[str] = []
        self.names = ["x", "y", "z"]
        self.loops: list[tuple[str, str]] = []
        self.number = 0

    def pick(self, *items: Any) -> Any:
        return self.random.choice(items)

    def fresh(self, stem: str) -> str:
        self.number += 1
        return f"{stem}{self.number}"

    def operand(self) -> str:
        elements = [f"a[{self.random.randrange(8)}]", f"out[{self.random.randrange(4)}]"]
        return self.pick("n", "m", "1", "2", "3", *elements, *self.names, *self.names, *(v for v, _ in self.loops))

    def expression(self) -> str:
        p, q, r = self.operand(), self.operand(), self.operand()
        zero = self.pick("n", "m", "a[1]", "out[0]")
        return self.pick(
            p,
            f"({p} + {q}) % 31",
            f"({p} * {q} - {r}) % 17",
            f"({p} if {q} > {r} else {r})",
            f"max({p}, {q})",
            f"min({p}, {q}, {r})",
            f"abs({p} - {q})",
            f"sum(v * {p} for v in (1, 2)) % 23",
            f"sum([v + {p} for v in range(3) if v != 1]) % 23",
            f"clip({p}, {q}) % 31",
            f"total(a, {p} % 5)",
            f"climb({p}, 2)",
            f"[{p}, {q}][{self.random.randrange(2)}]",
            f"({p} and {q})",
            f"({p} or {q})",
            f"{{0: {p}, 1: {q}}}[{self.random.randrange(2)}]",
            f"({p} // 3 - {q} % 4)",
            f"(-{p} // 3 + -{q} % 4)",
            f"(lambda v: v + {p})({q}) % 19",
            f"int({p} > {q})",
            f"(({p} & 7) << 1 | ({q} & 3)) ^ 5",
            f"({p} - 9) // {self.pick(-4, -1, 2, 5)}",
            f"({p} - 9) % {self.pick(-4, -3, 2, 7)}",
            f"({p} - {q}) // ({r} % 3 + 1)",
            f"({p} - {q}) % ({r} % 3 - 4)",
            f"(({p} - {q}) % 64 << ({r} & 3)) - 40",
            f"({p} - {q}) >> ({r} & 3)",
            f"(~{p} | {q}) % 13",
            f"climb(clip({p}, {q}) % 9, 1)",
            f"[v - {p} for v in (1, 4) if v > 1][0]",
            f"sum(v * w for v in ({p}, 2) for w in (1, {q})) % 27",
            *([f"({p} // {zero}) % 29", f"{p} % {zero}"] if self.random.random() < 0.3 else []),
            *(self.python_expressions(p, q, r) if self.random.random() < 0.5 else []),
        )

    def python_expressions(self, p: str, q: str, r: str) -> list[str]:
        """What Python does while a kernel is built: calls, containers, late binding, names of an expression's own."""
        own = self.pick(*self.names)
        return [
            f"(lambda v={p}: v - {q})()",
            f"[g() for g in [lambda: {p}, lambda: {q} + 1]][{self.random.randrange(2)}]",
            f"[g(1) for g in [lambda v, w=w: v * w + {p} for w in (2, 3)]][1] % 31",
            f"next(v for v in ({p}, {q}) if True)",
            f"{{**{{0: {p}}}, 1: {q}}}[{self.random.randrange(2)}]",
            f"[*({p}, 2), {q}][{self.random.randrange(3)}]",
            f"max([{p}, {q}, {r}], default=0)",
            f"sum({own} * 2 for {own} in ({p}, 1)) % 23",
            f"[{own} for {own} in ({p}, {q})][1]",
            f"sum(v * w for v, w in zip(({p}, {q}), [{r}, 2])) % 29",
            f"({p} if {q} else {r})",
            f"(not {p}) + {q}",
            f"({p} > {q}) * 3 + ({q} > {r})",
            f"({p} == {q} == {r}) + 2",
            f"-({p} % 7) ** 2 + {q}",
            f"divmod({p} - 9, 4)[{self.random.randrange(2)}]",
            f"pow({p} % 5, {self.random.randrange(4)})",
            f"bool({p}) + round({q})",
            f"len([{p}, {q}]) + {r}",
            f"'abc'.index('b') + {p}",
            f"all(v > {p} for v in (3, {q})) + {r}",
            f"({p} if {q} > 1 else {r} if {p} < 2 else 4)",
            f"abs(min({p}, -{q})) % 19",
            f"({p} ^ {q} | {r}) & 15",
            f"list(reversed([{p}, {q}]))[0]",
            f"dict(v={p}, w={q})['w']",
            f"(({p}, {q}), {r})[0][1]",
            f"int(str(1{self.random.randrange(9)})) + {p}",
        ]

    def condition(self) -> str:
        p, q, r = self.operand(), self.operand(), self.operand()
        return self.pick(
            *(
                [f"{p}", f"{p} - {q}", f"len([{p}]) > {self.random.randrange(3)}", f"all(v < {q} for v in ({p}, 3))"]
                if self.random.random() < 0.3
                else []
            ),
            f"{p} > {q}",
            f"{p} == {q}",
            f"{p} < {q} < {r}",
            f"{p} % 2 == 0 and {q} > 1",
            f"{p} > 2 or {q} == {r}",
            f"not {p} > {r}",
            f"{p} in (1, {q})",
            f"{p} not in [2, {q}]",
            f"{p} % 3",
            f"any(v > {p} for v in (1, {q}))",
        )

    def put(self, indent: int, text: str) -> None:
        self.lines.append("    " * indent + text)

    def block(self, indent: int, depth: int) -> None:
        for _ in range(self.random.randrange(1, 4)):
            self.statement(indent, depth)

    def statement(self, indent: int, depth: int) -> None:
        simple = ["bind", "bind", "bind", "augment", "store", "pair", "leave", "walrus", "python"]
        nested = ["if", "if", "range", "tuple", "list", "while", "unroll", "enumerate", "match", "grid", "forever"]
        kind = self.pick(*simple, *(nested if depth < 3 else []))
        if kind == "grid" and self.random.random() < 0.6:
            kind = "parallel"
        getattr(self, "put_" + kind)(indent, depth)

    def put_bind(self, indent: int, depth: int) -> None:
        self.put(indent, f"{self.pick(*self.names)} = {self.expression()}")

    def put_augment(self, indent: int, depth: int) -> None:
        name = self.pick(*self.names)
        self.put(indent, f"{name} {self.pick('+', '-', '*', '|', '^')}= {self.operand()}")
        self.put(indent, f"{name} %= 29")

    def put_store(self, indent: int, depth: int) -> None:
        place = f"out[{self.random.randrange(8)}]"
        if self.random.random() < 0.3:
            self.put(indent, f"{place} += {self.operand()}")
            self.put(indent, f"{place} %= 37")
        else:
            self.put(indent, f"{place} = {self.expression()}")

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
            f"pass; {x} = {p}; del {x}; {x} = {q}",
            f"{x} = ({p}, {q}); {x} = {x}[1]",
            f"{box} = {x}; {x} = {p}; {y} = {box} - {x}; {y} %= 37",
        ))  # fmt: skip

    def put_forever(self, indent: int, depth: int) -> None:
        count = self.fresh("w")
        self.put(indent, f"{count} = {self.pick('0', 'n % 2', '1')}")
        self.put(indent, "while True:")
        self.put(indent + 1, f"{count} += 1")
        self.put(indent + 1, f"if {count} > {self.pick('2', 'n', '3')}{self.pick('', f' or {self.condition()}')}:")
        self.put(indent + 2, "break")
        self.loops.append((count, "device"))
        self.block(indent + 1, depth + 1)
        self.loops.pop()

    def put_leave(self, indent: int, depth: int) -> None:
        kind = self.loops[-1][1] if self.loops else None
        if kind is None or (kind == "compile-time" and self.random.random() < 0.8):
            self.put_bind(indent, depth)
            return
        words = ["continue"] if kind in ("parallel", "grid") else ["break", "continue"]
        self.put(indent, f"if {self.condition()}:")
        if self.random.random() < 0.5:
            self.put_bind(indent + 1, depth)
        self.put(indent + 1, self.pick(*words))
        if self.random.random() < 0.3:
            self.put(indent, "else:")
            self.put_bind(indent + 1, depth)

    def put_if(self, indent: int, depth: int) -> None:
        self.put(indent, f"if {self.condition()}:")
        self.block(indent + 1, depth + 1)
        if self.random.random() < 0.3:
            self.put(indent, f"elif {self.condition()}:")
            self.block(indent + 1, depth + 1)
        if self.random.random() < 0.5:
            self.put(indent, "else:")
            self.block(indent + 1, depth + 1)

    def loop(self, indent: int, depth: int, variable: str, kind: str, text: str) -> None:
        self.put(indent, text)
        self.loops.append((variable, kind))
        self.block(indent + 1, depth + 1)
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
        """Most have names of their own: those that re-bind names from outside mostly carry a scalar and are refused."""
        variable, outside = f"i{len(self.loops)}", self.names
        own = self.random.random() < 0.75
        if own:
            self.names = [f"{name}{len(self.loops)}" for name in "pqs"]
        self.put(indent, f"for {variable} in T.Parallel(3):")
        self.loops.append((variable, "parallel"))
        if own:
            for name in self.names:
                self.put(indent + 1, f"{name} = {self.pick(variable, 'n', '2', *outside)}")
        self.block(indent + 1, depth + 1)
        self.loops.pop()
        self.names = outside

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
        self.loops.append((count, "device"))
        self.block(indent + 1, depth + 1)
        self.loops.pop()

    def put_match(self, indent: int, depth: int) -> None:
        self.put(indent, f"match {self.random.randrange(3)}:")
        self.put(indent + 1, "case 0 | 1:")
        self.block(indent + 2, depth + 1)
        self.put(indent + 1, "case other:")
        self.block(indent + 2, depth + 1)

    def text(self) -> str:
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
        unroll = Parallel = range

        @staticmethod
        def grid(rows: int, columns: int) -> Any:
            return ((i, j) for i in range(rows) for j in range(columns))

        @staticmethod
        def alloc_var(dtype: str, init: int) -> int:
            return init

    body = MACROS.replace("@T.macro", "") + "def k(a, out, n, m):\n    if True:\n" + source[len(HEAD) :]
    namespace: dict[str, Any] = {"T": T}
    exec(body, namespace)
    namespace["k"](a, out, n, m)
