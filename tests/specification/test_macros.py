"""Macros: bodies inlined at the call, with their arguments, results and messages."""

from __future__ import annotations

import numpy as np
import pytest
from specification.cells import cell, compiled, computes, emits, launched, refuses, refuses_cell
from specification.cells import kernel as kernel_of

import tilelang_nb

MACROS = """
@T.macro
def put(buffer, at, value):
    buffer[at] = buffer[at] + value

@T.macro
def own(v):
    v = v + 100
    return v

@T.macro
def bump(v: T.Ref, by=1):
    v = v + by

@T.macro
def both(v, k=3, *, z=1):
    return v + k, v * z

@T.macro
def twice(v):
    first, second = both(v)
    return own(first) + second

@T.macro
def climb(v, depth):
    if depth == 0:
        return v
    return climb(v + depth, depth - 1)

@T.macro
def late(buffer, v):
    buffer[0] = 99
    return v

@T.macro
def nothing(v):
    pass
"""


def test_macros_are_inlined_at_the_call() -> None:
    """P37: Reusable code without a call on the device; each call has statements of its own."""
    emits("put(out, 0, 1)\nput(out, 1, 2)", 2, before=MACROS)
    computes("put(out, 0, n)\nput(out, 0, m)\nput(buffer=out, value=4, at=1)", before=MACROS, out=[8, 4])


def test_arguments_are_passed_by_value() -> None:
    """7.1: Re-binding a parameter changes nothing outside; an argument is read before the body stores."""
    computes("x = n\nout[0] = own(x)\nout[1] = x\nout[2] = own(own(n))", before=MACROS, out=[103, 3, 203])
    computes("out[0] = n\nout[1] = late(out, out[0] + a[3])", before=MACROS, out=[99, 8])


def test_buffers_are_passed_by_handle() -> None:
    """7.2: What the macro stores is in the caller's buffer, tiles too."""
    body = "tile = T.alloc_local((4,), 'int32')\ntile[1] = 5\nput(tile, 1, n)\nout[0] = tile[1]\nput(out, 0, 1)"
    computes(body, before=MACROS, out=[9])


def test_reference_parameters_write_through() -> None:
    """7.3, 9.26: To variables, elements and plain names, which become mutable scalars as by re-binding."""
    body = """
c = T.alloc_var('int32', init=40)
bump(c, 2)
out[0] = c
bump(out[n], by=7)
x = n
y = x
for i in range(m):
    bump(x)
out[1] = x
out[2] = y
if m > 100:
    bump(x, 1000)
out[4] = x
"""
    computes(body, before=MACROS, out=[42, 8, 3, 7, 8])


def test_a_reference_to_what_cannot_be_stored_is_refused() -> None:
    """7.3: A constant or an expression has no place."""
    refuses(
        "bump(3)  #!\nbump(n + 1)  #!",
        ("TL004", "bump(3)", "element"),
        ("TL004", "bump(n + 1)", "element"),
        before=MACROS,
    )


def test_macros_return_values_and_tuples() -> None:
    """7.4: And None where nothing is returned."""
    computes(
        "x, y = both(n, z=m)\nout[0] = x * 100 + y\nif nothing(n) is None:\n    out[1] = 1", before=MACROS, out=[615, 1]
    )


def test_keyword_and_default_arguments_work_and_unknown_ones_are_refused() -> None:
    """7.5: Unknown, missing and too many arguments: TL004 at the call or argument."""
    computes(
        "out[0] = both(n)[0]\nout[1] = both(v=n, k=10)[0]\nout[2] = both(n, 4, z=2)[1]", before=MACROS, out=[6, 13, 6]
    )
    texts = ["both(n, zz=3)", "both()", "both(n, 1, 2)", "both(n, v=1)"]
    made = tilelang_nb.compile_cell(cell("\n".join(f"x = {text}[0]" for text in texts), MACROS), target="sim")
    first = made.text.source.split("\n").index("        x = both(n, zz=3)[0]") + 1
    assert [(d.code, d.span.line) for d in made.diagnostics] == [("TL004", first + i) for i in range(4)]
    assert "`z`" in made.diagnostics[0].help and all("both" in d.message for d in made.diagnostics)


def test_macros_call_macros() -> None:
    """7.6: And their values flow back."""
    computes("out[0] = twice(n)\nout[1] = twice(twice(1))", before=MACROS, out=[109, 313])


def test_macros_recurse_on_compile_time_arguments() -> None:
    """7.7: The depth is known while building."""
    computes("out[0] = climb(n, 4)", before=MACROS, out=[13])


def test_endless_recursion_of_macros_is_refused() -> None:
    """7.8, 9.23: TL143 with the limit, also where two macros call each other."""
    text = """
@T.macro
def ping(v):
    return pong(v)

@T.macro
def pong(v):
    return ping(v + 1)

@T.prim_func
def k(out: T.Tensor((4,), "int32")):
    with T.Kernel(1, threads=1):
        out[0] = ping(0)
        out[1] = 2
"""
    made = tilelang_nb.compile_cell(text, target="sim")
    (error,) = made.diagnostics
    assert error.code == "TL143" and error.span.line in (4, 8, 13) and "64" in error.message + error.label


CHAIN = """
@T.macro
def inner(o, i):
    x = y = i  #!
    o[i] = nope  #!

@T.macro
def outer(o, i):
    inner(o, i)

@T.prim_func
def k(out: T.Tensor((4,), "int32")):
    with T.Kernel(1, threads=1):
        outer(out, 1)
        outer(out, 2)
"""


def test_a_mistake_inside_a_macro_is_reported_once_with_the_chain_of_the_first_call() -> None:
    """7.9, 7.11: At its own line, with the lines of the calls."""
    made = refuses_cell(CHAIN, ("TL101", "x = y = i", "y = x"), ("TL002", "nope", "first"))
    for diagnostic in made.diagnostics:
        assert [note.span.line for note in diagnostic.notes if note.span] == [9, 14]


def test_a_macro_may_hold_a_whole_launch_and_a_kernel_several() -> None:
    """7.10: In order."""
    text = """
@T.macro
def add(o, v):
    with T.Kernel(2, threads=4) as bx:
        for i in T.Parallel(4):
            o[bx * 4 + i] = o[bx * 4 + i] * 10 + v

@T.prim_func
def k(o: T.Tensor((8,), "int32")):
    add(o, 1)
    with T.Kernel(1, threads=1):
        o[3] = 5
    add(o, 2)
"""
    o = np.zeros(8, np.int32)
    compiled(text).kernels["k"](o)
    assert o.tolist() == [12, 12, 12, 52, 12, 12, 12, 12]


def test_a_macro_that_is_never_called_is_checked_for_its_syntax_only() -> None:
    """7.12: What only a call can decide is not said; what the text alone shows is."""
    text = "@T.macro\ndef m(o):\n    o[0] = nope\n    x = y = 1  #!\n@T.prim_func\ndef k(o: T.Tensor((4,), 'int32')):\n    with T.Kernel(1, threads=1):\n        o[0] = 1"
    made = tilelang_nb.compile_cell(text.replace("  #!", ""), target="sim")
    assert [d.code for d in made.diagnostics] in ([], ["TL101"])
    assert tilelang_nb.compile_cell("@T.macro\ndef m(o:\n    pass", target="sim").diagnostics[0].code == "TL005"


def test_scalars_of_a_macro_belong_to_each_call() -> None:
    """3.2, 7.1: Re-binding under runtime control flow in a macro keeps Python's meaning in each call."""
    before = "@T.macro\ndef clip(v, top):\n    if v > top:\n        v = top\n    return v\n"
    held = launched(kernel_of("out[0] = clip(n, 2) * 10 + clip(m, 9)\nout[1] = clip(clip(m, 4), 3)", before=before))
    assert held["out"][:2].tolist() == [25, 3]


@pytest.mark.parametrize("kind", ["list", "dtype", "function"])
def test_compile_time_objects_are_arguments_too(kind: str) -> None:
    """7.1: As in any Python call."""
    before = "@T.macro\ndef use(o, what):\n    if isinstance(what, list):\n        for v in what:\n            o[v] = v\n    elif callable(what) and not isinstance(what, str):\n        o[0] = what(3)\n    else:\n        o[1] = T.cast(2.0, what)\n"
    argument = {"list": "[2, 3]", "dtype": "'int32'", "function": "lambda v: v * 2"}[kind]
    computes(f"use(out, {argument})", before=before, out={"list": [0, 0, 2, 3], "dtype": [0, 2], "function": [6]}[kind])


def test_a_parameter_annotated_with_var_writes_through_as_one_of_ref() -> None:
    """7.3: `T.Var` is another name of it on the parameters of macros."""
    made = tilelang_nb.compile_cell(
        """
import numpy as np
@T.macro
def through(x: T.Var):
    x = 5
@T.macro
def kept(x):
    x = 6
@T.prim_func
def k(B: T.Tensor((2,), "int32")):
    with T.Kernel(1, threads=1):
        x = T.alloc_var(T.int32, init=0)
        through(x)
        B[0] = x
        kept(x)
        B[1] = x
B = np.zeros(2, "int32")
k(B)
B.tolist()
""",
        target="sim",
    )
    assert made.ok, made.to_text()
    assert made.result == [5, 5]
