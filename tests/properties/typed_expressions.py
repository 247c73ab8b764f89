"""Random expressions of a wanted dtype, with a bound of their magnitude: nothing overflows that has no room to wrap.

Integers of 8 and 16 bits and unsigned ones wrap freely.  Wider signed ones stay small, as C and TVM leave their overflow open;
floats stay finite, so that no NaN hides a difference.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

FLOATS = ("float16", "bfloat16", "float32")
WRAPPING = ("int8", "int16", "uint8", "uint16", "uint32")
INTEGERS = (*WRAPPING, "int32", "int64")
LIMITS = {"int32": 2**28, "int64": 2**50, "float16": 2000, "bfloat16": 10**6, "float32": 10**6}
SMALL = 100  # what is kept in names and memory


@dataclass(eq=False)
class Memory:
    """A buffer of the kernel.

    limit: of the magnitude of its elements.  whole: its elements are integers, so that sums of them are exact.
    ready: it is written before whatever comes next.  ragged: the first extent is known only at the launch.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    memory: str
    limit: int = SMALL
    whole: bool = False
    ready: bool = True
    ragged: bool = False


@dataclass
class Scope:
    """What an expression may read.

    indices: (text, number of values from 0 on) of loop variables.  numbers: (text, dtype, limit) of names.
    own: the index at which a memory that the loop around writes may be read.
    """

    indices: list[tuple[str, int]] = field(default_factory=list)
    numbers: list[tuple[str, str, int]] = field(default_factory=list)
    memories: list[Memory] = field(default_factory=list)
    own: dict[str, str] = field(default_factory=dict)

    def with_numbers(self, *more: tuple[str, str, int]) -> Scope:
        return Scope(self.indices, [*self.numbers, *more], self.memories, self.own)


class Expressions:
    """`number(dtype, scope)` is (text, limit) of an expression of the dtype."""

    def __init__(self, source: random.Random):
        self.random = source

    def pick(self, *items: Any) -> Any:
        return self.random.choice(items)

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    # -- leaves ----------------------------------------------------------------------------------------------------
    def literal(self, dtype: str) -> tuple[str, int]:
        if dtype in FLOATS:
            return self.pick("0.5", "1.0", "2.0", "-1.5", "0.25", "3.0", "-2.0", "2", "-1"), 3
        low = 0 if dtype[0] == "u" else -7
        return str(self.random.randint(low, 9)), 9

    def index(self, extent: int, scope: Scope) -> str:
        """An index inside an extent."""
        fitting = [text for text, count in scope.indices if count <= extent]
        if fitting and self.chance(0.5):
            return self.pick(*fitting)
        if scope.indices and self.chance(0.7):
            text, count = self.pick(*scope.indices)
            turned = [f"({text} + {self.random.randint(1, 5)}) % {extent}", f"{text} * 3 % {extent}"]
            return self.pick(*turned, *([f"{extent - 1} - {text}"] if count <= extent else []))
        whole = [name for name, dtype, _ in scope.numbers if dtype == "int32"]
        if whole and self.chance(0.3):
            return f"{self.pick(*whole)} % {extent}"
        return str(self.pick(0, extent - 1, self.random.randrange(extent), -1))

    def element(self, memory: Memory, scope: Scope) -> str:
        if memory.name in scope.own:
            return f"{memory.name}[{scope.own[memory.name]}]"
        parts = [self.index(extent, scope) for extent in memory.shape]
        if memory.ragged:
            variable = self.pick(*[text for text, _ in scope.indices]) if scope.indices else None
            parts[0] = self.pick(variable, f"{variable} + 1", f"{variable} - 2") if variable else "0"
        elif memory.memory == "global" and scope.indices and self.chance(0.25):
            text, _ = self.pick(*scope.indices)  # affine, perhaps over an edge
            at = self.random.randrange(len(parts))
            parts[at] = self.pick(f"{text} - 1", f"{text} + 2", f"{text} * 2", f"{memory.shape[at]} - {text}")
        return f"{memory.name}[{', '.join(parts)}]"

    def leaf(self, dtype: str, scope: Scope) -> tuple[str, int]:
        """A name, an element or a literal with a cast, of the dtype; never a bare literal."""
        names = [(text, limit) for text, other, limit in scope.numbers if other == dtype]
        readable = [one for one in scope.memories if one.dtype == dtype and one.ready]
        kinds = [*["name"] * (2 * bool(names)), *["element"] * (2 * bool(readable)), "cast"]
        kind = self.pick(*kinds)
        if kind == "name":
            return self.pick(*names)
        if kind == "element":
            one = self.pick(*readable)
            return self.element(one, scope), one.limit
        if dtype == "int32" and scope.indices and self.chance(0.6):
            return self.pick(*scope.indices)
        others = [(text, other, limit) for text, other, limit in scope.numbers if other != dtype]
        others += [(self.element(one, scope), one.dtype, one.limit) for one in scope.memories if one.ready]
        others += [(text, "int32", count) for text, count in scope.indices]
        if not others or self.chance(0.2):
            text, limit = self.literal(dtype)
            return f"T.{dtype}({text})", limit
        return self.cast(*self.pick(*others), dtype)

    def cast(self, text: str, source: str, limit: int, dtype: str) -> tuple[str, int]:
        if source in FLOATS and dtype in INTEGERS:
            low, limit = (0, SMALL) if dtype[0] == "u" else (-SMALL, SMALL)
            text = f"T.clamp({text}, {low}.0, {limit}.0)"
        elif limit > LIMITS.get(dtype, 10**30):
            text, limit = f"({text} % 97)", 97
        text = self.pick(f'T.cast({text}, "{dtype}")', f"T.{dtype}({text})")
        return text, limit if dtype not in WRAPPING else 2**32

    # -- operators -------------------------------------------------------------------------------------------------
    def number(self, dtype: str, scope: Scope, depth: int = 2) -> tuple[str, int]:
        if depth <= 0:
            return self.leaf(dtype, scope)
        (p, a), (q, b), (r, c) = [self.number(dtype, scope, depth - self.pick(1, 1, 2)) for _ in range(3)]
        common = [
            (p, a),
            (f"({p} + {q})", a + b),
            (f"({p} - {q})", a + b),
            (f"({p} * {q})", a * b),
            (f"{self.pick('min', 'T.min')}({p}, {q})", max(a, b)),
            (f"{self.pick('max', 'T.max')}({p}, {q})", max(a, b)),
            (f"max({p}, {q}, {r})", max(a, b, c)),
            (f"({p} if {self.condition(scope, depth - 1)} else {q})", max(a, b)),
            (f"T.if_then_else({self.condition(scope, depth - 1)}, {p}, {q})", max(a, b)),
            (f"({p} {self.pick('and', 'or')} {q})", max(a, b)),
            (f"sum([{p}, {q}])", a + b),
            (f"sum(v * {p} for v in ({self.pick(1, 2)}, 2))", 4 * a),
            (f"[{p}, {q}][{self.random.randrange(2)}]", max(a, b)),
            (f"(lambda v: v + {p})({q})", a + b),
            (f"{{0: {p}, 1: {q}}}[{self.random.randrange(2)}]", max(a, b)),
            (f"-{p}", a),
            (f"abs({p})", a),
            (f"T.abs({p})", a),
            (f"larger({p}, {q})", max(a, b)),
            (f"({p} {self.pick('+', '-', '*')} {self.literal(dtype)[0]})", 9 * a + 9),
            (f"({self.literal(dtype)[0]} {self.pick('+', '-', '*')} {p})", 9 * a + 9),
            (f"{p} ** 2", a * a),
            (f"T.{dtype}(bool({self.condition(scope, depth - 1)}))", 1),
            (f"next(v for v in reversed([{p}, {q}]))", max(a, b)),
            (f"T.clamp({p}, {self.pick(0, 1, 2)}, {self.pick(5, 9)})", 9),
        ]
        special = self.of_floats(p, a, q, b) if dtype in FLOATS else self.of_integers(dtype, p, a, q, b)
        text, limit = self.pick(*common, *special)
        return self.fitted(text, limit, dtype, LIMITS.get(dtype))

    def of_floats(self, p: str, a: int, q: str, b: int) -> list[tuple[str, int]]:
        return [
            (f"({p} / {self.pick('2', '4.0', '3.0', '-0.5')})", 2 * a),
            (f"({p} / (abs({q}) + 1.0))", a),
            (f"T.floor({p})", a + 1),
            (f"T.ceil({p})", a + 1),
            (f"T.trunc({p})", a),
            (f"T.nearbyint({p})", a + 1),
            (f"({p} * 0.75 + {q})", a + b),
        ]

    def of_integers(self, dtype: str, p: str, a: int, q: str, b: int) -> list[tuple[str, int]]:
        c = self.random.randint(2, 9)
        d = c if dtype[0] == "u" else self.pick(c, -c)
        shift = self.random.randrange(4)
        return [
            (f"({p} // {d})", a + 1),
            (f"({p} % {d})", c),
            (f"({p} // ({q} % {c} + 1))", a + 1),
            (f"({p} % ({q} % {c} + 1))", c),
            (f"({p} << {shift})", a << shift),
            (f"({p} << ({q} & 3))", a << 3),
            (f"({p} >> {shift})", a + 1),
            (f"({p} >> ({q} & 3))", a + 1),
            (f"({p} & {q})", 2 * max(a, b) + 1),
            (f"({p} | {q})", 2 * max(a, b) + 1),
            (f"({p} ^ {q})", 2 * max(a, b) + 1),
            (f"~{p}", a + 1),
            (f"divmod({p}, {d})[{self.random.randrange(2)}]", a + c),
            (f"T.floordiv({p}, {d})", a + 1),
            (f"T.truncmod({p}, {c})", c) if dtype in ("int32", "int64") else (p, a),
        ]

    def fitted(self, text: str, limit: int, dtype: str, allowed: int | None = SMALL) -> tuple[str, int]:
        """The expression brought back below a limit."""
        if dtype in WRAPPING or allowed is None or limit <= allowed:
            return text, limit
        if dtype in FLOATS:
            form = self.pick("T.clamp({}, -30.0, 30.0)", "T.max(T.min({}, 25.0), -20.0)", "min(max({}, -9.5), 30)")
            return form.format(text), 30
        return self.pick((f"({text} % 97)", 97), (f"T.clamp({text}, -50, 60)", 60), (f"({text} % -31)", 31))

    def whole(self, dtype: str, scope: Scope, depth: int = 2, limit: int = 8) -> str:
        """A value of a float dtype that is an integer of at most this magnitude; any small one of an integer dtype."""
        text, _ = self.number(dtype, scope, depth)
        if dtype in FLOATS:
            return f"T.{self.pick('floor', 'nearbyint')}(T.clamp({text}, -{limit}.0, {limit}.0))"
        low = 0 if dtype[0] == "u" else -limit
        return f"T.clamp({text}, {low}, {limit})"

    # -- conditions ------------------------------------------------------------------------------------------------
    def dtypes(self, scope: Scope) -> list[str]:
        found = {dtype for _, dtype, _ in scope.numbers} | {one.dtype for one in scope.memories}
        return sorted(found - {"bool"} | {"int32"})

    def condition(self, scope: Scope, depth: int = 1) -> str:
        dtype = self.pick(*self.dtypes(scope))
        p, q, r = [self.number(dtype, scope, max(0, depth - 1))[0] for _ in range(3)]
        literal = self.literal(dtype)[0]
        forms = [
            f"{p} {self.pick('<', '<=', '>', '>=', '==', '!=')} {q}",
            f"{p} {self.pick('<', '>=')} {literal}",
            f"{literal} {self.pick('<', '>=')} {p}",
            f"{p} < {q} <= {r}",
            f"{p} > {q} and {q} < {r}",
            f"{p} > {q} or {q} == {r}",
            f"not {p} > {q}",
            f"{p} in ({q}, {literal})",
            f"{p} not in [{literal}, {q}]",
            f"{p}",
            f"not {p}",
            f"any(v > {p} for v in ({q}, {literal}))",
            f"bool({p})",
        ]
        if dtype not in FLOATS:
            forms += [f"{p} % {self.random.randint(2, 4)}", f"{p} % 3 == {self.random.randrange(3)}", f"{p} & 1"]
        return f"({self.pick(*forms)})"


MACROS = """@T.macro
def clip(v, low):
    r = v
    if v < low:
        r = low
    return r

@T.macro
def larger(v, low):
    return max(v, low)

"""


def arguments(values: Sequence[Any]) -> str:
    return ", ".join(map(str, values))
