"""Python's built-in functions on device values, on compile-time values, and on both at once."""

from __future__ import annotations

import numpy as np
import pytest
from specification.cells import cell, computes, kernel, launched, like_python, refuses, said

import tilelang_nb
from tilelang_nb.frontend.attributes import HIDDEN, PUBLIC
from tilelang_nb.language.values import Buffer, Region, Value, is_device

# What each of these leaves in `out[0]` is what Python leaves there.
INTEGERS = """
abs(n - 4) + abs(-3)
abs(n > 1)
int(f[0]) + int(n > 3) + int('12')
int(2.9) + int(f[1] * 2)
round(f[0]) * 100 + round(f[1]) * 10 + round(f[2])
round(n) + round(2.5) + round(3.5)
round(n > 2)
divmod(n - 7, m)[0] * 10 + divmod(n - 7, m)[1]
divmod(-17, m)[0] + divmod(n, 3)[1] + divmod(7, 3)[1]
pow(n, 2) + pow(2, 3) + pow(n, 0)
min(n, m, 2) + max(3, n)
min([n, m]) + max((n, 4, m)) + min({1, 2})
max(v * n for v in (1, -2)) + min(v for v in range(3))
max(n > 1, m > 7) + min(True, n > 9)
max([1], default=n) + max([], default=m) + min([n, 4], default=0)
min(3, 1, key=lambda v: -v) + max('ab', 'b', key=len).count('a')
sum([n, m, 1]) + sum([1, 2]) + sum([], n) + sum([])
sum([n > 1, m > 1, True])
sum((v * n for v in range(3)), m) + sum([n], start=m) + sum({1: n, 2: m}.values())
any([n > 3, False]) + any([]) * 2 + any([n > 9, m > 9]) * 4
all([n > 1, True]) + all([]) * 2 + all([n, m]) * 4 + all([n > 1, False]) * 8
any(v == n for v in (3, 4)) + all(v < 9 for v in (n, m))
bool(n) + bool(n - 3) * 2 + bool(f[6]) * 4 + bool([]) * 8
bool() + int() + len(str()) + sum(tuple())
len([n, m]) * 10 + len('abc') + len({1: n}) + len(a.shape)
sorted([3, 1, 2])[0] + sorted([n])[0] + sorted([2, 1], reverse=True)[0]
sum(i * v for i, v in enumerate([n, m, 3], 1))
sum(v * w for v, w in zip([n, 2], (m, a[1], 9)))
list(reversed([n, m]))[0] * 10 + list(reversed(range(3)))[0]
list(map(lambda v: v + n, [1, 2]))[1] + sum(map(abs, [n - 4, -1]))
sum(filter(None, [1, 0, 2])) + len(list(filter(lambda v: v > 1, [1, 2, 3])))
list(range(3))[1] + tuple(range(2, 9, 3))[2] + len(range(4))
next(iter([n, m])) + next(v for v in (m, 2)) + next(iter(()), n)
set([1, 1, 2]).pop() + dict(v=n)['v'] + dict([('w', m)])['w'] + len(frozenset((1, 2)))
ord('a') + len(chr(65)) + int(hex(17), 16) + int(bin(5), 2) + hash(7)
[n, m][bool(1)] + (n, m)[int(False)]
callable(n) + callable(len) * 2 + callable(abs(m)) * 4
len(f'{3:>5}') + len('%03d' % 7) + len(str(12)) + len(format(5, '04d'))
""".strip().split("\n")  # fmt: skip

CACHED = "import functools\n@functools.lru_cache\ndef cached(x): return 1\ndef around(x): return cached(x)\n"
NEEDS_A_VALUE = {
    "cached(n)": ("TL128", "the cache"),
    "around(n)": ("TL128", "the cache"),
    "functools.partial(cached)(n)": ("TL128", "the cache"),
    "{1}.add(n)": ("TL128", "a list or a tuple"),
    "{n}": ("TL128", "a list or a tuple"),
    "{1: 2}.get(n)": ("TL116", "a buffer"),
    "{1: 2}.pop(n, 3)": ("TL116", "a buffer"),
    "{1: 2}[n]": ("TL116", "a buffer"),
    "print('x', file=n)": ("TL106", "T.print(n)"),
    "print('x', end=a)": ("TL106", "T.print(a)"),
    "round(a)": ("TL201", "a[i]"),
    "divmod(a, 3)": ("TL201", "a[i]"),
}


@pytest.mark.parametrize("expression", NEEDS_A_VALUE)
def test_a_call_that_needs_the_value_of_a_device_value_is_refused_as_such(expression: str) -> None:
    """4.16, 4.20, 2.16: What needs the hash of a value is no look-up."""
    code, word = NEEDS_A_VALUE[expression]
    refuses(f"x = {expression}  #!", (code, expression, word), before=CACHED)


@pytest.mark.parametrize("expression", INTEGERS)
def test_a_built_in_function_gives_what_python_gives(expression: str) -> None:
    """0.1, 0.2, 4.16, 4.17, 4.21: Device values, compile-time values, and mixtures."""
    like_python(f"out[0] = {expression}")


FLOATS = """
float(n) / 4 + float('0.5') + float(2)
abs(f[0]) + abs(-0.5)
max(f[0], f[1], 0.5) + min(f[0], 1)
max(n, f[1]) + min(2, f[3])
sum([f[0], n, 1]) + sum([0.5, f[1]])
sum((f[i] for i in range(3)), 0.25)
divmod(f[1], 2)[0] * 10 + divmod(f[0], 2)[1]
pow(f[1], 2) + pow(2.0, 3)
round(f[1], 0) + round(2.75, 1)
float(n > 1) + float(True)
int(f[1]) / 2.0 + round(f[0]) * 0.5
""".strip().split("\n")


@pytest.mark.parametrize("expression", FLOATS)
def test_a_built_in_function_of_floats_gives_what_python_gives(expression: str) -> None:
    """0.1, 4.16: In float32."""
    like_python(f"res[0] = {expression}")


def test_int_and_round_give_integers() -> None:
    """0.2, 4.16, 9.7: They index, count the turns of a loop, and divide as integers; of float64 they are int64."""
    like_python("out[round(f[5])] = 7\nfor i in range(int(f[1])):\n    out[i] += round(f[4]) // 2 + 1")
    parameters = 'd: T.Tensor((4,), "float64"), out: T.Tensor((4,), "int64")'
    k = kernel("for i in range(2):\n    out[i] = round(d[i])\n    out[i + 2] = int(d[i])", parameters=parameters)
    given, out = np.array([2.0**40 + 0.5, -3.5, 0, 0]), np.zeros(4, np.int64)
    k(given, out)
    assert out.tolist() == [2**40, -4, 2**40, -3]


REFUSED = {
    "sorted([n, m])": "TL128",
    "max(n, m, key=abs)": "TL004",
    "pow(n, m, 5)": "TL004",
    "pow(2, m)": "TL205",
    "round(f[0], 2)": "TL004",
    "int(n, 16)": "TL144",
    "complex(n)": "TL128",
    "hex(n)": "TL128",
    "chr(n)": "TL128",
    "bytes(n)": "TL128",
    "hash(n)": "TL128",
    "id(n)": "TL128",
    "len(range(n))": "TL107",
    "list(range(n))": "TL113",
    "enumerate(range(n))": "TL113",
    "zip([1], range(n))": "TL113",
    "reversed(range(n))": "TL113",
    "map(abs, range(n))": "TL113",
    "sum(range(n))": "TL113",
    "any(range(n))": "TL113",
    "enumerate(n)": "TL111",
    "zip(n, [1])": "TL111",
    "reversed(n)": "TL111",
    "reversed(a)": "TL111",
    "map(abs, a)": "TL111",
    "sorted(a)": "TL111",
    "sum(a)": "TL111",
    "max(a)": "TL111",
    "min(n)": "TL111",
    "any(a)": "TL111",
    "all(n)": "TL111",
    "iter(n)": "TL111",
    "next(n)": "TL111",
    "set([n])": "TL128",
    "dict([(n, 1)])": "TL128",
    "bool(a)": "TL138",
    "abs(a)": "TL201",
    "print(range(n))": "TL128",
    "n()": "TL144",
    "a(1)": "TL144",
}


@pytest.mark.parametrize("call", REFUSED)
def test_a_built_in_function_without_a_device_form_is_refused(call: str) -> None:
    """0.1: At the call, by a code that says why, in words of the language."""
    made = refuses(f"x = {call}  #!", (REFUSED[call], call, " "))
    assert not any(word in part for part in said(made) for word in ("Value", "DeviceLoop", "Buffer"))


def test_what_belongs_to_the_compiler_is_no_attribute() -> None:
    """0.1, 4.19, 8.3: TL003 with what there is; the class is TL108; `hasattr` and `dir` know what the language has."""
    asked = [
        "n.expr",
        "n.scope",
        "a.index_expr",
        "a[0:2].begin",
        "a.__dict__",
        "vars(n)",
        "getattr(a, 'home')",
        "n.real",
    ]
    refuses("\n".join(f"x = {text}  #!" for text in asked), *[("TL003", text, "dtype") for text in asked])
    refuses("x = n.__class__  #!\ny = a.__class__.__name__  #!",
            ("TL108", "n.__class__", "n.dtype"), ("TL108", "a.__class__", "a.dtype"))  # fmt: skip
    refuses("x = hasattr(n, 'bit_length')  #!\nsetattr(n, 'dtype', 'int8')  #!",
            ("TL003", "hasattr(n, 'bit_length')", "dtype"), ("TL127", "setattr(n, 'dtype', 'int8')", "bind"))  # fmt: skip
    computes("out[0] = hasattr(n, 'expr')\nout[1] = hasattr(a, 'shape')\nout[2] = getattr(n, 'expr', 4)\n"
             "out[3] = len(dir(n)) + ('shape' in dir(a))", out=[0, 1, 4, 3])  # fmt: skip


COPIES = "import copy\nimport pickle\nimport json"


def test_a_device_value_is_copied_as_a_number_is_and_never_pickled() -> None:
    """0.1, 8.5: TVM's expressions would end the process; a buffer has no second object."""
    like_python("x = copy.copy(n) + copy.deepcopy([n, [m]])[1][0]\nout[0] = x", COPIES)
    texts = ["pickle.dumps(n)", "pickle.dumps([a[0]])", "copy.deepcopy(a)", "copy.copy(a[0:2])", "pickle.dumps(a)"]
    refuses("\n".join(f"x = {text}  #!" for text in texts), *[("TL128", text, " ") for text in texts], before=COPIES)


def test_words_of_python_about_operands_are_those_of_the_language() -> None:
    """8.3: Where Python names the class of what it was given."""
    texts = [
        "json.dumps(n)",
        "'abc'.find(n)",
        "n()",
        "n + [1]",
        "[1] + n",
        "'{0.expr}'.format(n)",
        "abs(**3)",
        "abs(*3)",
    ]
    codes = ["TL128" if "format" in text else "TL144" for text in texts]
    mistakes = [(code, text, " ") for code, text in zip(codes, texts)]
    made = refuses("\n".join(f"x = {text}  #!" for text in texts), *mistakes, before=COPIES)
    assert not any(word in part for part in said(made) for word in ("Value", "Intrinsics"))


def test_every_attribute_of_a_device_value_is_open_or_hidden() -> None:
    """8.3: What a class of the compiler is given anew is decided here."""
    seen: list[object] = []
    tilelang_nb.compile_cell(cell("keep(n, a, a[0:2])\nout[0] = 1"), {"keep": lambda *values: seen.extend(values)})
    assert [type(value) for value in seen] == [Value, Buffer, Region] and all(map(is_device, seen))
    for value in seen:
        names = {*dir(type(value)), *getattr(value, "__dict__", {})}
        assert names <= HIDDEN | PUBLIC[type(value).__name__], names - HIDDEN


def test_what_stands_in_t_stays() -> None:
    """8.5: A cell that would change an operation for all later cells is refused."""
    for text in ("T.Tensor = (2, 6)", "T.copy = None", "del T.gemm"):
        made = tilelang_nb.compile_cell(text, {})
        assert [found.code for found in made.diagnostics] == ["TL127"], made.to_text()
    assert launched(kernel("out[0] = n"))["out"][0] == 3


@pytest.mark.parametrize(
    ("expression", "code"),
    [
        ('operator.attrgetter("expr")(n)', "TL003"),
        ('operator.attrgetter("dtype", "var")(a)', "TL003"),
        ('operator.methodcaller("use")(n)', "TL003"),
        ('operator.methodcaller("use", q=1)(n)', "TL003"),
        ('list(map(operator.attrgetter("expr"), [n, m]))', "TL003"),
        ('list(map(getattr, [n], ["expr"]))', "TL003"),
        ('functools.partial(getattr, n)("expr")', "TL003"),
        ("list(map(type, [n]))", "TL108"),
        ("list(map(len, [a]))", "TL107"),
        ("list(map(isinstance, [n], [int]))", "TL109"),
        ('object.__getattribute__(n, "expr")', "TL127"),
        ("inner(n)", "TL127"),
        ("[inner(n)]", "TL127"),
        ("inspect.getmembers(n)", "TL127"),
    ],
)
def test_no_way_leads_to_what_belongs_to_the_compiler(expression: str, code: str) -> None:
    """4.20: A question about a device value is refused however it is asked."""
    before = "import functools, inspect, operator\ndef inner(v): return v.expr\n"
    made = tilelang_nb.compile_cell(cell(f"x = {expression}", before), target="sim")
    assert [d.code for d in made.diagnostics] == [code]


def test_a_built_in_function_given_to_another_means_what_it_means_in_the_kernel() -> None:
    """4.16: `map(max, ...)` is as `max`."""
    before = "import functools, itertools\n"
    like_python("out[0] = functools.reduce(max, [n, m])\nout[1] = list(map(int, [f[0]]))[0]", before=before)
    like_python("out[0] = functools.partial(max, n)(m)\nout[1] = list(map(min, [n], [m]))[0]", before=before)
    like_python(
        "out[0] = list(itertools.accumulate([n, m], max))[1]\nout[1] = sorted([3, -1], key=abs)[0]", before=before
    )
