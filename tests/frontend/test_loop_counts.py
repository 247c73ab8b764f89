"""The number of turns of a loop is Python's also where the bounds lie as far apart as their type allows."""

from __future__ import annotations

import numpy as np
import pytest

import tilelang_nb
from tilelang_nb.language.promotion import integer_range

LOW, HIGH = integer_range("int32")
LOWEST, HIGHEST = integer_range("int64")
HEAD = "o: T.Tensor((64,), 'int32'), n: T.int32, m: T.int32, s: T.int32, N: T.int64, M: T.int64, S: T.int64"
LOOPS = [
    "range(m, n)",
    "range(n, m)",
    "range(m, n, 1 << 30)",
    "range(n, m, -(1 << 30))",
    "range(m, n, 2)",
    "range(0, n, 2000000000)",
    "range(0, n, n)",
    "range(1, m)",
    "range(-2, n)",
    "range(n, -1, -1)",
    "range(n - 1, -1, -1)",
    "range(0, n, 4)",
    "range(m, n, s)",
    "range(n, m, -s)",
    "range(m, m, s)",
    "T.serial(m, n)",
    "T.unroll(m, n, 1 << 30)",
    "range(M, N)",
    "range(N, M)",
    "range(M, N, 1 << 62)",
    "range(N, M, -(1 << 62))",
    "range(M, N, N)",
    "range(N, M, M)",
    "range(M, N, S)",
    "range(N, M, -S)",
    "range(1, M)",
    "range(0, N, 3)",
    "range(m, N, 1 << 61)",
]
BOUNDS = [
    (HIGH, LOW, 1 << 30, HIGHEST, LOWEST, 1 << 62),
    (9, -7, 3, 11, -5, 4),
    (-4, 5, -2, -8, 6, -3),
    (0, 0, 7, 0, 0, 7),
]
TURNS = 7  # of a long loop that are looked at


def python_loop(written: str, bounds: dict[str, int]) -> range:
    called = written.replace("T.serial", "range").replace("T.unroll", "range")
    return eval(called, {"__builtins__": {"range": range}}, bounds)


@pytest.fixture(scope="module")
def kernel():
    text = (
        f"import tilelang.language as T\n@T.prim_func\ndef k({HEAD}, v: T.Tensor(({len(LOOPS)}, {TURNS}), 'int64')):\n"
    )
    text += "    with T.Kernel(1, threads=1):\n"
    for number, loop in enumerate(LOOPS):
        text += f"        c{number} = 0\n        for i in {loop}:\n            v[{number}, c{number}] = i\n"
        text += f"            c{number} += 1\n            if c{number} == {TURNS}: break\n"
        text += f"        o[{number}] = c{number}\n"
    compilation = tilelang_nb.compile_cell(text, {}, target="sim")
    assert not compilation.diagnostics, [str(d) for d in compilation.diagnostics]
    return compilation.namespace["k"]


@pytest.mark.parametrize("bounds", BOUNDS, ids=["extreme", "plain", "reversed", "empty"])
def test_a_loop_has_the_turns_of_python(kernel, bounds):
    named = dict(zip(("n", "m", "s", "N", "M", "S"), bounds))
    counts, values = np.zeros(64, np.int32), np.zeros((len(LOOPS), TURNS), np.int64)
    kernel(counts, *bounds, values)
    for number, loop in enumerate(LOOPS):
        if (
            named["n"] == named["m"] == 0
            and loop == "range(0, n, n)"
            or (not named["M"] and loop in ("range(M, N, N)", "range(N, M, M)"))
        ):
            assert counts[number] == 0  # a step of 0 that is known only at the launch
            continue
        expected = list(python_loop(loop, named)[:TURNS])
        assert counts[number] == len(expected), loop
        assert values[number, : len(expected)].tolist() == expected, loop


def test_common_loops_are_counted_plainly(kernel):
    text = (
        "import tilelang.language as T\n@T.prim_func\ndef k(A: T.Tensor((T.dynamic('r'),), 'int32'), n: T.int32):\n"
        "    with T.Kernel(4, threads=32) as bx:\n        tx = T.get_thread_binding()\n"
    )
    for loop in ("range(n)", "range(bx, A.shape[0])", "range(T.ceildiv(n, 128))", "range(bx, bx + 4)", "range(3)"):
        found = tilelang_nb.compile_cell(f"{text}        for i in {loop}:\n            A[0] = i\n", {}, target="sim")
        assert not found.diagnostics, loop
        assert "int64" not in str(found.namespace["k"].program.function), loop
