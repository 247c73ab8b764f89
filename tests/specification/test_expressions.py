"""Operators, conditions, built-in functions, helpers, and names that do not exist."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from specification.cells import (
    cell,
    compiled,
    computes,
    emits,
    kernel,
    launched,
    like_python,
    refuses,
    refuses_cell,
    said,
)

import tilelang_nb

INTEGERS = ["x + y", "x - y", "x * y", "x // y", "x % y", "x ** 3", "x << 2", "x >> 1", "x & y", "x | y", "x ^ y", "~x", "-x", "+x"]  # fmt: skip
FLOATS = ["x + y", "x - y", "x * y", "x / y", "x // y", "x % y", "x ** 2", "-x", "2 - x", "1 / y", "7 % y"]


@pytest.mark.parametrize("expression", INTEGERS)
def test_integer_arithmetic_is_that_of_python(expression: str) -> None:
    """P32, 4.1, 4.2: Of negative values too; `//` and `%` floor."""
    pairs = [(7, 2), (-7, 2), (7, -2), (-7, -2), (0, 5), (6, 3), (-6, 4), (-1, 8)]
    a, out = np.array([x for x, _ in pairs], np.int32), np.array([y for _, y in pairs], np.int32)
    held = launched(
        kernel(f"for i in T.Parallel(8):\n    x = a[i]\n    y = out[i]\n    out[i] = {expression}", threads=8),
        a=a, out=out,
    )  # fmt: skip
    assert held["out"].tolist() == [eval(expression, {"x": x, "y": y}) for x, y in pairs]


@pytest.mark.parametrize("expression", FLOATS)
def test_float_arithmetic_is_that_of_numpy(expression: str) -> None:
    """P32, 4.1, 4.2: In float32; `//` and `%` floor."""
    x = np.array([5.5, -5.5, 4.0, -0.5, 7.25, 1.0, -3.0, 0.0], np.float32)
    y = np.array([2.0, 2.0, -2.0, 3.0, -1.5, 0.25, 0.1, 4.0], np.float32)
    body = f"for i in T.Parallel(8):\n    x = f[i]\n    y = res[i]\n    res[i] = {expression}"
    held = launched(kernel(body, threads=8), f=x.copy(), res=y.copy())
    np.testing.assert_allclose(held["res"], eval(expression, {"x": x, "y": y}), rtol=1e-6, atol=1e-7)


TYPES = ["int8", "int32", "int64", "uint8", "uint32", "float16", "bfloat16", "float32", "float64"]


def numpy_type(name: str) -> np.dtype:
    return np.dtype(getattr(ml_dtypes, name) if name == "bfloat16" else name)


def dtype_of(expression: str, *types: str) -> str:
    """The type that the kernel's own text sees for an expression over elements `x[0]`, `y[0]` ..."""
    names = "xyz"[: len(types)]
    parameters = ", ".join(f'{name}: T.Tensor((4,), "{dtype}")' for name, dtype in zip(names, types))
    text = cell(f"print({expression.replace('@', '[0]')}.dtype)", parameters=parameters)
    import contextlib
    import io

    with contextlib.redirect_stdout(io.StringIO()) as printed:
        compiled(text)
    return printed.getvalue().strip()


@pytest.mark.parametrize(
    ("first", "second", "joined"),
    [
        ("int8", "int32", "int32"),
        ("int32", "int64", "int64"),
        ("uint8", "int32", "int32"),
        ("uint8", "int8", "int16"),
        ("uint32", "int32", "int64"),
        ("uint8", "uint32", "uint32"),
        ("int32", "float16", "float16"),
        ("int64", "float32", "float32"),
        ("uint32", "bfloat16", "bfloat16"),
        ("float16", "bfloat16", "float32"),
        ("float16", "float32", "float32"),
        ("bfloat16", "float32", "float32"),
        ("float32", "float64", "float64"),
    ],
)
def test_types_join_to_the_wider_one_and_float_beats_integer(first: str, second: str, joined: str) -> None:
    """4.1, 9.1, 9.2, 9.3: In both orders."""
    assert dtype_of("(x@ + y@)", first, second) == dtype_of("(x@ * y@)", second, first) == joined


@pytest.mark.parametrize("dtype", TYPES)
def test_literals_are_weak_in_arithmetic(dtype: str) -> None:
    """9.4: They take the type of the other side; a float literal makes a float of an integer."""
    assert dtype_of("(x@ + 1)", dtype) == dtype_of("(3 * x@)", dtype) == dtype
    assert dtype_of("(x@ * 0.5)", dtype) == (dtype if "float" in dtype else "float32")


def test_what_python_raises_for_a_constant_operand_is_refused() -> None:
    """0.2, 4.1, 8.3: Division of integers by 0, shifts by less than nothing or beyond the type."""
    refuses(
        "x = n // 0  #!\nx = n % (3 - 3)  #!\nout[0] //= 0  #!\nx = n << -1  #!\nx = n << 32  #!\nout[0] >>= 40  #!",
        ("TL004", "n // 0", "other than 0"),
        ("TL004", "n % (3 - 3)", "other than 0"),
        ("TL004", "out[0] //= 0", "other than 0"),
        ("TL004", "n << -1", "0..31"),
        ("TL004", "n << 32", "wider type"),
        ("TL004", "out[0] >>= 40", "0..31"),
    )
    emits("x = n if D == 0 else n // D\nout[0] = x << 31", 1, before="D = 0")


def test_true_division_of_integers_is_refused_with_both_fixes() -> None:
    """4.3: `//` and a cast, with the operands of the text."""
    made = refuses(
        "out[0] = n / m  #!\nout[1] = (a[0] + 1) / 2  #!\nout[2] = 1 / n  #!\nout[3] /= 2  #!\nres[0] = n / 2.0",
        ("TL136", "n / m", "n // m"),
        ("TL136", "(a[0] + 1) / 2", "//"),
        ("TL136", "1 / n", "1 // n"),
        ("TL136", "out[3] /= 2", "//"),
    )
    assert all("cast" in d.help or "float32" in d.help for d in made.diagnostics)


def test_constant_powers_are_folded_and_small_ones_multiplied_out() -> None:
    """4.4: Else `T.pow` computes them."""
    script = kernel("out[0] = 2 ** 10\nout[1] = n ** 3\nres[0] = f[1] ** 2").stages[1].text
    assert "1024" in script and "pow" not in script
    assert "pow" in kernel("res[0] = f[1] ** f[2]").stages[1].text
    computes("out[0] = 2 ** 10\nout[1] = n ** 3\nres[0] = f[1] ** f[2]\nres[1] = f[7] ** 0.5\nres[2] = f[4] ** -2\nout[2] = n ** 0",
             out=[1024, 27, 1], res=[3.75**0.5, 3.0, 1.5**-2])  # fmt: skip


def test_the_matrix_operator_is_refused_and_points_to_gemm() -> None:
    """4.5: Between buffers and between values."""
    refuses(
        "x = f @ res  #!\ny = f[0] @ res[0]  #!", ("TL137", "f @ res", "T.gemm"), ("TL137", "f[0] @ res[0]", "T.gemm")
    )


LOGIC = [
    "n > 2 and m > 4",
    "n > 2 or m > 4",
    "not n > 2",
    "not (n > 2 and m < 3)",
    "n > 2 and m > 1 or n == 0",
    "True and n > 2",
    "n > 2 or False",
    "n and m",
    "not n",
]


@pytest.mark.parametrize("condition", LOGIC)
def test_boolean_operators_are_correct_for_device_operands(condition: str) -> None:
    """4.6: As conditions."""
    like_python(f"if {condition}:\n    out[0] = 1\nelse:\n    out[0] = 2\nout[1] = 5 if {condition} else 6")


def test_boolean_operators_have_pythons_value() -> None:
    """9.8: `a or b` of device numbers in value position is one of the operands."""
    like_python(
        "out[0] = n or m\nout[1] = n and m\nout[2] = a[1] or n or 7\nres[0] = f[6] or f[1]\nx = n or m\nout[3] = x"
    )


@pytest.mark.parametrize("condition", ["0 < n < m", "0 <= n < 4 <= m", "n == m == 5", "1 < n != m", "m > n > 0 > -m"])
def test_comparisons_chain_as_in_python(condition: str) -> None:
    """4.7: Every pair has to hold."""
    like_python(f"out[0] = 1 if {condition} else 2\nif not {condition}:\n    out[1] = 3")


@pytest.mark.parametrize("container", ["(3, 5)", "[0, m]", "{3: 1}", "{2, 3}", "()", "[n + 1, n]"])
def test_membership_in_a_compile_time_container_is_a_chain_of_comparisons(container: str) -> None:
    """4.8: `in` and `not in`."""
    like_python(
        f"out[0] = 1 if a[4] in {container.replace('{3: 1}', '{3: 1}')} else 2\nif m not in {container}:\n    out[1] = 1"
    )


def test_membership_in_a_buffer_is_refused() -> None:
    """4.8: It is no compile-time container."""
    made = tilelang_nb.compile_cell(cell("if n in a:\n    out[0] = 1"), target="sim")
    (error,) = made.diagnostics
    assert error.code in ("TL111", "TL128", "TL127") and error.span.line == 4 and error.help


def test_a_conditional_expression_selects_per_thread() -> None:
    """P6, 4.9: Runtime conditions select, compile-time ones choose while building; types join."""
    like_python("""
for i in range(8):
    out[i] = a[i] if a[i] > 2 else -a[i] if a[i] < 0 else 9
res[0] = f[0] if n > 2 else 1
res[1] = f[0] if True else unknown_name
""")


def test_a_guarded_access_is_not_executed_when_the_guard_is_false() -> None:
    """4.10: In `and`, `or`, conditional expressions and chains: no access outside is found."""
    computes(
        """
for i in T.Parallel(8):
    j = a[i] * 3
    if 0 <= j and j < 8 and a[j] > 0:
        out[i] += 1
    if j >= 8 or j < 0 or a[j] == 1:
        out[i] += 10
    out[i] += a[j] if 0 <= j < 8 else 100
    if 0 <= j < 8 and a[j] != -1 and a[a[j]] < 9:
        out[i] += 1000
""",
        threads=8,
        n=3,
        out=guarded_by_python(),
    )


def guarded_by_python() -> list[int]:
    a, out = [2, 0, 1, 5, 3, -1, 4, 7], []
    for v in a:
        j = v * 3
        inside = 0 <= j < 8
        value = 1 if inside and a[j] > 0 else 0
        value += 10 if not inside or a[j] == 1 else 0
        value += a[j] if inside else 100
        value += 1000 if inside and a[j] != -1 and a[a[j]] < 9 else 0
        out.append(value)
    return out


def test_compile_time_operands_are_decided_while_building() -> None:
    """4.11: What cannot be reached is not built."""
    emits("if False and unknown_name:\n    out[0] = 1\nif True or unknown_name:\n    out[1] = 1", 1)
    emits(
        "if FLAG and n > 2:\n    out[0] = 1\nelse:\n    out[0] = 2\nx = 1 if not FLAG else unknown",
        1,
        before="FLAG = False",
    )


def test_if_elif_else_choose_per_thread() -> None:
    """P5: Each thread takes the branch of its own values."""
    body = "for i in T.Parallel(8):\n    if a[i] < 1:\n        out[i] = 1\n    elif a[i] == 4:\n        out[i] = 2\n    else:\n        out[i] = 3"
    computes(body, threads=8, out=[3, 1, 3, 3, 3, 1, 2, 3])


def test_a_compile_time_condition_builds_only_the_branch_taken() -> None:
    """P5: The other one may hold anything that is Python."""
    emits(
        "if MODE == 'a':\n    out[0] = 1\nelif n > 2:\n    out[1] = 1\nelse:\n    x = y = unknown",
        1,
        before="MODE = 'a'",
    )


def test_a_device_number_as_a_condition_means_not_zero() -> None:
    """4.12: In `if`, `while`, `not`, `and`, conditional expressions; NaN is true, -0.0 is false."""
    like_python("""
for i in range(8):
    if a[i]:
        out[i] += 1
    if not f[i]:
        out[i] += 10
    out[i] += 100 if f[i] and a[i] else 200
while m:
    m -= 1
out[0] += m
""")
    held = launched(
        kernel("for i in range(8):\n    out[i] = 1 if f[i] else 2"),
        f=np.array([np.nan, -0.0, 0.0, np.inf] * 2, np.float32),
    )
    assert held["out"].tolist() == [1, 2, 2, 1] * 2


def test_a_buffer_as_a_condition_is_refused() -> None:
    """4.13, 9.23: TL138, at the buffer."""
    refuses(
        "if a:  #!\n    out[0] = 1\nwhile not f:  #!\n    out[0] = 1", ("TL138", "a", "a"), ("TL138", "not f", "f[i]")
    )


def test_is_none_works() -> None:
    """4.14: Of compile-time objects, buffers and device values."""
    like_python(
        "bias = None\nif bias is None and a is not None and n is not None:\n    out[0] = 1\nout[1] = 2 if n is None else 3"
    )


def test_identity_of_device_values_is_refused() -> None:
    """4.15, 9.23: TL139; the help says `==`."""
    refuses(
        "if n is m:  #!\n    out[0] = 1\nout[1] = 1 if a[0] is not n else 2  #!",
        ("TL139", "n is m", "=="),
        ("TL139", "a[0] is not n", "!="),
    )


BUILTINS = ["min(n, m)", "max(n, m, 4)", "abs(n - m)", "sum([n, m, 1])", "sum((a[i] for i in (1, 2, 3)), 5)", "min([n, 4])", "int(f[1])", "int(f[0])", "bool(n)", "max(n, 2)", "divmod(m, 2)[1]", "pow(n, 2)"]  # fmt: skip


@pytest.mark.parametrize("call", BUILTINS)
def test_builtin_functions_of_device_values_mean_the_device_forms(call: str) -> None:
    """4.16: `int` truncates."""
    like_python(f"out[0] = {call}")


def test_builtin_functions_that_give_floats_do_so() -> None:
    """4.16: `float`, `abs`, `min`, `max` and `sum` of floats."""
    like_python(
        "res[0] = float(n) / 2\nres[1] = abs(f[0])\nres[2] = max(f[0], f[1], 0.5)\nres[3] = min(f[0], 1)\nres[4] = sum(f[i] for i in [0, 1])"
    )


def test_round_is_half_to_even_and_t_round_half_away_from_zero() -> None:
    """9.7: As Python and CUDA do."""
    x = np.array([0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 0.4, 3.6], np.float32)
    half_even = launched(kernel("for i in range(8):\n    res[i] = round(f[i])"), f=x)["res"]
    away = launched(kernel("for i in range(8):\n    res[i] = T.round(f[i])"), f=x)["res"]
    assert half_even.tolist() == [round(float(v)) for v in x]
    assert away.tolist() == [1, 2, 3, -1, -2, -3, 0, 4]


def test_the_sum_of_a_generator_expands() -> None:
    """4.17: One addition per item, no loop."""
    script = kernel("out[0] = sum(a[i] * n for i in range(3))").stages[1].text
    assert "range(" not in script and script.count("a[") == 3


def test_len_of_a_buffer_or_device_value_is_refused() -> None:
    """P41, 4.18: The help says the extent."""
    refuses(
        "out[0] = len(a)  #!\nout[1] = len(n)  #!\nout[2] = len(f[0:4])  #!",
        ("TL107", "len(a)", "a.shape[0]"),
        ("TL107", "len(n)", "`"),
        ("TL107", "len(f[0:4])", "shape"),
    )


def test_type_of_a_device_value_is_refused() -> None:
    """P42, 4.19: Of values; the help says `.dtype`."""
    refuses("t = type(n)  #!\nu = type(a[0])  #!", ("TL108", "type(n)", "n.dtype"), ("TL108", "type(a[0])", "dtype"))


def test_isinstance_of_a_device_value_is_refused() -> None:
    """P42, 4.20: Under a condition too."""
    refuses(
        "if isinstance(n, int):  #!\n    out[0] = 1\nx = isinstance(a[0], (int, float))  #!",
        ("TL109", "isinstance(n, int)", "dtype"),
        ("TL109", "isinstance(a[0], (int, float))", "dtype"),
    )


def test_len_type_and_isinstance_of_compile_time_objects_are_pythons() -> None:
    """P41, P42, 4.21: Of lists, shapes, strings, numbers."""
    like_python(
        "out[0] = len([n, m]) + len('abc') + len(a.shape)\nif isinstance(3, int) and type(2.0) is float:\n    out[1] = 4"
    )


def test_print_of_compile_time_values_prints_while_building(capsys: pytest.CaptureFixture[str]) -> None:
    """P40, 4.22: Once, before any launch, f-strings too."""
    compiled(cell('print("rows", a.shape[0], [1, 2], sep="-")\nprint(f"{3:02d}", T.float16)'))
    assert capsys.readouterr().out == "rows-8-[1, 2]\n03 float16\n"


def test_print_of_a_device_value_is_refused() -> None:
    """P40, 4.23: Alone, among others, inside an f-string, a list, a buffer; the help says `T.print`."""
    calls = ["print(n)", "print('x', a[0], 1)", "print(a)", "print(f'n is {n}')", "print([n])"]
    refuses("\n".join(call + "  #!" for call in calls), *(("TL106", call, "T.print") for call in calls))


def test_t_print_prints_the_value_of_the_run(capsys: pytest.CaptureFixture[str]) -> None:
    """P40: What the help of TL106 says to write works."""
    k = kernel("T.print(n)")
    launched(k, 41)
    assert "41" in "".join(k.printed) and "41" in capsys.readouterr().out


def test_assert_on_a_compile_time_condition_is_checked_while_building() -> None:
    """P39, 4.24: TL145 with its message when it is false."""
    emits("assert a.shape[0] == 8, 'rows'\nout[0] = 1", 1)
    made = refuses(
        "assert a.shape[0] == 9, f'{a.shape[0]} rows'  #!\nassert 1 > 2  #!",
        ("TL145", "assert a.shape[0] == 9, f'{a.shape[0]} rows'", "true"),
        ("TL145", "assert 1 > 2", "1 > 2"),
    )
    assert "8 rows" in said(made)[0]


def test_assert_on_a_runtime_condition_is_refused() -> None:
    """P39, 4.25: The help says `T.device_assert(cond, msg)`."""
    refuses(
        "assert n > 3, 'small'  #!\nassert a[0]  #!",
        ("TL105", "assert n > 3, 'small'", "T.device_assert(n > 3"),
        ("TL105", "assert a[0]", "T.device_assert(a[0]"),
    )


@pytest.mark.parametrize("name", ["T.device_assert", "T.assert", "T.Assert"])
def test_device_assertions_work_in_both_spellings(name: str) -> None:
    """P39, 4.26, 9.16: They stop the launch with TL404, their line and their message."""
    k = kernel(f"{name}(n > 3, 'n is small')\nout[0] = n")
    assert launched(k, 4)["out"][0] == 4
    with pytest.raises(tilelang_nb.LaunchError, match="n is small") as caught:
        launched(k, 3)
    assert (caught.value.diagnostic.code, caught.value.diagnostic.span.line) == ("TL404", 4)
    assert [d.code for d in k.findings] == ["TL404"]


def test_columns_hold_beside_t_assert() -> None:
    """4.26: The spelling is replaced by one of the same width."""
    made = refuses("T.assert(n > 3, 'small'); x = y = n  #!", ("TL101", "x = y = n", "y = x"))
    assert made.diagnostics[0].span.column == 8 + len("T.assert(n > 3, 'small'); ")


def test_strings_lambdas_and_helpers_are_ordinary_python_while_building() -> None:
    """4.27: f-strings, lambdas with defaults, closures, functions defined outside, methods."""
    before = "def half(v, by=2):\n    return v // by\ndef named(**sizes):\n    return sorted(sizes)\n"
    like_python(
        "twice = lambda v, by=2: v * by\nout[0] = twice(n) + half(m)\nkind = f'int{4 * 8}'\nout[1] = len(kind) + len(named(b=1, a=2))\nout[2] = 'abc'.index('c')",
        before,
    )


TEXTS = ["f'{n}'", "str(n)", "repr(n)", "format(n)", "'{}'.format(n)", "'%s' % n", "f'{n:>4}{m!r}'"]
CONTAINED_TEXTS = [
    "str([n])",
    "','.join(map(str, [n]))",
    "'{}, {}'.format(m, n)",
    "f'{[n]}'",
    "shown(n)",
    "ascii((n, 1))",
]


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_of_a_device_value_is_refused(text: str) -> None:
    """0.2, 4.27: It would hold the name of the value, where Python's holds its digits; the help says how to print it."""
    refuses(f"x = {text}  #!", ("TL128", text, "`T.print(n)`"))
    refuses(f"T.print(m, msg={text})  #!\nT.device_assert(n > 2, {text})  #!\nout[0] = len({text})  #!",
            *[("TL128", text, "`T.print(n)`")] * 3)  # fmt: skip
    made = refuses(
        f"print('n', {text})  #!", ("TL106" if text[0] == "f" and "(" not in text else "TL128", *PRINTED[text])
    )
    assert not any("Value" in part for part in said(made))
    emits(f"if n.dtype == 'float32':\n    x = {text}\nout[0] = 1", 1)


PRINTED = {
    text: (f"print('n', {text})" if text[0] == "f" and "(" not in text else text, "T.print(n)") for text in TEXTS
}


@pytest.mark.parametrize("text", CONTAINED_TEXTS)
def test_a_text_with_a_device_value_in_it_is_refused(text: str) -> None:
    """0.2, 4.27: In containers, by iterators, in helpers."""
    before = "def shown(value):\n    return f'{value}'"
    refuses(f"x = {text}  #!", ("TL128", text, "T.print("), before=before)


def test_a_helper_that_calls_operations_emits_them_at_the_call() -> None:
    """4.28: In the order of the calls, each time it is called."""
    before = "def put(at, value):\n    T.copy(a_of[at], a_of[value])\ndef bump(buffer, at):\n    buffer[at] = buffer[at] * 2 + 1\n    return buffer[at]\n"
    emits("x = bump(out, 0)\ny = bump(out, 0)\nout[1] = x + y", 3, before=before)
    computes("out[0] = 1\nx = bump(out, 0)\ny = bump(out, 0)\nout[1] = x * 10 + y", before=before, out=[7, 37])


def test_an_undefined_name_is_refused_with_the_nearest_one() -> None:
    """4.29: Of the kernel, of the cell; without a near one it is said so."""
    refuses(
        "total = n\nout[0] = totl  #!\nout[1] = widht  #!\nout[2] = zzzzz + 1  #!\nout[3] = rang(3)  #!",
        ("TL002", "totl", "`total`"),
        ("TL002", "widht", "`width`"),
        ("TL002", "zzzzz", "first"),
        ("TL002", "rang", "`range`"),
        before="width = 4",
    )


def test_an_unknown_operation_is_refused_with_the_nearest_one() -> None:
    """4.30: Attributes of `T` and of what it holds."""
    refuses(
        "T.clera(a)  #!\nres[0] = T.expp(f[0])  #!\np = T.GemmWarpPolicy.FullRoww  #!",
        ("TL003", "T.clera", "T.clear"),
        ("TL003", "T.expp", "T.exp"),
        ("TL003", "T.GemmWarpPolicy.FullRoww", "FullRow"),
    )


def test_a_misspelt_keyword_argument_is_refused_with_the_nearest_one() -> None:
    """4.31: Of operations, loops and launches."""
    refuses(
        "T.copy(a, out, coalesed_width=2)  #!\nfor i in T.Pipelined(4, num_stage=2):  #!\n    out[i] = 1",
        ("TL004", "coalesed_width", "coalesced_width"),
        ("TL004", "num_stage", "num_stages"),
    )
    refuses_cell(
        "@T.prim_func\ndef k(n: T.int32):\n    with T.Kernel(1, thread=4):  #!\n        T.print(n)\n",
        ("TL004", "thread", "threads"),
    )
