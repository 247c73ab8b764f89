"""Random expressions and conditions over the names, elements and functions of a random kernel."""

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
def keep(buf, at, v):
    if v > 2:
        buf[at] = v
    else:
        buf[at] += 1

@T.macro
def climb(v, depth):
    if depth == 0:
        return v
    return climb((v + depth) % 13, depth - 1)

"""
HELPERS = """def weighted(values):
    total = 0
    for at, v in enumerate(values):
        total = total + v * (at + 1)
    return total

def pairs(p, q):
    yield p, 1
    yield 2, q

def chosen(p, *rest, by=0):
    return (p, *rest)[by]

"""


class RandomExpressions:
    """names, loops: what may be read where the expression stands."""

    random: random.Random
    names: list[str]
    loops: list[tuple[str, str]]

    def pick(self, *items: Any) -> Any:
        return self.random.choice(items)

    def operand(self) -> str:
        elements = [f"a[{self.random.randrange(8)}]", f"out[{self.random.randrange(4)}]"]
        elements += [f"own[{self.random.randrange(4)}]"] * (self.random.random() < 0.5)
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
            f"T.if_then_else({p} > {q}, {q}, {r})",
            f"(T.max({p}, {q}) - T.min({q}, {r}, 4)) % 33",
            f"({p} + T.cast(T.cast((n + {q}) * {self.pick(1, 37, -50)}, '{self.pick('int8', 'uint8', 'int16')}'), 'int32')) % 41",
            f"T.abs({p} - {q}) % 23",
            f"weighted([{p}, {q}, 2]) % 43",
            f"chosen({p}, {q}, {r}, by={self.random.randrange(3)})",
            f"sum(v * w for v, w in pairs({p}, {q})) % 29",
            f"a[({p} + {q}) % 8]",
            f"own[{p} % 4] - a[{q} & 7]",
            f"[{p}, *({q}, {r})][-1]",
            f"({p} < {q} <= {r}) + ({p} != {q}) * 2",
            f"({p} or {q} and {r})",
            f"({p} if {q} < {r} < 9 else {q} if not {p} else -{r})",
            f"sorted([3, 1, 2])[{self.random.randrange(3)}] * {p} % 19",
            f"dict(zip('pq', ({p}, {q})))['{self.pick('p', 'q')}']",
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
