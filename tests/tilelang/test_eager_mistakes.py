"""Mistakes of eager kernels: found where the cell defines them when no argument is needed, else at the call."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tilelang.test_eager import ADD

import tilelang_nb
from tilelang_nb.frontend.eager_syntax import is_eager
from tilelang_nb.runtime.compilation import Compilation

CALL = "\nadd(a, a)\n"


def compiled(text: str) -> Compilation:
    return tilelang_nb.compile_cell(text, {"np": np, "a": np.zeros(64, np.float32)})


def said(text: str) -> list[tuple[str, int]]:
    return [(d.code, d.span.line if d.span else 0) for d in compiled(text).diagnostics]


# -- at the definition -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("        x = y = A[bx]\n", [("TL101", 11)]),
        ("        def f(): pass\n        class C: pass\n", [("TL102", 11), ("TL103", 12)]),
        ("        yield A\n        for i in range(3): pass\n        else: pass\n", [("TL123", 11), ("TL117", 13)]),
        ("        try: pass\n        finally: pass\n        import os\n", [("TL120", 11), ("TL124", 13)]),
        ("        with T.ws(0), T.ws(1): pass\n", [("TL104", 11)]),
    ],
)
def test_mistakes_of_the_syntax_are_found_without_a_call(body: str, found: list[tuple[str, int]]) -> None:
    text = ADD.replace("    return C", body + "    return C")
    assert said(text) == found
    assert said(text + CALL) == found  # and a call says nothing more
    add = compiled(text).namespace["add"]
    assert repr(add).endswith("refused>")
    with pytest.raises(tilelang_nb.CompileError) as caught:
        add(np.zeros(4, np.float32), np.zeros(4, np.float32))
    assert [(d.code, d.span.line) for d in caught.value.diagnostics] == found


def test_what_a_compile_time_condition_leaves_out_is_no_mistake() -> None:
    text = ADD.replace("    C = T.empty", "    if block > 500:\n        raise ValueError\n    C = T.empty")
    assert said(text + CALL) == []
    assert said(text + "\nadd(a, a, block=512)") == [("TL122", 8)]


def test_out_idx_is_refused() -> None:
    assert said(ADD.replace("@tilelang.jit", "@tilelang.jit(out_idx=-1)")) == [("TL004", 2)]


def test_a_kernel_without_text_is_refused_where_it_is_defined() -> None:
    with pytest.raises(tilelang_nb.CompileError) as caught:
        exec(ADD, {"T": tilelang_nb.language, "tilelang": tilelang_nb.tilelang})
    assert [d.code for d in caught.value.diagnostics] == ["TL001"]


# -- arguments of the call ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("call", "argument", "seen"),
    [
        ("add(a, a[:3])", "B", "expected shape (N,) with N = 64 (shape of A), given shape (3,)"),
        ("add(a, a.astype('float64'))", "B", "expected dtype float32, given dtype float64"),
        ("add(a[None], a)", "A", "expected 1 dimension, shape (N,), given 2 dimensions, shape (1, 64)"),
        ("add(a)", "B", "given nothing"),
        ("add(a, [1, 2])", "B", "given a list"),
        ("add(a, 3)", "B", "given an int"),
        ("add(a, None)", "B", "given None"),
        ("add(a, a, A=a)", "A", "given two, by position and by name"),
        ("add(a, a, blok=3)", "", "there is no parameter `blok`"),
        ("add(a, a, 3, 4)", "", "expected 3 arguments, given 4"),
    ],
)
def test_an_argument_that_does_not_fit_is_named(call: str, argument: str, seen: str) -> None:
    (diagnostic,) = compiled(ADD + call).diagnostics
    assert diagnostic.code == "TL301" and diagnostic.span.line == 12
    assert seen in diagnostic.message and (not argument or f"`{argument}`: expected" in diagnostic.message)
    assert not argument or f"the parameter `{argument}` of `add`" in [str(note) for note in diagnostic.notes]
    add, a = compiled(ADD).namespace["add"], np.zeros(64, np.float32)
    with pytest.raises(tilelang_nb.LaunchError) as caught:
        eval(call, {"add": add, "a": a})
    assert caught.value.diagnostic.code == "TL301"


def test_the_place_of_a_wrong_argument_is_where_it_is_passed_and_its_parameter_is_beside_it() -> None:
    (diagnostic,) = compiled(ADD + "add(a, a[:3])").diagnostics
    assert (diagnostic.span.line, diagnostic.span.column, diagnostic.span.end_column) == (12, 7, 12)
    place = diagnostic.notes[-1].span
    assert (place.line, place.column, place.end_column) == (3, 11, 12)


def test_a_scalar_of_the_launch_must_fit_its_type() -> None:
    text = ADD.replace("    A: T.Tensor", "    block: T.int32\n    A: T.Tensor", 1).replace(
        "threads=block", "threads=128"
    )
    (diagnostic,) = compiled(text + "add(a, a, block=2.5)").diagnostics
    assert diagnostic.code == "TL301" and "a number (int32)" in diagnostic.message


def test_a_compilation_without_arrays_needs_what_is_no_tensor() -> None:
    add = compiled(ADD.replace("block: int = 128", "block: int")).namespace["add"]
    with pytest.raises(tilelang_nb.LaunchError, match="`block`"):
        add.compile(N=4)
    with pytest.raises(tilelang_nb.CompileError, match="no argument tells the size `N`"):
        add.compile(block=4)


# -- what the arguments show -------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ('N = T.const("N")', 'N, K = T.const("N, K")', [("TL004", 4)]),
        ("    B: T.Tensor[[N], T.float32]\n", "", [("TL207", 3)]),
        ("[N], T.float32]", "[N], T.flaot32]", [("TL003", 5), ("TL003", 6)]),
        ("B: T.Tensor[[N], T.float32]", "B: T.Tensor", [("TL207", 6)]),
        ("A[bx * block + i] +", "AA[bx * block + i] +", [("TL002", 10)]),
        ("A[bx * block + i] +", "A[bx * block + i, 0] +", [("TL201", 10)]),
        ("threads=block", "threads=block * 100", [("TL208", 8)]),
        ("return C", "return A", [("TL121", 11)]),
        ("return C", "return C, C", [("TL121", 11)]),
        ("return C", "return 3", [("TL121", 11)]),
        ("        for i", "        D = T.empty((3,), T.float32)\n        for i", [("TL208", 9)]),
        ("        for i", "        A: T.Tensor[[N], T.float32]\n        for i", [("TL004", 9)]),
        ('N = T.const("N")', "N = A.shape[0]", [("TL207", 3)]),
        ('T.const("N")', "T.const(3)", [("TL004", 4)]),
        ("    C = T", "    assert N % 7 == 0\n    C = T", [("TL145", 7)]),
        ("    return C", "        T.cpoy(A, B)\n        T.copy(A, D)\n    return C", [("TL003", 11), ("TL002", 12)]),
    ],
)
def test_mistakes_of_the_body_are_located_at_the_first_call(old: str, new: str, found: list[tuple[str, int]]) -> None:
    text = ADD.replace(old, new)
    assert text != ADD
    assert said(text) == []
    assert said(text + CALL) == found


def test_a_refused_call_from_another_cell_shows_its_own_text() -> None:
    add = compiled(ADD.replace("A[bx * block + i] +", "AA[bx * block + i] +")).namespace["add"]
    c = tilelang_nb.compile_cell("\n\nx = 1\nadd(a, a)", {"add": add, "a": np.zeros(64, np.float32)})
    (diagnostic,) = c.diagnostics
    assert (diagnostic.code, diagnostic.span.line) == ("TL002", 4)
    assert "line 10" in str(diagnostic.notes[0])


def test_a_call_in_a_kernel_is_refused() -> None:
    text = (
        ADD
        + """
@T.prim_func
def k(A: T.Tensor((8,), "float32")):
    with T.Kernel(1, threads=8):
        add(A, A)
"""
    )
    assert said(text) == [("TL127", 16)]


def test_const_outside_an_eager_kernel_is_refused() -> None:
    text = """@T.prim_func
def k(A: T.Tensor((4,), "float32")):
    n = T.const("n")
    with T.Kernel(1, threads=4):
        A[0] = 1.0
"""
    assert said(text) == [("TL004", 3)]


def test_a_corrected_argument_works_after_a_refused_one() -> None:
    add, a = compiled(ADD).namespace["add"], np.ones(8, np.float32)
    with pytest.raises(tilelang_nb.LaunchError):
        add(a, a[:4])
    assert np.array_equal(add(a, a), a + a)


# -- which functions are eager -----------------------------------------------------------------------------------------
def _launches(A: Any) -> None:
    T: Any = None
    with T.Kernel(1):
        pass


def _annotates(A, n):  # type: ignore[no-untyped-def]
    A: Any
    return A


def _factory(n: int) -> Any:
    T: Any = None

    def main() -> None:
        with T.Kernel(n):
            pass

    return main


def _counts(n):  # type: ignore[no-untyped-def]
    n: int
    return n


def test_the_syntax_decides_what_is_eager() -> None:
    assert [is_eager(f) for f in (_launches, _annotates, _factory, _counts)] == [True, True, False, False]


def test_a_mistake_that_the_call_carries_once_more_is_said_once() -> None:
    made = compiled(ADD.replace("T.float32", '"flot32"', 1) + CALL)
    assert [d.code for d in made.diagnostics] == ["TL205"]
