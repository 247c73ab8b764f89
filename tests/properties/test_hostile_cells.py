"""Cells that are absurd on purpose: each gets located diagnostics within a bounded time, and the process lives."""

from __future__ import annotations

import contextlib
import gc
import io
import warnings
from typing import Any

import pytest
from properties.reporting import compiled

HEAD = "import tilelang.language as T\n"
KERNEL = '@T.prim_func\ndef k(a: T.Tensor((64,), "int32"), out: T.Tensor((64,), "int32"), n: T.int32):\n'
LAUNCH = "    with T.Kernel(1, threads=1):\n"
SECONDS = 60


def cell(body: str, before: str = "") -> str:
    lines = "".join(f"        {line}\n" for line in body.split("\n"))
    return HEAD + before + KERNEL + LAUNCH + lines


def codes(text: str, seconds: int = SECONDS) -> set[str]:
    """The codes of what is said of a text; its report is checked."""
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")  # of Python about the text
        return {found.code for found in compiled(text, seconds).diagnostics}


def nested(opening: str, depth: int, body: str = "out[0] = n") -> str:
    """A block statement in itself."""
    lines = ["    " * level + opening.format(level) for level in range(depth)]
    return "\n".join([*lines, "    " * depth + body])


STORES_OF_NO_NUMBER = ["None", "'x'", "b'x'", "[1]", "(1, 2)", "{}", "object()", "a", "T", "print", "..."]


@pytest.mark.parametrize("value", STORES_OF_NO_NUMBER)
def test_what_is_no_number_is_not_stored(value: str) -> None:
    assert codes(cell(f"out[0] = {value}"))
    assert codes(cell(f"out[n] = {value}"))
    assert codes(cell(f"for i in T.Parallel(8):\n    out[i] = {value}"))


NESTED = {
    "if": ("if n > {}:", 1000),
    "device loop": ("for i{} in range(2):", 1000),
    "while": ("while n > {}:", 1000),
    "compile-time loop": ("for i{} in [0]:", 1000),
    "if, near the limit of Python": ("if n > {}:", 90),
    "device loop, near the limit of Python": ("for i{} in range(2):", 90),
    "compile-time loop, near the limit of Python": ("for i{} in [0]:", 90),
    "while, near the limit of Python": ("while n > {}:", 90),
}


@pytest.mark.parametrize("name", NESTED)
def test_blocks_in_blocks(name: str) -> None:
    opening, depth = NESTED[name]
    said = codes(cell(nested(opening, depth)))
    assert said <= {"TL005", "TL127"} if depth < 100 else said == {"TL005"}


EXPRESSIONS = {
    "parentheses": "(" * 1000 + "n" + ")" * 1000,
    "brackets": "[" * 1000 + "n" + "]" * 1000,
    "subscripts": "a[" * 1000 + "0" + "]" * 1000,
    "signs": "-" * 1000 + "n",
    "nots": "not " * 1000 + "n",
    "lambdas": "lambda: " * 1000 + "n",
    "conditions": "n if n else " * 1000 + "n",
    "comparisons": " < ".join(["n"] * 1000),
    "calls": "abs(" * 90 + "n" + ")" * 90,
    "sums": " + ".join(["n"] * 3000),
    "products of reads": " * ".join(["a[n]"] * 300),
    "powers": "n" + " ** 2" * 300,
    "shifts": "n" + " << 1" * 300,
    "attributes": "n" + ".x" * 1000,
    "f-strings": "f'{n}'" * 1000,
    "comprehensions": "[" * 30 + "n" + "".join(f" for v{at} in [1]]" for at in range(30)),
}


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_expressions_in_expressions(name: str) -> None:
    codes(cell(f"out[0] = {EXPRESSIONS[name]}"))
    codes(cell(f"x = {EXPRESSIONS[name]}\nif x:\n    out[0] = 1"))


SHARED = ["x + x", "x * n + x", "(x << 1) ^ x", "x // 3 + x % 5", "max(x, x + 1)", "x if x > 3 else x + 1", "abs(x)"]
SHARED += ["x or x", "x and (x or n)", "(lambda v: v * v)(x)"]
SHARED_USES = [
    "out[0] = x",
    "out[x] = 1",
    "out[0] = a[x]",
    "if x > 3:\n    out[0] = 1",
    "for i in range(x):\n    out[i] = 1",
]
SHARED_USES += ["T.copy(a[x:x + 8], out[0:8])", "for i in T.Parallel(8):\n    out[x + i] = x"]


@pytest.mark.parametrize("step", SHARED)
def test_expressions_whose_parts_are_shared_sixty_times_over(step: str) -> None:
    """Written out as trees they would not fit into any memory."""
    for use in SHARED_USES:
        assert not codes(cell(f"x = n\nfor i in [1] * 60:\n    x = {step}\n{use}"))
        codes(cell(f"grow = lambda x: {step}\nx = n\n" + "x = " + "grow(" * 40 + "n" + ")" * 40 + f"\n{use}"))


DEEP = {  # each in itself; TVM's time grew with the number of ways to the innermost part
    "a condition": "(1 if {e} else {d})",
    "a condition of an operation": "T.if_then_else({e} > {d}, 1, n)",
    "and": "({e} and n > {d})",
    "or": "({e} or n > {d})",
    "and and or": "(({e} or n > {d}) and n < {d})",
    "and of reads": "({e} and a[{d} % 64] > 0)",
    "least and greatest": "T.max(T.min({e}, n), {d})",
    "absolute value": "abs({e} - {d})",
    "floored division": "(({e} + {d}) // 3)",
    "floored remainder and division": "(({e}) % 17 // 2 + n)",
    "casts": "T.cast(T.cast({e}, 'int64') + {d}, 'int32')",
    "index": "a[({e}) % 64]",
}


@pytest.mark.parametrize("name", DEEP)
def test_the_same_operation_deep_in_itself(name: str) -> None:
    for depth in (6, 12, 24, 60):
        value = "n"
        for level in range(depth):
            value = DEEP[name].format(e=value, d=level)
        codes(cell(f"out[0] = {value}"))
        if depth < 60:
            codes(cell(f"if {value}:\n    out[1] = 1\nfor j in T.serial({value}):\n    out[j] = j\nout[{value}] = 2"))
            codes(cell(f"for i in T.Parallel(64):\n    out[i] = a[i] + {value}"))
            steps = "".join(f"    x = {DEEP[name].format(e='x', d=level)}\n" for level in range(depth))
            codes(cell("out[0] = step(n, n, a)", f"@T.macro\ndef step(x, n, a):\n{steps}    return x\n"))


CONSTANTS = [
    "10**5000",
    "-(10**5000)",
    "10**30",
    "2**63",
    "-(2**63) - 1",
    "2**31",
    "1e400",
    "float('nan')",
    "1 << 100000",
]
CONSTANT_PLACES = [
    "out[0] = {}",
    "out[0] = n + {}",
    "out[{}] = 1",
    "for i in range({}):\n    out[0] = i",
    "for i in range(0, {}, 1):\n    pass",
    "x = n\nx = {}\nout[0] = x",
    "x = n > {}\nif x:\n    out[0] = 1",
    "out[0] = n << {}",
    "out[0] = n ** {}",
    "out[0] = n // {}",
    's = T.alloc_shared(({},), "int32")\nout[0] = s[0]',
    's = T.alloc_local((8, {}), "int32")\nout[0] = s[0, 0]',
    "for i in T.Parallel({}):\n    out[0] = 1",
    "for i in T.unroll({}):\n    out[0] = i",
    "T.fill(out, {})",
    "for v in [{}]:\n    out[0] = v",
    "out[0] = T.cast({}, 'int64')",
    "T.print({})",
]


@pytest.mark.parametrize("constant", CONSTANTS)
def test_huge_constants(constant: str) -> None:
    for place in CONSTANT_PLACES:
        codes(cell(place.format(constant)))


SHAPES = [
    "(2**31,)",
    "(2**62,)",
    "(2**70,)",
    "(65536, 65536, 65536)",
    "(0,)",
    "(-1,)",
    "(1,) * 200",
    "()",
    "(10**5000,)",
    "(1.5,)",
]


@pytest.mark.parametrize("shape", SHAPES)
def test_giant_shapes(shape: str) -> None:
    codes(HEAD + f'@T.prim_func\ndef k(a: T.Tensor({shape}, "int8")):\n{LAUNCH}        a[0] = 1\n')
    for memory in ("shared", "local", "fragment"):
        codes(cell(f's = T.alloc_{memory}({shape}, "int8")\nT.clear(s)'))
    codes(
        HEAD
        + f'@T.prim_func\ndef k(a: T.Tensor((8,), "int8")):\n    with T.Kernel(*{shape}, threads=1):\n        a[0] = 1\n'
    )


def test_thousands_of_parameters() -> None:
    parameters = ", ".join(f'p{at}: T.Tensor((8,), "int32")' for at in range(2000))
    body = "".join(f"        p{at}[0] = {at}\n" for at in range(2000))
    assert not codes(HEAD + f"@T.prim_func\ndef k({parameters}):\n{LAUNCH}{body}")
    arguments = ", ".join(["n"] * 3000)
    names = ", ".join(f"v{at}" for at in range(3000))
    assert not codes(cell(f"put({arguments})\nout[0] = 1", f"@T.macro\ndef put({names}):\n    pass\n"))


TRAPS = """
import sys
def trap(name, end):
    def act(self, *_, **__):
        raise end
    return act
class Trap: pass
class Leaving(BaseException): pass
def made(*names, end):
    return type("Trap", (), {name: trap(name, end) for name in names})()
"""
METHODS = [
    "__del__",
    "__iter__",
    "__repr__",
    "__str__",
    "__eq__",
    "__lt__",
    "__hash__",
    "__bool__",
    "__len__",
    "__index__",
]
METHODS += [
    "__float__",
    "__call__",
    "__getattr__",
    "__getattribute__",
    "__getitem__",
    "__contains__",
    "__add__",
    "__radd__",
]
METHODS += [
    "__format__",
    "__array__",
    "__enter__",
    "__class_getitem__",
    "__iadd__",
    "__instancecheck__",
    "__length_hint__",
]
ENDS = [
    "ValueError('trap')",
    "SystemExit(3)",
    "Leaving()",
    "RecursionError()",
    "MemoryError()",
    "StopIteration()",
    "GeneratorExit()",
]
USES = [
    "out[0] = t",
    "out[t] = 1",
    "x = a[t]",
    "for v in t:\n    out[0] = 1",
    "for v in [t, t]:\n    out[0] = v",
    "x = t + n\nout[0] = x",
    "x = n * t",
    "x = [t] == [n]",
    "x = n in [t]",
    "x = n in t",
    "if t:\n    out[0] = 1",
    "while t:\n    out[0] = 1",
    "x = f'{t}'",
    "x = t()",
    "x = t.attribute",
    "print(t)",
    "x = n\nif n > 1:\n    x = t\nout[0] = x",
    "for i in range(n):\n    y = t",
    "t += n",
    "x = {t: 1}",
    "x = max(t, n)",
    "x = sum([t])",
    "u, w = t",
    "put(t)",
    "T.fill(out, t)",
    "T.copy(t, out)",
    "x = len(t)",
    "x = isinstance(n, t)",
    "x = int(t)",
    "x = [v for v in t]",
    "t[0] = n",
    "with t:\n    pass",
    "assert t",
    "del t",
    "for i in range(t):\n    pass",
    "x = T.cast(n, t)",
    "x = t if n > 0 else t",
    "x = n and t",
    "T.print(t)",
]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # Python tells of what `__del__` raises
@pytest.mark.parametrize("end", ENDS)
def test_objects_that_raise_or_leave_whenever_they_are_touched(end: str) -> None:
    before = TRAPS + f"@T.macro\ndef put(v):\n    out = v\nends = {end}\n"
    for at, method in enumerate(METHODS):
        made = before + f"t = made({method!r}, end=ends)\n"
        every = method in ("__repr__", "__eq__", "__iter__", "__hash__") and end == ENDS[0]
        for use in USES if every else USES[at % 9 :: 9]:
            codes(cell(use + "\nout[1] = n", made))


ENDLESS = {
    "a generator": "def forever():\n    while True:\n        yield 1\nit = forever()\n",
    "an iterator": "class It:\n    def __iter__(self): return self\n    def __next__(self): return 1\nit = It()\n",
    "a sequence": "class It:\n    def __getitem__(self, at): return at\nit = It()\n",
    "counting": "import itertools\nit = itertools.count()\n",
    "a dict that grows": "class D(dict):\n    def __iter__(self):\n        at = 0\n        while True:\n            yield at\n            at += 1\nit = D()\n",
    "iter of two arguments": "it = iter(int, 1)\n",
    "zip of endless ones": "import itertools\nit = zip(itertools.count(), itertools.cycle([1]))\n",
}
ENDLESS_USES = [
    "for v in it:\n    pass",
    "for v in it:\n    out[0] = 1",
    "x = [v for v in it]",
    "x = sum(v for v in it)",
    "x, *y = it",
    "x = n in it",
    "x = max(it)",
]


@pytest.mark.parametrize("name", ENDLESS)
def test_endless_iterables(name: str) -> None:
    for use in ENDLESS_USES:
        said = codes(cell(use, ENDLESS[name]))
        assert said & {"TL112", "TL116", "TL144", "TL111"}, use


RECURSION = {
    "itself": "@T.macro\ndef r(o, v):\n    r(o, v)\n",
    "twice itself": "@T.macro\ndef r(o, v):\n    r(o, v)\n    r(o, v)\n",
    "each other": "@T.macro\ndef q(o, v):\n    r(o, v)\n@T.macro\ndef r(o, v):\n    q(o, v)\n",
    "under a condition of the device": "@T.macro\ndef r(o, v):\n    if v > 0:\n        r(o, v - 1)\n",
    "in a loop of the device": "@T.macro\ndef r(o, v):\n    for i in range(v):\n        r(o, i)\n",
    "in a compile-time loop": "@T.macro\ndef r(o, v):\n    for i in (1, 2, 3):\n        r(o, i)\n",
    "in a comprehension": "@T.macro\ndef r(o, v):\n    x = [r(o, i) for i in (1, 2)]\n",
    "by a helper": "def q(o, v):\n    return r(o, v)\n@T.macro\ndef r(o, v):\n    q(o, v)\n",
}


@pytest.mark.parametrize("name", RECURSION)
def test_macros_that_call_themselves_for_ever(name: str) -> None:
    said = codes(cell("r(out, n)", RECURSION[name]))
    assert said & {"TL143", "TL127"} and "TL900" not in said


def test_helpers_that_call_themselves_for_ever() -> None:
    assert codes(cell("out[0] = again(n)", "def again(v):\n    return again(v)\n"))
    assert codes(cell("out[0] = again(n)", "again = lambda v: again(v + 1)\n"))


LONG = {
    "assignments outside kernels": HEAD + "x = 1\n" * 100_000,
    "empty lines": HEAD + "\n" * 100_000,
    "comments with signs": HEAD + "# é 变\n" * 100_000,
    "one string": HEAD + 'x = """' + "é\n" * 100_000 + '"""\n',
    "a syntax error at the end": HEAD + "x = 1\n" * 100_000 + "x = (\n",
    "undefined names": HEAD + "undefined\n" * 100_000,
}


@pytest.mark.parametrize("name", LONG)
def test_cells_of_a_hundred_thousand_lines(name: str) -> None:
    codes(LONG[name])


@pytest.mark.slow
def test_a_kernel_of_twenty_thousand_lines_takes_time_in_proportion() -> None:
    """Not timed; a kernel whose time grows with the square of its length would not end here."""
    assert not codes(cell("\n".join(f"out[{at % 64}] = n + {at}" for at in range(20_000))))


def test_a_kernel_of_thousands_of_mistakes_reports_them_all() -> None:
    made: Any = compiled(cell("\n".join(f"out[{at % 64}] = missing{at}" for at in range(3000))), SECONDS)
    assert len(made.diagnostics) == 3000


def test_the_collector_stays_as_it_was() -> None:
    for enabled in (True, False):
        (gc.enable if enabled else gc.disable)()
        try:
            codes(cell("out[0] = missing"))
            assert gc.isenabled() == enabled
        finally:
            gc.enable()
