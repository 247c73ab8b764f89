"""`while` loops that come back to a state of before end with a finding at once; loops that get on run to their end."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pytest

import tilelang_nb

FRAME = """
import tilelang.language as T


@T.prim_func
def k(F: T.Tensor((4,), "int32"), O: T.Tensor((64,), "int32")):
    with T.Kernel(2, threads=32) as b:
        t = T.get_thread_binding()
{}
"""


def run(body: str):
    """(findings as text, O) of a launch; the body stands in a launch of 2 blocks of 32 threads, F holds zeros."""
    text = FRAME.format("\n".join("        " + line for line in body.strip("\n").splitlines()))
    cell = tilelang_nb.compile_cell(text, {}, target="sim")
    assert not cell.diagnostics, [str(one) for one in cell.diagnostics]
    flags, out = np.zeros(4, np.int32), np.zeros(64, np.int32)
    kernel = cell.namespace["k"]
    with pytest.warns() if "ENDLESS" in body else nullcontext():
        kernel(flags, out)
    return [str(one) for one in kernel.findings], out


ENDLESS = {
    "another block": "if b == 0:\n    while F[0] == 0:  # ENDLESS\n        T.evaluate(0)\nelse:\n    F[0] = 7",
    "a register": "v = T.alloc_var('int32')\nv = F[1]\nwhile v == 0:  # ENDLESS\n    v = F[1]\nO[b * 32 + t] = v",
    "one lane": "v = T.alloc_var('int32')\nv = t\nwhile v < 31:  # ENDLESS\n    v = T.if_then_else(t < 3, v, v + 1)",
    "break": "while True:  # ENDLESS\n    if F[2] != 0:\n        break",
    "to and fro": "v = T.alloc_var('int32')\nv = 0\nwhile v < 2:  # ENDLESS\n    v = 1 - v",
}


@pytest.mark.parametrize("name", ENDLESS)
def test_a_loop_that_repeats_its_turn_is_found_at_its_line(name):
    findings, _ = run(ENDLESS[name])
    line = 1 + next(i for i, text in enumerate(FRAME.format(ENDLESS[name]).splitlines()) if "ENDLESS" in text)
    assert len(findings) == 1 and "TL405" in findings[0], findings
    turns = "2 turns" if name == "to and fro" else "turn"
    assert f"this loop does the same {turns} for ever" in findings[0] and f"line {line}:" in findings[0]


LONG = {
    "a counter": ("v = T.alloc_var('int32')\nv = 0\nwhile v < 700:\n    v += 1\nO[b * 32 + t] = v", 700),
    "a counter that stands still for a while": (
        "v = T.alloc_var('int32')\nw = T.alloc_var('int32')\nv = 0\nw = 0\n"
        "while w < 300:\n    w += 1\n    v = w // 100\nO[b * 32 + t] = v",
        3,
    ),
    "a break": (
        "v = T.alloc_var('int32')\nv = 0\nwhile True:\n    v += 1\n    if v > 500 + t * 0:\n        break\n"
        "O[b * 32 + t] = v",
        501,
    ),
    "global memory": ("while O[b * 32 + t] < 200:\n    O[b * 32 + t] += 1", 200),
}


@pytest.mark.parametrize("name", LONG)
def test_a_loop_that_gets_on_runs_to_its_end(name):
    body, value = LONG[name]
    findings, out = run(body)
    assert findings == [] and (out == value).all(), (findings, out)


def test_lanes_leave_at_turns_of_their_own():
    findings, out = run("v = T.alloc_var('int32')\nv = 0\nwhile v < 100 + 10 * t:\n    v += 1\nO[b * 32 + t] = v")
    assert findings == [] and (out == np.tile(100 + 10 * np.arange(32), 2)).all()


def test_a_counted_loop_of_too_many_turns_is_not_called_endless():
    findings, _ = run("for i in T.serial(2000000000):  # ENDLESS\n    O[b * 32 + t] += i")
    assert len(findings) == 1 and "stops after 2097152 loop turns, and this loop has more" in findings[0]
