"""What is said of the arguments of a call that do not fit: all of them at once, each where the caller wrote it."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import tilelang_nb
from tilelang_nb import LaunchError
from tilelang_nb.source.diagnostic import Diagnostic

COPY = """
@T.prim_func
def copy(A: T.Tensor((100,), "float32"), B: T.Tensor((100,), "float32")):
    with T.Kernel(1, threads=100):
        for i in T.Parallel(100):
            B[i] = A[i]
"""
ADD = """
n = T.dynamic("n")
@T.prim_func
def add(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32"), C: T.Tensor((n,), "float32")):
    with T.Kernel(1, threads=32):
        for i in T.Parallel(32):
            C[i] = A[i] + B[i]
"""
EAGER = """
@jit
def scaled(X, Y, factor: T.float32 = 2.0):
    N = T.const("N")
    X: T.Tensor[[N], T.float32]
    Y: T.Tensor[[N], T.float32]
    with T.Kernel(1, threads=32):
        for i in T.Parallel(32):
            Y[i] = X[i] * factor
"""
F4 = np.float32


def names(text: str, filename: str = "In[1]") -> dict[str, Any]:
    found: dict[str, Any] = {"np": np, "x": np.zeros(64, F4), "y": np.zeros(128, F4), "w": np.zeros(64)}
    assert tilelang_nb.compile_cell(text, found, filename=filename, target="sim").ok
    return found


def said(text: str, call: str, filename: str = "In[2]") -> list[tuple[Diagnostic, str]]:
    """The diagnostics of a call in a later cell, each with the text under its caret."""
    c = tilelang_nb.compile_cell(call, names(text), filename=filename, target="sim")
    assert all(d.code == "TL301" for d in c.diagnostics)
    return [(d, c.text.slice(d.span)) for d in c.diagnostics]


def test_every_wrong_argument_has_its_own_message_at_its_own_place() -> None:
    found = said(ADD, "z = 1\nadd(x, y[::4],\n    w)\n")
    assert [(d.span.line, text) for d, text in found] == [(2, "y[::4]"), (3, "w")]
    assert "argument `y[::4]` for `B`: expected shape (n,) with n = 64 (shape of A)" in found[0][0].message
    assert "argument `w` for `C`: expected dtype float32, given dtype float64" in found[1][0].message


def test_a_call_of_the_same_cell_shows_argument_and_parameter() -> None:
    text = ADD + "import numpy as np\nadd(np.zeros(3, 'f4'), np.zeros(3), np.zeros(3, 'f4'))\n"
    (diagnostic,) = tilelang_nb.compile_cell(text, target="sim").diagnostics
    assert (diagnostic.span.line, diagnostic.span.column) == (9, 23)
    (note,) = diagnostic.notes
    assert "the parameter `B` of `add`" in str(note) and (note.span.line, note.span.column) == (4, 38)


def test_a_kernel_of_another_cell_is_quoted() -> None:
    ((diagnostic, _),) = said(ADD, "add(x, x, w)")
    assert [str(note) for note in diagnostic.notes] == [
        'the parameter of `add` is `C: T.Tensor((n,), "float32")` in In[1], line 4'
    ]


def test_arrays_that_share_a_size_are_both_named() -> None:
    ((diagnostic, _),) = said(ADD, "add(x, y, x)")
    assert "(shape of A)" in diagnostic.message
    note = diagnostic.notes[0]
    assert str(note) == "`x` is passed for `A`" and (note.span.column, note.span.end_column) == (4, 5)


def test_the_odd_one_out_is_blamed() -> None:
    ((diagnostic, text),) = said(ADD, "add(y, x, x)")
    assert text == "y" and "with n = 64 (shape of B), given shape (128,)" in diagnostic.message


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("add(x)", [("argument `B`: ", "add(x)"), ("argument `C`: ", "add(x)")]),
        ("add(x, x, x, w, y)", [("expected 3 arguments, given 5", "w, y")]),
        ("add(x, x, c=x)", [("there is no parameter `c`", "c=x")]),
        ("add(x, w, x, A=x)", [("argument `w` for `B`", "w"), ("argument `A`: expected one value", "A=x")]),
        ("add(C=w, A=x, B=[1.0])", [("argument `w` for `C`", "C=w"), ("argument `[1.0]` for `B`", "B=[1.0]")]),
        ("add(*[w, x], x)", [("argument `A`: ", "*[w, x]")]),
        ("add(**dict(A=x, B=w, C=x))", [("argument `B`: ", "add(**dict(A=x, B=w, C=x))")]),
        ("functools.partial(add, w)(x, x)", [("argument `A`: ", "functools.partial(add, w)(x, x)")]),
        ("list(map(add, [x], [w], [x]))", [("argument `B`: ", "list(map(add, [x], [w], [x]))")]),
        ("(lambda k: k(x, x, w))(add)", [("argument `w` for `C`", "w")]),
    ],
)
def test_the_caret_stands_under_what_the_caller_wrote(call: str, expected: list[tuple[str, str]]) -> None:
    found = said(ADD, f"import functools\n{call}\n")
    assert [text for _, text in found] == [text for _, text in expected]
    assert all(start in d.message for (d, _), (start, _) in zip(found, expected)), [d.message for d, _ in found]


def test_a_wrong_shape_and_a_wrong_dtype_of_one_array_are_one_message() -> None:
    ((diagnostic, text),) = said(COPY, "copy(w, np.zeros(100, 'f4'))")
    assert text == "w" and "expected shape (100,) and dtype float32, given shape (64,) and dtype float64" in str(
        diagnostic
    )
    assert diagnostic.help == "pass an array of shape (100,) and dtype float32"


def test_the_remedy_is_written_with_the_callers_expression() -> None:
    found = said(COPY, "v = np.zeros(100)\ncopy(v * 2, v[:])")
    assert found[0][0].help.startswith('pass `(v * 2).astype("float32")`')
    assert 'np.zeros((100,), "float32")' in found[1][0].help and "astype" not in found[1][0].help


def test_without_the_text_of_the_call_the_places_are_the_parameters() -> None:
    found = names(COPY)
    with pytest.raises(LaunchError) as caught:
        exec("copy(np.arange(100), np.zeros(100))", found)
    said = caught.value.diagnostics
    assert [caught.value.text.slice(d.span)[:2] for d in said] == ["A:", "B:"]
    assert caught.value.diagnostic is said[0] and str(caught.value).count("error[TL301]") == 2


def test_a_call_of_this_file_is_located_in_it() -> None:
    copy = names(COPY)["copy"]
    with pytest.raises(LaunchError) as caught:
        copy(np.zeros(100, F4), np.arange(100))
    error = caught.value
    assert error.text.name == __file__ and error.text.slice(error.diagnostic.span) == "np.arange(100)"
    assert "called at" not in "\n".join(error._render_traceback_())


def test_calls_of_a_benchmark_and_of_a_method_are_found() -> None:
    copy = names(COPY)["copy"]
    with pytest.raises(LaunchError) as caught:
        functools.partial(copy.compile("sim").__call__, np.zeros(100, F4))(np.arange(3))
    assert caught.value.text.slice(caught.value.diagnostic.span).startswith("functools.partial")


def test_arguments_of_an_eager_kernel_are_said_where_they_stand() -> None:
    found = said(EAGER, "scaled(factor=[], Y=w,\n  X=x)")
    assert sorted(text for _, text in found) == ["Y=w", "factor=[]"]
    found = said(EAGER, "scaled(x, y, factor='a')")
    assert found[0][1] == "y"
    found = said(EAGER, "scaled(x)\n")
    assert [(text, d.label) for d, text in found] == [("scaled(x)", "`Y` is missing")]


def test_a_target_that_is_not_there_stands_at_the_call() -> None:
    c = tilelang_nb.compile_cell("add.compile(target='metal')", names(ADD))
    (diagnostic,) = c.diagnostics
    assert diagnostic.code == "TL302" and c.text.slice(diagnostic.span) == "add.compile(target='metal')"
