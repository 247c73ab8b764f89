"""Conversions at stores, launches, and the record of expansion."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from specification.cells import arrays, cell, compiled, computes, kernel, launched, like_python

import tilelang_nb

ROOT = Path(__file__).resolve().parents[2]


def test_stores_between_float_types_convert_silently() -> None:
    """9.5: Rounded to the type of the buffer."""
    text = cell(
        "h[0] = f[0]\nf[1] = h[1]\nb[0] = f[0]\nf[2] = d[0]\nd[1] = f[0]",
        parameters='h: T.Tensor((2,), "float16"), b: T.Tensor((2,), "bfloat16"), d: T.Tensor((2,), "float64"), f: T.Tensor((4,), "float32")',
    )
    h, b = np.array([0, 0.1], np.float16), np.zeros(2, ml_dtypes.bfloat16)
    d, f = np.array([1 / 3, 0]), np.array([1 / 7, 0, 0, 0], np.float32)
    first = f[0]
    compiled(text).kernels["k"](h, b, d, f)
    assert h[0] == np.float16(first) and f[1] == np.float32(h[1]) and b[0] == ml_dtypes.bfloat16(first)
    assert f[2] == np.float32(1 / 3) and d[1] == np.float64(first)


def test_a_float_value_stored_into_an_integer_buffer_is_warned_of() -> None:
    """9.5: TL212; the fraction is dropped. A cast says it without a warning."""
    k = kernel("out[0] = f[0]\nout[1] = T.cast(f[1], 'int32')\nout[2] = int(f[0])", "TL212")
    assert launched(k)["out"][:3].tolist() == [-2, 3, -2]


def test_conversion_to_float8_keeps_infinity_where_the_type_has_one() -> None:
    """9.6: e5m2 has infinities, e4m3fn does not."""
    text = cell("g[0] = f[0]\ng[1] = f[1]", parameters='f: T.Tensor((2,), "float32"), g: T.Tensor((2,), "float8_e5m2")')
    g = np.zeros(2, ml_dtypes.float8_e5m2)
    compiled(text).kernels["k"](np.array([np.inf, -np.inf], np.float32), g)
    assert g.astype(np.float32).tolist() == [np.inf, -np.inf]


def test_compiling_a_cell_lowers_its_kernels() -> None:
    """9.14: Errors of lowering are among its diagnostics without a launch."""
    text = """
@T.prim_func
def k(A: T.Tensor((512, 512), "float32")):
    with T.Kernel(1, threads=128):
        tile = T.alloc_shared((512, 512), "float32")
        T.copy(A, tile)
        T.copy(tile, A)
"""
    assert [d.code for d in tilelang_nb.compile_cell(text, target="sim").diagnostics] == ["TL209"]


def test_after_a_refused_kernel_the_following_definitions_are_built_and_other_statements_are_not_run() -> None:
    """9.15: Definitions of kernels, not host code."""
    bad = cell("x = y = n").replace("def k(", "def bad(")
    made = tilelang_nb.compile_cell(
        "ran = []\n" + bad + "ran.append(1)\n" + cell("out[0] = len(a)") + "ran.append(2)\n", target="sim"
    )
    assert [d.code for d in made.diagnostics] == ["TL101", "TL107"]
    assert list(made.kernels) == ["bad", "k"] and made.namespace["ran"] == []


def test_a_refused_launch_raises_a_launch_error_with_its_diagnostic() -> None:
    """9.16: TL301 for an argument, TL302 for a device that is not there."""
    k = kernel("out[0] = n")
    with pytest.raises(tilelang_nb.LaunchError) as caught:
        launched(k, a=np.zeros(8, np.int64))
    diagnostic = caught.value.diagnostic
    assert diagnostic.code == "TL301" and all(word in str(diagnostic) for word in ("`a`", "int32", "int64"))
    made = tilelang_nb.compile_cell(cell("out[0] = n"), target="cuda")
    with pytest.raises((tilelang_nb.LaunchError, tilelang_nb.CompileError), match="TL302"):
        made.kernels["k"](*arrays().values(), 1, 2)


def test_using_a_refused_kernel_raises_a_compile_error_with_its_diagnostics() -> None:
    """9.17: Not a crash of its own."""
    k = tilelang_nb.compile_cell(cell("x = y = n"), target="sim").kernels["k"]
    with pytest.raises(tilelang_nb.CompileError) as caught:
        launched(k)
    assert [d.code for d in caught.value.diagnostics] == ["TL101"]


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_small_floats_are_ml_dtypes_arrays_and_raw_integers_are_refused(dtype: str) -> None:
    """9.18: An integer array of the same width is TL301."""
    text = cell("x[1] = x[0] * 2", parameters=f'x: T.Tensor((2,), "{dtype}")')
    k = compiled(text).kernels["k"]
    x = np.array([1.5, 0], getattr(ml_dtypes, dtype))
    k(x)
    assert float(x[1]) == 3.0
    with pytest.raises(tilelang_nb.LaunchError, match="TL301"):
        k(np.zeros(2, f"uint{x.itemsize * 8}"))


def test_the_expansion_record_stands_at_call_lines_and_counts_the_turn_of_a_break() -> None:
    """9.19, 9.20, 9.21: A macro node at its call with its definition beside it; items of comprehensions as values."""
    before = "@T.macro\ndef put(o, v):\n    o[v] = v\n"
    body = "put(out, 1)\nt = [v * 10 for v in (4, 5)]\nfor i in [6, 7, 8]:\n    if i == 7:\n        break\n    out[0] = t[0]"
    (turn,) = kernel(body, before=before).unroll.iterations
    macro, comprehension, loop = turn.children
    assert (macro.kind, macro.line, macro.definition_line) == ("macro", 7, 2)
    assert (comprehension.kind, [item.value for item in comprehension.iterations]) == ("comprehension", ["4", "5"])
    assert (loop.kind, loop.line, [item.value for item in loop.iterations]) == ("for", 9, ["6", "7"])


def test_a_launch_whose_grid_is_zero_does_nothing() -> None:
    """9.22: Without an error."""
    text = cell("o[0] = 1", parameters='o: T.Tensor((4,), "int32"), n: T.int32').replace("T.Kernel(1,", "T.Kernel(n,")
    o = np.zeros(4, np.int32)
    compiled(text).kernels["k"](o, 0)
    assert o.tolist() == [0, 0, 0, 0]


def test_a_break_outside_a_loop_is_a_syntax_error() -> None:
    """9.23: TL005, as Python says it."""
    made = tilelang_nb.compile_cell(cell("out[0] = 1\nbreak"), target="sim")
    assert [(d.code, d.span.line) for d in made.diagnostics] == [("TL005", 5)]


def test_a_runtime_range_step_of_zero_gives_no_turns() -> None:
    """9.27: Python would raise; the device does nothing."""
    computes("for i in range(0, 5, n):\n    out[i] = 1\nout[7] = 2", n=0, out=[0] * 7 + [2])


def test_compile_time_code_prints_once_however_often_it_runs(capsys: pytest.CaptureFixture[str]) -> None:
    """9.28: A name that becomes a scalar makes the build begin again; prints, iterators and lists count once."""
    before = "items = iter([4, 5, 6])\nseen = []\n"
    body = "x = 0\nprint('built')\nseen.append(1)\nout[1] = next(items)\nif n > 2:\n    x = 5\nout[0] = x"
    made = compiled(cell(body, before))
    assert capsys.readouterr().out == "built\n"
    assert made.namespace["seen"] == [1] and next(made.namespace["items"]) == 5
    assert launched(made.kernels["k"])["out"][:2].tolist() == [5, 4]


def test_the_documentation_says_that_compile_time_code_may_run_more_than_once() -> None:
    """9.28: In the README, with what is not undone."""
    text = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    assert "Compile-time code may run more than once per build" in text and "prints" in text or "printed" in text


def test_names_bound_in_a_launch_are_rebound_by_value() -> None:
    """9.26: A name given for a reference behaves as a re-binding, also under a condition."""
    before = "@T.macro\ndef double(v: T.Ref):\n    v = v * 2\n"
    computes("x = n\nif m > 2:\n    double(x)\nfor i in range(2):\n    double(x)\nout[0] = x", before=before, out=[24])
    like_python("x = n\nif m > 2:\n    x = x * 2\nout[0] = x")
